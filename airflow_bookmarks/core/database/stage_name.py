"""Names of stage tables: whose they are, and which run has filled them.

    _bm_<job>_<number>_<fence>_<output>         sealed: counted, and nothing is added to it any more
    _bm_<job>_<number>_<fence>_<output>_load    while Spark loads it

`<job>` are 16 and `<output>` 8 hexadecimal digits of a hash: names of jobs are longer than the 63 bytes that PostgreSQL
keeps of a name. Numbers of 13 digits and fences of 14 still fit.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import RunKey

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.territory import Territory

LOADING = "_load"

_JOB_DIGITS, _OUTPUT_DIGITS = 16, 8
_NAME = re.compile(r"_bm_([0-9a-f]{16})_(\d+)_(\d+)_([0-9a-f]{8})(_load)?", re.ASCII)


def job_id(territory: Territory) -> str:
    """Return what names a job in a database: the same for each of its runs, and no other job's."""
    return hashlib.sha256(f"{territory.namespace}/{territory.job}".encode()).hexdigest()[:32]


def output_id(territory: Territory, output: str) -> str:
    """Return what names an output of a job in a database."""
    return hashlib.sha256(f"{territory.namespace}/{territory.job}/{output}".encode()).hexdigest()[:32]


def stage_prefix(territory: Territory) -> str:
    """Return what the names of all stage tables of a job begin with."""
    return f"_bm_{job_id(territory)[:_JOB_DIGITS]}_"


def stage_name(territory: Territory, key: RunKey, output: str) -> str:
    """Return the name of the stage table of an output of a run.

    Example:
        >>> from airflow_bookmarks.core.rules.territory import Territory
        >>> stage_name(Territory("prod", "orders.load"), RunKey(12, 15), "dim")
        '_bm_08f20d4142c75a55_12_15_e50fc799'
    """
    return f"{stage_prefix(territory)}{key.number}_{key.fence}_{output_id(territory, output)[:_OUTPUT_DIGITS]}"


@dataclass(frozen=True, slots=True)
class StageName:
    """What the name of a stage table tells: its job, the run that staged there, and whether it is still loaded."""

    job: str
    key: RunKey
    output: str
    is_loading: bool

    @classmethod
    def parse(cls, name: str) -> StageName | None:
        """Return what a name tells; None if it is not that of a stage table.

        Example:
            >>> StageName.parse("_bm_0123456789abcdef_12_15_01234567_load").key, StageName.parse("orders")
            (RunKey(number=12, fence=15), None)
        """
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match[1], RunKey(int(match[2]), int(match[3])), match[4], match[5] is not None)

    def is_of(self, territory: Territory) -> bool:
        """Whether a run of this job has staged there."""
        return job_id(territory).startswith(self.job)
