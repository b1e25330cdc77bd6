"""Begin: take the lease of a job under a new fence, or say who has it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from airflow_bookmarks.core.errors import AttemptRefusedError, ChangedMeanwhileError, JobBusyError
from airflow_bookmarks.core.head import Take, may_take
from airflow_bookmarks.lifecycle.point import Point
from airflow_bookmarks.store.naming import resolve_name
from airflow_bookmarks.store.transfer import check_unclaimed

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import Caller
    from airflow_bookmarks.lifecycle.lease import Machine
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, Holding
    from airflow_bookmarks.store.state_reader import Snapshot

log = logging.getLogger(__name__)

OnConflict = Literal["fail", "wait"]
_POLL_S = 5.0


def begin(
    store: BookmarkStore,
    job: str,
    caller: Caller,
    machine: Machine,
    *,
    on_conflict: OnConflict = "fail",
    wait_for: timedelta = timedelta(hours=1),
    replays: int | None = None,
) -> Holding:
    """Take the job.

    Args:
        on_conflict: whether another run that holds the lease is an error at once, or is waited for, up to `wait_for`.
        replays: the run that this attempt is to make again, where it plans nothing new.

    Raises:
        JobBusyError: another run holds the lease (and still does after the wait).
        AttemptRefusedError: this attempt was killed, or a higher one was seen.
        ChangedMeanwhileError: the name was given to another job since the caller resolved it.
    """
    deadline = machine.monotonic() + wait_for.total_seconds()
    while True:
        seen = store.look(job, caller.run_id)
        verdict = may_take(seen.head, seen.execution, caller.run_id, caller.attempt, machine.clock())
        if verdict is Take.ALLOWED:
            holding = store.take(job, caller, seen, machine.lease_time, replays=replays)
            if holding is not None:
                machine.at(Point.TAKEN)
                return holding
            _check_name(store, job)
            continue  # it moved between look and take: look again
        if verdict is not Take.BUSY:
            raise _refused(job, caller, verdict)
        if seen.head is not None:
            check_unclaimed(job, seen.head)
        if on_conflict == "fail" or machine.monotonic() >= deadline:
            raise _busy(job, seen)
        log.info("bookmark %s: waiting for %s", job, _busy(job, seen).holder)
        machine.sleep(_POLL_S)


def _check_name(store: BookmarkStore, job: str) -> None:
    """Make sure that the name was not given to another job since it was resolved."""
    key = resolve_name(store, job)
    if key != job:
        raise ChangedMeanwhileError(
            f"{job!r} became another name of job {key!r} while a run of it was about to begin. Nothing was read or "
            f"changed. Run the task again: it works on {key!r} then."
        )


def _busy(job: str, seen: Snapshot) -> JobBusyError:
    lease = seen.head.lease if seen.head is not None else None
    if lease is None:
        raise ValueError(f"job {job!r} has no lease")
    return JobBusyError(job, lease.run_id, lease.attempt, lease.since, lease.expires_at)


def _refused(job: str, caller: Caller, verdict: Take) -> AttemptRefusedError:
    why = "was killed" if verdict is Take.KILLED else "is lower than one that was already seen"
    return AttemptRefusedError(
        f"job {job!r}: attempt {caller.attempt} of {caller.run_id!r} {why}; a driver that starts late must not work "
        "on the job any more. Nothing was read or changed. Run the task again: a new attempt may begin."
    )
