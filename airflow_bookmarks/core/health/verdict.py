"""Judge the health of a job: the one state that a person sees, worst first, with its reason and since when.

What is wrong in more than one way has the worst of its states, and the others among its `more`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from airflow_bookmarks.core.health.cadence import Schedule, silence
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.instant import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Failure, Move


class HealthState(StrEnum):
    """How a job is, the worst first.

    FAILED: its last try failed. STUCK: a driver died, and what it left waits for a run. LATE: it is silent for longer
    than usual. REWOUND: an upstream went back, or was replayed, below what it has read. LAGGING: it falls behind an
    upstream. WAITING: a change waits for a second person. PAUSED: part of its input is set aside, or missing; or it is
    silent, and its DAG is paused. TAKEN_BACK: it was reset, rewound or set, and has not run since. OK. NEW: it has
    never committed.
    """

    FAILED = "FAILED"
    STUCK = "STUCK"
    LATE = "LATE"
    REWOUND = "REWOUND"
    LAGGING = "LAGGING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    TAKEN_BACK = "TAKEN BACK"
    OK = "OK"
    NEW = "NEW"

    @property
    def rank(self) -> int:
        """The place of a state among all, from 0: the worst first."""
        return _ORDER.index(self)

    @property
    def is_trouble(self) -> bool:
        """Whether somebody has to look: for OK, NEW and TAKEN_BACK nobody has to."""
        return self not in (HealthState.OK, HealthState.NEW, HealthState.TAKEN_BACK)


_ORDER = tuple(HealthState)


@dataclass(frozen=True, slots=True)
class SourceLag:
    """How a job keeps up with one job that it reads: the state, why, and since when something is unread.

    `is_moved`: the upstream itself went back, or was replayed, below what was read. `runs` is how many of its runs, of
    those that brought data, are unread; None: that is not known.
    """

    source: str
    state: LagState
    is_moved: bool = False
    why: str | None = None
    since: datetime | None = None
    runs: int | None = None


def unread_in_words(lags: Sequence[SourceLag]) -> str | None:
    """Say how many runs of which jobs are unread, most first; None where none is, as far as that is known.

    Example:
        >>> unread_in_words([SourceLag("clean", LagState.OK, runs=3), SourceLag("people", LagState.OK, runs=0)])
        '3 runs of clean'
    """
    waiting = sorted((lag for lag in lags if lag.runs), key=lambda lag: (-(lag.runs or 0), lag.source))
    if not waiting:
        return None
    named = [f"{counted(lag.runs or 0, 'run')} of {lag.source}" for lag in waiting[:_NAMED]]
    more = waiting[_NAMED:]
    if more:
        named.append(f"{counted(sum(lag.runs or 0 for lag in more), 'run')} of {counted(len(more), 'other job')}")
    return ", ".join(named)


_NAMED = 3  # jobs in one sentence


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What is known of a job.

    Attributes:
        now: the present time.
        run_number: the number of its last committed run; 0: it has never committed.
        commits: the times of its last commits, oldest first, one for each execution.
        schedule: that of its DAG; None: it has none, or it is not known.
        is_working: whether a run is at work.
        failure: the failure since the last commit, if there was one.
        left_at: when the lease ran out of a driver that never gave it back; None: none did.
        due: the number of a run whose publish is due though nobody works on it; None: none is.
        cleans: whether a clean is due though nobody works.
        lags: how it keeps up with the jobs that it reads.
        requests: when the changes were asked for that wait for a second person.
        quarantined: files that are set aside. `gaps`: partitions or numbers that are missing in its input.
        move: what somebody did to its position since the last commit; None: nothing.
    """

    now: datetime
    run_number: int = 0
    commits: Sequence[datetime] = ()
    schedule: Schedule | None = None
    is_working: bool = False
    failure: Failure | None = None
    left_at: datetime | None = None
    due: int | None = None
    cleans: bool = False
    lags: Sequence[SourceLag] = ()
    requests: Sequence[datetime] = ()
    quarantined: int = 0
    gaps: int = 0
    move: Move | None = None


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing about a job that a person may have to know: a state, its reason, and since when (None: not known)."""

    state: HealthState
    reason: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The health of a job: the worst finding, and `more` of them, worst first."""

    state: HealthState
    reason: str
    since: datetime | None = None
    more: tuple[HealthFinding, ...] = ()

    @property
    def waiting_since(self) -> datetime | None:
        """Since when a change waits for a second person, whatever else is wrong; None: none does."""
        findings = (HealthFinding(self.state, self.reason, self.since), *self.more)
        return next((each.since for each in findings if each.state is HealthState.WAITING), None)


