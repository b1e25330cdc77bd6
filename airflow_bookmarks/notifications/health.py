"""Standings: the state of a job for each topic of notifications, according to the state table.

health        the one state of the job, by `core.health`: FAILED, STUCK, LATE, REWOUND, LAGGING, WAITING, PAUSED
lag           LAGGING, STALLED or STOPPED behind one source; each source stands for itself
expectation   FAILED since the last commit: what `job.expect` found to be false
upstream      REWOUND or REPLAYED: what the job's next run refuses with UpstreamRewoundError or UpstreamReplayedError

None of it comes from the exception that a callback is given: spark-submit reports an exit code and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.position import lowest_replayed
from airflow_bookmarks.core.rules.condition import rewound_below
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.health.job import health
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours, lag

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_bookmarks.lifecycle.inspect.lag import JobConsumer, Lag
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

Subject = Literal["health", "lag", "expectation", "upstream"]

OK = "OK"

_LAGGING = (LagState.OK, LagState.LAGGING, LagState.STALLED, LagState.STOPPED)
_FAILED, _END = "expectation failed: ", ". Nothing was committed"


@dataclass(frozen=True, slots=True)
class Health:
    """How `job` stands in one subject, towards one source or upstream (`about`; None: the job itself).

    `state` is "OK", or the trouble, with another text for another trouble; None if it is not known now.
    """

    job: str
    subject: Subject
    about: str | None
    state: str | None
    message: str = ""

    @property
    def key(self) -> str:
        """What tells this standing from the others of the job."""
        return self.subject if self.about is None else f"{self.subject} {self.about}"


@dataclass(frozen=True, slots=True)
class News:
    """A standing that differs from the reported one; `before` is the latter."""

    standing: Health
    before: str

    @property
    def is_recovery(self) -> bool:
        """Whether it is a trouble that is over."""
        return self.standing.state == OK

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for templates."""
        now = self.standing
        names = ("job", "subject", "about", "state", "message")
        return {**{name: getattr(now, name) for name in names}, "before": self.before, "is_recovery": self.is_recovery}


def news(told: Mapping[str, str], standings: Iterable[Health]) -> list[News]:
    """Return what has changed since the last report; anything not reported yet was OK.

    Example:
        >>> failed = Health("flights.clean", "expectation", None, "FAILED: rows > 0")
        >>> [one.before for one in news({}, [failed])], news({"expectation": "FAILED: rows > 0"}, [failed])
        (['OK'], [])
    """
    return [
        News(standing, told.get(standing.key, OK))
        for standing in standings
        if standing.state is not None and standing.state != told.get(standing.key, OK)
    ]


def standings(store: BookmarkStore, job: str, subjects: Iterable[Subject]) -> list[Health]:
    """Return how a job stands in each of some subjects.

    Raises:
        JobUnknownError: no such bookmark.
    """
    return [standing for subject in subjects for standing in _LOOKS[subject](store, job)]


# ---- one subject each


def _health(store: BookmarkStore, job: str) -> list[Health]:
    verdict = health(store, job)
    state, is_trouble = verdict.state.value, verdict.state.is_trouble
    said = health_message(job, state, verdict.reason, verdict.since if is_trouble else None)
    return [Health(job, "health", None, state if is_trouble else OK, said)]


def health_message(job: str, state: str, reason: str, since: datetime | None) -> str:
    """Return the health of a job as one line for a person."""
    return f"job {job!r} is {state}{'' if since is None else f' since {to_text(since)}'}: {reason}"


def _lags(store: BookmarkStore, job: str) -> list[Health]:
    return [_lag_of(behind) for behind in lag(store, job)]


def _lag_of(behind: Lag) -> Health:
    # An upstream that went back is reported as such, and says nothing of how fast the job reads.
    state = behind.state.value if behind.state in _LAGGING else None
    if behind.state is LagState.OK:
        return Health(behind.job, "lag", behind.source, state, f"job {behind.job!r} keeps up with {behind.source!r}")
    counts = (("runs", behind.runs), ("files", behind.files))
    unread = ", ".join(f"{value} {name}" for name, value in counts if value is not None) or "not known"
    said = f"job {behind.job!r} is {behind.state.value} behind {behind.source!r}: {behind.why} (unread: {unread})"
    return Health(behind.job, "lag", behind.source, state, said)


def _expectation(store: BookmarkStore, job: str) -> list[Health]:
    """Runs that did not commit carry the number that comes next, until one does; the highest fence is the newest."""
    head = store.head(job)
    open_runs = store.runs(job, after=head.run_number, reverse=True)
    error = next((run.error for run in open_runs if run.error is not None), None)
    if error is None:
        return [Health(job, "expectation", None, OK, f"job {job!r} committed run {head.run_number}")]
    if _FAILED not in error:
        return [Health(job, "expectation", None, None)]  # it failed before it came to what it expects
    message = error.partition(_FAILED)[2].partition(_END)[0]
    return [Health(job, "expectation", None, f"FAILED: {message}", f"job {job!r}: expectation failed: {message}")]


def _upstreams(store: BookmarkStore, job: str) -> list[Health]:
    looked = Neighbours.of_job(store, job)
    return [_upstream(store, looked, reader) for reader in looked.readers]


def _upstream(store: BookmarkStore, looked: Neighbours, reader: JobConsumer) -> Health:
    head, edge, name = looked.heads.get(reader.upstream), reader.edge, reader.upstream
    if head is None or edge is None:
        return Health(reader.job, "upstream", name, None)
    if edge.epoch != head.epoch:
        target = rewound_below(edge, head, store.lines(name))
        if target is not None:
            said = f"upstream {name!r} went back to run {target}, and job {reader.job!r} has read run {edge.highest}"
            return Health(reader.job, "upstream", name, f"REWOUND to run {target}", said)
    if edge.changes != head.changes:
        replayed = lowest_replayed(store.runs(name, until=edge.highest), edge.changes)
        if replayed is not None:
            number = replayed.key.number
            said = f"run {number} of upstream {name!r} was replayed since job {reader.job!r} read it"
            return Health(reader.job, "upstream", name, f"REPLAYED run {number}", said)
    return Health(reader.job, "upstream", name, OK, f"job {reader.job!r} has what upstream {name!r} published")


_LOOKS: Mapping[Subject, Callable[[BookmarkStore, str], list[Health]]] = {
    "health": _health,
    "lag": _lags,
    "expectation": _expectation,
    "upstream": _upstreams,
}
