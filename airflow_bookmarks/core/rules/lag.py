"""Judge lag: how far a consumer is behind what it reads, and whether that is a problem. A pure rule, no I/O.

The rule is that of Burrow, which watches consumers of Kafka: it uses no threshold, but the course of the last commits.
In Burrow's order, with what each part means here:

| Burrow, of one partition | here, of one source of a job |
|---|---|
| offset of a commit | the run of the upstream up to which a committed run of the consumer has read |
| time of a commit | `committed_at` of that run |
| lag at a commit | runs with data that the upstream had published and that it left unread |
| window | the last ten committed runs of the consumer, whatever became of them since |
| lag now is zero: OK | the same |
| STOP: longer since the last commit than the window spans, and lag was not zero just before | STOPPED: the same, and \
what is unread has waited for longer than the window spans |
| REWIND: an offset went down and has not come up again | REWOUND: the consumer itself went back (a reset, a rewind) \
and has not come up again |
| some lag in the window is zero: OK | the same |
| STALL: offsets do not move | STALLED: it commits, and never reads this source |
| WARN: lag never shrinks | LAGGING: it reads, and leaves as much behind each time, or more |

Burrow takes the lag as it is when it hears of the commit. Here it is that of the moment when the run began: what was
published while it worked, it could not have read. Else a daily consumer that works for two hours would for ever be
LAGGING behind an hourly upstream.

What the upstream did takes precedence, which Kafka does not have: REWOUND, it went back below what was consumed;
REPLAYED, a run that was consumed has another output since. Both last until the consumer has decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

WINDOW = 10  # commits, as Burrow's default has it: a span to compare with, not a bound on the lag


class LagState(StrEnum):
    """How a job keeps up with one of its sources. UNKNOWN: not known, for a reason that is given with it."""

    OK = "OK"
    LAGGING = "LAGGING"
    STALLED = "STALLED"
    STOPPED = "STOPPED"
    REWOUND = "REWOUND"
    REPLAYED = "REPLAYED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class LagPoint:
    """One commit of a consumer: when it was, up to which run it had read then, and how many runs it had left unread."""

    at: datetime
    consumed: int
    lag: int


def lag_state(
    points: Sequence[LagPoint],
    lag: int,
    now: datetime,
    waiting_since: datetime | None = None,
    *,
    is_working: bool = False,
) -> LagState:
    """Return OK, LAGGING, STALLED, STOPPED or REWOUND, by the rule above.

    Args:
        points: the last commits, oldest first. None at all: nothing is known of its rhythm, so only what is unread
            speaks, and that alone is no trouble.
        lag: what is unread now, in runs (or files).
        now: the present time.
        waiting_since: since when the oldest of that is there; None: not known.
        is_working: whether a run of the consumer is at work now: then it has not stopped.

    Example:
        >>> from datetime import UTC, datetime, timedelta
        >>> noon = datetime(2013, 1, 31, 12, tzinfo=UTC)
        >>> hourly = [LagPoint(noon + timedelta(hours=h), consumed=h + 1, lag=0) for h in range(10)]
        >>> lag_state(hourly, 3, noon + timedelta(hours=12)), lag_state(hourly, 30, noon + timedelta(hours=39))
        (<LagState.OK: 'OK'>, <LagState.STOPPED: 'STOPPED'>)
    """
    if lag == 0 or not points:
        return LagState.OK
    if not is_working and _is_stopped(points, now, waiting_since):
        return LagState.STOPPED
    if _went_back(points):
        return LagState.REWOUND
    if len(points) == 1 or any(point.lag == 0 for point in points):
        return LagState.OK  # a single commit has no direction
    if all(a.consumed == b.consumed for a, b in pairwise(points)):
        return LagState.STALLED
    if all(b.lag >= a.lag for a, b in pairwise(points)):
        return LagState.LAGGING
    return LagState.OK


def _is_stopped(points: Sequence[LagPoint], now: datetime, waiting_since: datetime | None) -> bool:
    first, last = points[0].at, points[-1].at
    span = last - first
    if not span:
        return False  # a single commit has no rhythm that it could fall out of
    idle_since = last if waiting_since is None else max(last, waiting_since)
    return now - idle_since > span


def _went_back(points: Sequence[LagPoint]) -> bool:
    return points[-1].consumed < max(point.consumed for point in points)
