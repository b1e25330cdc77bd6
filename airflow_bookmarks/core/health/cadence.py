"""Say when a job is silent for longer than it usually is. A pure rule, no I/O.

There is no threshold to tune: the last commits say how often the job runs.

    usual     the median of the times between its last commits: a single long pause, or a burst of runs by hand, does
              not move it
    allowed   twice that; or, where the job has paused for longer from the same day of the week on, a quarter more than
              that pause: a job that runs from Monday to Friday is not late on Sunday
    late      silent for longer than allowed

Runs in quick succession may be a person's who tries the job: less than an hour apart, only as many as are kept tell a
rhythm, and no job is late before ten minutes.

Where the schedule of its DAG is known, two of its times have to have passed as well, and an hour more for the run
itself, or half the time between the two where that is shorter. Either alone would call a job late that is not: one
that takes part in some runs of its DAG only, or one whose DAG rests on holidays. Where the commits tell nothing yet,
the schedule decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

COMMITS_KEPT = 16  # of a job: two weeks of a daily one, with both weekends
_LEAST_COMMITS = 3  # of which a rhythm can be told: two pauses
_TOO_LONG = 2
_QUICK = timedelta(hours=1)
_AT_LEAST = timedelta(minutes=10)
_LIKE_BEFORE = 1.25
_FOR_THE_RUN = timedelta(hours=1)
_MISSED = 2  # times of a schedule


@dataclass(frozen=True, slots=True)
class Schedule:
    """What Airflow knows of the schedule of a job's DAG.

    Attributes:
        times: when runs were due since the job's last commit, oldest first.
        is_paused: whether the DAG is paused, so that no more become due.
    """

    times: Sequence[datetime] = ()
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """A silence that is too long: since when it is, and how long it usually takes from one commit to the next.

    `missed` is how many times of its schedule have passed; None: no schedule is known.
    """

    since: datetime
    usual: timedelta
    missed: int | None = None


def usual_interval(commits: Sequence[datetime]) -> timedelta | None:
    """Return the usual time between two commits, oldest first; None: too few are known to tell.

    Example:
        >>> from datetime import UTC, datetime
        >>> usual_interval([datetime(2013, 1, day, tzinfo=UTC) for day in (1, 2, 3, 8)]).days
        1
    """
    if len(commits) < _LEAST_COMMITS:
        return None
    usual = timedelta(seconds=median((after - before).total_seconds() for before, after in pairwise(commits)))
    return None if usual < _QUICK and len(commits) < COMMITS_KEPT else usual


def silence(commits: Sequence[datetime], now: datetime, schedule: Schedule | None = None) -> Silence | None:
    """Return the silence of a job that is too long; None: it is not, or that can't be told.

    Args:
        commits: its last commits, oldest first.
        now: the present time.
        schedule: that of its DAG; None: it has none, or it is not known.

    Example:
        >>> from datetime import UTC, datetime, timedelta
        >>> daily = [datetime(2013, 1, day, 2, tzinfo=UTC) for day in (1, 2, 3, 4)]
        >>> silence(daily, daily[-1] + timedelta(hours=47)) is None
        True
        >>> silence(daily, daily[-1] + timedelta(hours=49)).since.isoformat()
        '2013-01-06T02:00:00+00:00'
    """
    usual = usual_interval(commits)
    late = [] if usual is None else [commits[-1] + _allowed(commits, usual)]
    missed: list[datetime] = []
    if schedule is not None:
        missed = [time for time in schedule.times if time <= now]
        if len(missed) < _MISSED:
            return None
        between = missed[1] - missed[0]
        late.append(missed[1] + min(_FOR_THE_RUN, between / 2))
        usual = usual or between
    if usual is None or not late or now <= max(late):
        return None
    return Silence(max(late), usual, len(missed) or None)


def is_uncertain(commits: Sequence[datetime], now: datetime) -> bool:
    """Whether the schedule of its DAG says more of a job than its commits: they are too few, or stopped too long ago.

    Example:
        >>> from datetime import UTC, datetime, timedelta
        >>> daily = [datetime(2013, 1, day, 2, tzinfo=UTC) for day in (1, 2, 3, 4)]
        >>> is_uncertain(daily, daily[-1] + timedelta(hours=47)), is_uncertain(daily[:1], daily[0])
        (False, True)
    """
    return bool(commits) and (usual_interval(commits) is None or silence(commits, now) is not None)


def _allowed(commits: Sequence[datetime], usual: timedelta) -> timedelta:
    day = commits[-1].weekday()
    from_that_day = [after - before for before, after in pairwise(commits) if before.weekday() == day]
    longest = max(from_that_day, default=timedelta(0))
    return max(_AT_LEAST, _TOO_LONG * usual, longest * _LIKE_BEFORE if longest > _TOO_LONG * usual else timedelta(0))