def judge(facts: HealthFacts) -> HealthVerdict:
    """Return the health of a job.

    Example:
        >>> from datetime import UTC, datetime
        >>> from airflow_bookmarks.core.head import Failure
        >>> noon = datetime(2013, 1, 31, 12, tzinfo=UTC)
        >>> judge(HealthFacts(noon, run_number=3, failure=Failure(noon, "dag/task", 1, 3, "no such column"))).reason
        'the last try failed: no such column'
    """
    worst, *more = sorted(_findings(facts), key=lambda finding: finding.state.rank)
    return HealthVerdict(worst.state, worst.reason, worst.since, tuple(more))


def _findings(facts: HealthFacts) -> Iterator[HealthFinding]:
    if facts.failure is not None:
        why = f": {facts.failure.error}" if facts.failure.error.strip() else ", and its error says nothing"
        code = "" if facts.failure.exit_code is None else f" with exit code {facts.failure.exit_code}"
        yield HealthFinding(HealthState.FAILED, f"the last try failed{code}{why}", facts.failure.at)
    if not facts.is_working:
        yield from _stuck(facts)
        yield from _late(facts)
    yield from _behind(facts)
    if facts.requests:
        asked = counted(len(facts.requests), "change")
        yield HealthFinding(HealthState.WAITING, f"{asked} waiting for a second person", min(facts.requests))
    yield from _paused(facts)
    if facts.move is not None:
        reason = f"its position was moved by {facts.move.kind}, and it has not committed since"
        yield HealthFinding(HealthState.TAKEN_BACK, reason, facts.move.at)
    elif facts.run_number == 0:
        yield HealthFinding(HealthState.NEW, "it has never committed")
    else:
        yield HealthFinding(HealthState.OK, "a run is at work" if facts.is_working else "it commits as usual")


def _stuck(facts: HealthFacts) -> Iterator[HealthFinding]:
    if facts.due is not None:
        reason = f"run {facts.due} is committed and not published: the next run publishes it"
        yield HealthFinding(HealthState.STUCK, reason, facts.left_at)
    elif facts.left_at is not None:
        yield HealthFinding(
            HealthState.STUCK, "its driver died without a word: the next run settles what it left", facts.left_at
        )
    if facts.cleans:
        yield HealthFinding(HealthState.STUCK, "what undone runs published is not removed yet: the next run removes it")


def _late(facts: HealthFacts) -> Iterator[HealthFinding]:
    is_paused = facts.schedule is not None and facts.schedule.is_paused
    found = silence(facts.commits, facts.now, None if is_paused else facts.schedule)
    if found is None:
        return
    missed = "" if found.missed is None else f", and {found.missed} times of its schedule have passed"
    last = "" if not facts.commits else f"its last commit was {in_words(facts.now - facts.commits[-1])} ago; "
    unread = unread_in_words(facts.lags)
    waits = "" if unread is None else f"; unread: {unread}"
    reason = f"{last}it usually commits every {in_words(found.usual)}{missed}{waits}"
    if is_paused:
        yield HealthFinding(HealthState.PAUSED, f"its DAG is paused in Airflow; {reason}", found.since)
    else:
        yield HealthFinding(HealthState.LATE, reason, found.since)


def _behind(facts: HealthFacts) -> Iterator[HealthFinding]:
    for lag in facts.lags:
        if lag.state not in (LagState.OK, LagState.UNKNOWN):
            state = HealthState.REWOUND if lag.is_moved else HealthState.LAGGING
            yield HealthFinding(state, f"{lag.source}: {lag.why or lag.state.value.lower()}", lag.since)


def _paused(facts: HealthFacts) -> Iterator[HealthFinding]:
    if facts.quarantined:
        yield HealthFinding(
            HealthState.PAUSED, f"{counted(facts.quarantined, 'file')} set aside because they can't be parsed"
        )
    if facts.gaps:
        yield HealthFinding(HealthState.PAUSED, f"its input lacks {facts.gaps:,} between the first and the last seen")
