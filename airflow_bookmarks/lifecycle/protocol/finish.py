"""Finish an execution: what the worker does when the driver process has ended. It plans nothing."""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    MisuseError,
    NotCommittedError,
    OutOfBoundsError,
    PublishError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import busy_error
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.lifecycle.protocol.publish import publish_run, sweep_after_mark
from airflow_bookmarks.lifecycle.protocol.recover import check_known_sinks
from airflow_bookmarks.lifecycle.state.summary import Summary, batches_until
from airflow_bookmarks.lifecycle.state.summary_sums import joined
from airflow_bookmarks.sinks.registry import SINKS

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import Snapshot

log = logging.getLogger(__name__)


class ExecutionOutcome(Enum):
    """The outcome of an execution."""

    NOT_BEGUN = auto()
    NOT_COMMITTED = auto()
    PARTLY_DUE = auto()  # the run to publish is not its last run: a batch, or one that an earlier attempt had written
    DUE = auto()
    FINISHED = auto()


def outcome(store: BookmarkStore, job: str, run_id: str) -> tuple[ExecutionOutcome, Snapshot]:
    """Return the outcome of an execution: whether it began, committed, and whether its publish is due or done."""
    seen = store.snapshot(job, run_id)
    if seen.execution is None or seen.execution.attempt == 0 or seen.head is None:
        return ExecutionOutcome.NOT_BEGUN, seen
    if seen.execution.is_finished and seen.execution.replaying is None:
        return ExecutionOutcome.FINISHED, seen
    due = _due_run(store, job, seen)
    if due is None or (due.replayed_by or due.run_id) != run_id:
        return ExecutionOutcome.NOT_COMMITTED, seen
    return (ExecutionOutcome.DUE if due.is_last or due.replayed_by is not None else ExecutionOutcome.PARTLY_DUE), seen


def finish(store: BookmarkStore, job: str, identity: RunIdentity, environment: RunEnvironment) -> Summary:
    """Make sure that the execution has published, by publishing what it committed; return its last run.

    Call it only after the driver process has ended: the worker takes over the lease of its attempt.

    Raises:
        NotCommittedError: the driver never began, or ended without a commit: nothing moved.
        PublishError: committed, and can't be published.
        JobBusyError: committed, and another run has the job by now: it publishes what is due.
    """
    state, seen = outcome(store, job, identity.run_id)
    if state is ExecutionOutcome.NOT_BEGUN:
        raise NotCommittedError(
            f"job {job!r}: Spark ended and no bookmark run of {identity.run_id!r} ever began. Nothing was committed. "
            "Does the script open `with BookmarkedJob(spark) as job:`, under this job's name? With "
            "bookmark_option='disable' no commit is asked for."
        )
    if state in (ExecutionOutcome.DUE, ExecutionOutcome.PARTLY_DUE):
        publish_due(store, job, identity, environment, seen)
        state, seen = outcome(store, job, identity.run_id)
    if state is ExecutionOutcome.FINISHED:
        return last_summary(store, job, seen)
    made = last_part(store, job, seen)
    if made is not None:
        raise NotCommittedError(
            f"job {job!r}: {identity.run_id!r} is committed and published up to run {made}, and Spark ended before its "
            "last run was made: a loop over batches that was left, or an exception in it. What is left is not read "
            "yet, and nothing is read twice. Run the task again."
        )
    raise NotCommittedError(
        f"job {job!r}: Spark ended and {identity.run_id!r} (attempt {identity.attempt}) has not committed. State and "
        "targets are as before; the next run reads that input again. The driver's log says why: an exception in "
        "the block, sys.exit, or a script that never leaves the block."
    )


def last_part(store: BookmarkStore, job: str, seen: Snapshot) -> int | None:
    """Return the last run of an execution that is not finished, if the execution goes on after it.

    None where the execution has committed none, or its last run was the last of an earlier series of tries.
    """
    last = None if seen.execution is None else seen.execution.last_run
    run = None if last is None else store.committed_run(job, last)
    return None if run is None or run.is_last else last


def publish_due(
    store: BookmarkStore, job: str, identity: RunIdentity, environment: RunEnvironment, seen: Snapshot
) -> None:
    """Publish what an execution has committed, under the lease of its attempt, whose driver has ended.

    Raises:
        SinkUnknownError: it wrote to a sink that is not known here.
        OutOfBoundsError: state names files that are not the job's.
        PublishError: it can't be published. JobBusyError, NotCommittedError: another run has the job by now.
    """
    due = _due_run(store, job, seen)
    if due is not None:
        check_known_sinks(job, due)
    SINKS.check_roots(Territory(store.namespace, job), [] if seen.head is None else list(seen.head.staging))
    lease = seen.head.holder(environment.clock()) if seen.head is not None else None
    if lease is not None and lease.run_id != identity.run_id:
        # A living run of another execution publishes what is due before it plans, so its job must not be taken.
        raise busy_error(job, seen.head)
    replays = seen.execution.replaying if seen.execution is not None else None
    grant = store.take(job, identity, seen, environment.lease_time, replays=replays)
    if due is None or grant is None:
        raise NotCommittedError(
            f"job {job!r} was taken over by another run, which publishes what is due; see its task."
        )
    log.warning("bookmark %s: run %s is committed and its driver is gone; the worker publishes it", job, due.key)
    try:
        publish_run(store, grant, due, environment)
        store.mark(grant, due, is_own=True)
    except (PublishError, OutOfBoundsError):
        store.release(grant)  # no other run has to wait for the end of a lease whose driver has ended
        raise
    sweep_after_mark(store, job, due, grant.base.staging, due.key.fence)


def _due_run(store: BookmarkStore, job: str, seen: Snapshot) -> Run | None:
    if seen.head is None or seen.head.publishing is None:
        return None
    return store.run(job, seen.head.publishing)


def side_summary(store: BookmarkStore, job: str, identity: RunIdentity, option: str) -> Summary:
    """Return the summary of a pause or disable run from its side record; without one, it claims nothing."""
    records: list[dict[str, Any]] = store.sides(job)
    made = [
        Summary(
            job=job,
            namespace=store.namespace,
            run_id=identity.run_id,
            option=option,
            is_published=True,
            contexts=record["contexts"],
            outputs=record["outputs"],
        )
        for record in records
        if (record.get("run_id"), record.get("attempt")) == (identity.run_id, identity.attempt)
    ]
    return joined(made) if made else Summary(job, store.namespace, identity.run_id, option)


def last_summary(store: BookmarkStore, job: str, seen: Snapshot) -> Summary:
    """Return the summary of the last run that an execution committed, in batches the sums over all of them."""
    if seen.execution is None or seen.execution.last_run is None:
        raise MisuseError(f"job {job!r}: this execution has committed no run")
    number = seen.execution.last_run
    last = store.committed_run(job, number)
    if last is not None:
        runs = batches_until(store, job, last, seen.execution.first_run)
        return joined([Summary.of(run, store.namespace, job) for run in runs])
    raise StateCorruptError(
        f"job {job!r}: execution {seen.execution.run_id!r} says that it committed run {number}, and there is no such "
        "run item. Nothing was changed."
    )
