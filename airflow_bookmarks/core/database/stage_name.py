"""Names of stage tables: whose they are, and which run has filled them.

    _bm_<job>_<number>_<fence>_<output>         sealed: counted, and nothing is added to it any more
    _bm_<job>_<number>_<fence>_<output>_load    while Spark loads it

`<job>` are 16 and `<output>` 12 hexadecimal digits of a hash: names of jobs are longer than the 63 bytes that
PostgreSQL keeps of a name. Numbers and fences of 11 digits each still fit.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import RunKey

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.territory import Territory

_LOADING = "_load"
_NAME = re.compile(rf"_bm_([0-9a-f]{{16}})_(\d+)_(\d+)_([0-9a-f]{{12}})({_LOADING})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StageName:
    """What the name of a stage table tells: job and output by their hashes, and the run that staged there."""

    job: str
    key: RunKey
    output: str
    is_loading: bool = False

    @classmethod
    def of(cls, territory: Territory, key: RunKey, output: str) -> StageName:
        """Return the name under which a run stages an output.

        Example:
            >>> from airflow_bookmarks.core.rules.territory import Territory
            >>> str(StageName.of(Territory("prod", "orders.load"), RunKey(12, 15), "dim"))
            '_bm_08f20d4142c75a55_12_15_e50fc7992e88'
        """
        return cls(job_id(territory), key, _digits(f"{territory.namespace}/{territory.job}/{output}", 12))

    @classmethod
    def parse(cls, name: str) -> StageName | None:
        """Return what a name tells; None if it is not that of a stage table.

        Example:
            >>> StageName.parse("_bm_0123456789abcdef_12_15_0123456789ab_load").key, StageName.parse("orders")
            (RunKey(number=12, fence=15), None)
        """
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match[1], RunKey(int(match[2]), int(match[3])), match[4], match[5] is not None)

    @property
    def output_id(self) -> str:
        """What tells the output from any other, whichever run it is of: the key of its row of fences."""
        return f"{self.job}_{self.output}"

    def __str__(self) -> str:
        loading = _LOADING if self.is_loading else ""
        return f"_bm_{self.job}_{self.key.number}_{self.key.fence}_{self.output}{loading}"


def job_id(territory: Territory) -> str:
    """Return what names a job in a database: the same for each of its runs, and no other job's."""
    return _digits(f"{territory.namespace}/{territory.job}", 16)


def stage_prefix(territory: Territory) -> str:
    """Return what the names of all stage tables of a job begin with."""
    return f"_bm_{job_id(territory)}_"


def _digits(text: str, count: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:count]
