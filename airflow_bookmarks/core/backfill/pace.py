"""Say how long a job takes for what it reads again, by what its last runs took. A pure rule, no I/O.

The median of the last runs decides, so that one slow day does not: seconds for each row, or for each byte where rows
were not counted. No run is expected to take less time than the quickest of them: starting Spark takes as long for few
rows as for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNS_LOOKED_AT = 16


@dataclass(frozen=True, slots=True)
class PastRun:
    """What one run read, and the seconds from its plan to its publish; None: not counted."""

    rows: int | None
    size_bytes: int | None
    seconds: float


def expected_seconds(runs: Sequence[PastRun], rows: int | None, size_bytes: int | None) -> float | None:
    """Return how long a run takes that reads as many rows, or bytes; None: the runs before don't tell.

    Example:
        >>> past = [PastRun(1_000, None, 30.0), PastRun(2_000, None, 40.0), PastRun(1_000, None, 20.0)]
        >>> expected_seconds(past, 6_000, None), expected_seconds(past, 10, None), expected_seconds(past, None, None)
        (120.0, 20.0, None)
    """
    ways = (
        (rows, [(run.rows, run.seconds) for run in runs]),
        (size_bytes, [(run.size_bytes, run.seconds) for run in runs]),
    )
    for amount, past in ways:
        rates = [seconds / counted for counted, seconds in past if counted]
        if amount is not None and rates:
            return max(min(seconds for _, seconds in past), amount * median(rates))
    return None
