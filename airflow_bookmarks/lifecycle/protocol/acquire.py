"""Acquire the lease of a job under a new fence, or report who holds it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    ChangedMeanwhileError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import LeaseDecision, busy_error, may_take
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.new_name import check_job_name
from airflow_bookmarks.lifecycle.protocol.owner import owner_to_bind
from airflow_bookmarks.store.transitions.importing import check_unclaimed
from airflow_bookmarks.store.transitions.lease import RUN_NUMBER
from airflow_bookmarks.store.transitions.naming import alias_of

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant
    from airflow_bookmarks.store.reader import Snapshot

log = logging.getLogger(__name__)

OnConflict = Literal["fail", "wait"]
_POLL_S = 5.0
_UNMOVED = 3


def begin(
    store: BookmarkStore,
    job: str,
    identity: RunIdentity,
    environment: RunEnvironment,
    *,
    on_conflict: OnConflict = "fail",
    wait_for: timedelta = timedelta(hours=1),
    replays: int | None = None,
) -> LeaseGrant:
    """Take the job.

    Args:
        on_conflict: whether another run that holds the lease is an error at once, or is waited for, up to `wait_for`.
        replays: the run that this attempt is to make again, where it plans nothing new.

    Raises:
        JobBusyError: another run holds the lease (and still does after the wait).
        AttemptRefusedError: this attempt was killed, or a higher one was seen.
        NameInvalidError: the job is new, and its name may look like another one.
        OwnerError: the job belongs to another DAG than the caller's, which does not share it.
        ChangedMeanwhileError: the name was given to another job since the caller resolved it.
        StateCorruptError: its head is gone, or it can't be taken though nothing moves.
    """
    deadline = environment.monotonic() + wait_for.total_seconds()
    before, unmoved = None, 0
    while True:
        seen = store.snapshot(job, identity.run_id)
        verdict = may_take(seen.head, seen.execution, identity.run_id, identity.attempt, environment.clock())
        owner = owner_to_bind(store, job, seen.head, identity)
        if verdict is LeaseDecision.ALLOWED:
            check_job_name(store, job, seen.head)
            grant = store.take(job, identity, seen, environment.lease_time, replays=replays, owner=owner)
            if grant is not None:
                environment.at(Failpoint.TAKEN)
                return grant
            unmoved = unmoved + 1 if seen == before else 0
            _check_takeable(store, job, seen, unmoved)
            before = seen
            continue  # it moved between read and take: read again
        if verdict is not LeaseDecision.BUSY:
            raise _refused(job, identity, verdict)
        if seen.head is not None:
            check_unclaimed(job, seen.head)
        if on_conflict == "fail" or environment.monotonic() >= deadline:
            raise busy_error(job, seen.head)
        log.info("bookmark %s: waiting for %s", job, busy_error(job, seen.head).holder)
        environment.sleep(_POLL_S)


def _check_takeable(store: BookmarkStore, job: str, seen: Snapshot, unmoved: int) -> None:
    """Make sure that another try may help: the name is still that of the job, and the items can be decoded.

    `unmoved` counts the tries in a row that read the same state and were refused nevertheless.
    """
    entry = store.index_entry(job)
    key = alias_of(entry, job) or job
    if key != job:
        raise ChangedMeanwhileError(
            f"{job!r} became another name of job {key!r} while a run of it was about to begin. Nothing was read or "
            f"changed. Run the task again: it works on {key!r} then."
        )
    # Read once more: another run may have begun the job and committed since the head was missing.
    if seen.head is None and RUN_NUMBER in (entry or {}) and store.snapshot(job).head is None:
        raise StateCorruptError(
            f"the head of job {job!r} is gone, and it had one: to begin anew would read everything again, under "
            "numbers that were used. Nothing was read or changed. Restore the table from a backup, or import an export."
        )
    if unmoved >= _UNMOVED:
        raise StateCorruptError(
            f"job {job!r} can't be taken, although no run holds it: one of its items has contents that no version of "
            "this package writes. Nothing was read or changed. 'airflow-bookmarks doctor' may name it; "
            "restore the table from a backup, or import an export."
        )


def _refused(job: str, identity: RunIdentity, verdict: LeaseDecision) -> AttemptRefusedError:
    why = "was killed" if verdict is LeaseDecision.KILLED else "is lower than one that was already seen"
    return AttemptRefusedError(
        f"job {job!r}: attempt {identity.attempt} of {identity.run_id!r} {why}; a driver that starts late must not "
        "work on the job any more. Nothing was read or changed. Run the task again: a new attempt may begin."
    )
