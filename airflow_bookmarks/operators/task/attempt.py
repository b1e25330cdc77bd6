"""One try of a task from the bookmark's point of view: what the worker decides and does, without Spark."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    BookmarkError,
    ChangeRefusedError,
    NotCommittedError,
)
from airflow_bookmarks.core.head import LeaseDecision, busy_error, may_take
from airflow_bookmarks.lifecycle.protocol.finish import (
    ExecutionOutcome,
    finish,
    last_part,
    last_summary,
    outcome,
    publish_due,
)
from airflow_bookmarks.lifecycle.run.checks.replayable import changed_upstream, check_worth_a_replay
from airflow_bookmarks.lifecycle.state.partitions_left import partitions_left
from airflow_bookmarks.lifecycle.state.summary import batches_until

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.run import Execution
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.state.partitions_left import PartitionsLeft
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.operators.task.task_config import OnClear, OnConflict
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import Snapshot

log = logging.getLogger(__name__)

_WITHOUT_A_WORD = "the driver ended without a word; the log of the task says more"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task from the bookmark's point of view. The worker does all of it, without Spark.

    Clearing a task begins a new series of tries, and what an earlier one finished does not count for it. A series is
    told by `identity.series`, Airflow's `max_tries`, which a clear raises and a retry leaves. `first` is the number of
    its first try as far as the DAG file tells, whose `retries` may have changed since: for executions without a series.
    """

    store: BookmarkStore
    job: str
    identity: RunIdentity
    first: int
    environment: RunEnvironment

    @property
    def is_retry(self) -> bool:
        """Whether an earlier try may have been of this series; `has_begun` tells which was."""
        return self.identity.attempt > (self.first if self.identity.series is None else 1)

    def finish_earlier(self) -> Summary | None:
        """Publish what an earlier try of this series committed; None if it left nothing, and Spark has to run."""
        if not self.is_retry:
            return None
        state, seen = outcome(self.store, self.job, self.identity.run_id)
        if state not in (ExecutionOutcome.FINISHED, ExecutionOutcome.DUE) or not self.has_begun(seen.execution):
            return None
        log.info("bookmark %s: an earlier try of %r has committed; Spark is not needed", self.job, self.identity.run_id)
        return finish(self.store, self.job, self.identity, self.environment)

    def cleared(self, on_clear: OnClear) -> tuple[int | None, Summary | None]:
        """Say what becomes of a try whose execution has finished before: the run to replay, or the summary to return.

        Both are None if there is nothing to replay: it is the first time, or its result was undone since, or what it
        read of an upstream was replayed or undone.

        Raises:
            ChangeRefusedError: `on_clear` is "fail", the execution made several runs, or a replay would be refused by
                the driver too: it wrote to a table, or a later run has replaced what it wrote.
        """
        seen = self.store.snapshot(self.job, self.identity.run_id)
        execution = seen.execution
        if execution is None or seen.head is None or execution.last_run is None:
            return None, None
        is_again = execution.is_finished or execution.replaying is not None
        if not is_again or self.identity.attempt <= execution.attempt:
            return None, None  # tries that begin anew are those of a DAG run that was deleted and made again
        number = execution.replaying or execution.last_run
        run = self.store.committed_run(self.job, number)
        if run is None or not self.store.ancestry(self.job, seen.head.epoch).has(run):
            log.info("bookmark %s: run %d of this task was undone since; it reads what is new", self.job, number)
            return None, None
        if on_clear == "skip":
            log.info("bookmark %s: run %d is finished, and bookmark_on_clear is 'skip'", self.job, number)
            return None, last_summary(self.store, self.job, seen)
        first = batches_until(self.store, self.job, run, execution.first_run)[0].key.number
        if on_clear == "fail" or first < number:
            why = "bookmark_on_clear is 'fail'" if on_clear == "fail" else f"it made several runs, from {first} on"
            raise ChangeRefusedError(
                f"job {self.job!r}: {self.identity.run_id!r} has finished run {number}, its task was cleared, and {why}"
                f". Nothing was read or changed; Spark was not started. 'airflow-bookmarks rewind {self.job} --to "
                f"{first - 1 or 'an earlier run'}' makes it read that input again."
            )
        changed = changed_upstream(self.store, run)
        if changed is not None:
            # Its plan names files that are gone. A run that plans anew does what on_rewind says.
            log.info("bookmark %s: run %d is not replayed: %s since; a new run is made", self.job, number, changed)
            return None, None
        check_worth_a_replay(self.store, self.job, seen.head, run)
        log.info("bookmark %s: the task was cleared: run %d is replayed", self.job, number)
        return number, None

    def check_free(self, on_conflict: OnConflict) -> None:
        """Make sure that this try may begin, before Spark is started for nothing.

        Raises:
            JobBusyError: another run holds the job, and `on_conflict` is "fail". With "wait" the driver waits.
            AttemptRefusedError: this try was killed, or a higher one was seen.
        """
        seen = self.store.snapshot(self.job, self.identity.run_id)
        verdict = may_take(
            seen.head, seen.execution, self.identity.run_id, self.identity.attempt, self.environment.clock()
        )
        if verdict is LeaseDecision.BUSY:
            if on_conflict == "fail":
                raise busy_error(self.job, seen.head)
            log.info("bookmark %s: the driver will wait: %s", self.job, busy_error(self.job, seen.head))
        elif verdict is not LeaseDecision.ALLOWED:
            raise AttemptRefusedError(
                f"job {self.job!r}: try {self.identity.attempt} of {self.identity.run_id!r} may not begin: this try "
                "was killed, or a higher one was seen (a DAG run that was deleted and made again counts its tries from "
                "1). "
                "Nothing was read or changed; Spark was not started. Clear the task, or trigger a DAG run with "
                "another run id."
            )

    def finish(self) -> Summary:
        """Make sure that the run is published, once Spark has ended well.

        Raises:
            NotCommittedError: the driver ended without a commit; this try is fenced then, so that nobody waits for it.
            PublishError: committed, and can't be published; it stays due.
        """
        seen = self.store.snapshot(self.job, self.identity.run_id)
        try:
            if seen.execution is not None and seen.execution.attempt > 0 and not self.has_begun(seen.execution):
                raise NotCommittedError(
                    f"job {self.job!r}: Spark ended and try {self.identity.attempt} of {self.identity.run_id!r} never "
                    "began a bookmark run; what is there is of an earlier time. State and targets are as before. "
                    "Does the script open `with BookmarkedJob(spark) as job:`, under this job's name? With "
                    "durable=True the provider submits nothing where its earlier Spark job has finished: leave it out."
                )
            return finish(self.store, self.job, self.identity, self.environment)
        except NotCommittedError:
            self.fence(self.store, error="Spark ended, and nothing was committed")
            raise

    def settle(self, error: Exception, exit_code: int | None = None) -> Summary | None:
        """Say what became of the run after Spark failed; return its summary if it is published by the worker.

        None means that the task has to fail with `error`, which then has a note on where the bookmark stands. The try
        is fenced first: in client mode the Python driver may outlive spark-submit, and must not commit after that.
        `exit_code` is that of the driver, if it is known.
        """
        try:
            self.fence_ended(exit_code)
            state, seen = outcome(self.store, self.job, self.identity.run_id)
            if state is ExecutionOutcome.DUE and self.has_begun(seen.execution):
                summary = finish(self.store, self.job, self.identity, self.environment)
                log.warning(
                    "bookmark %s: Spark failed after the commit of run %s, which the worker has published; the task "
                    "succeeds. Spark's error: %s",
                    self.job,
                    summary.run_number,
                    error,
                )
                return summary
            if state is ExecutionOutcome.PARTLY_DUE and self.has_begun(seen.execution):
                publish_due(self.store, self.job, self.identity, self.environment, seen)
        except BookmarkError as also:
            error.add_note(f"bookmark {self.job}: what became of the run could not be settled: {also}")
            return None
        made = last_part(self.store, self.job, seen) if self.has_begun(seen.execution) else None
        error.add_note(
            _fate(self.job, state is ExecutionOutcome.FINISHED and self.has_begun(seen.execution), made, seen)
        )
        return None

    def partitions_left(self) -> PartitionsLeft:
        """Return the partitions of a loop (`job.partitions`) that are not read: a retry reads these, and no others."""
        return partitions_left(self.store, self.job, self.identity.run_id)

    def fence_ended(self, exit_code: int | None) -> None:
        """Fence this try, after Spark has failed; the head says so, where the driver could not.

        `exit_code` is that of the driver, if it is known.
        """
        self.fence(self.store, error=_WITHOUT_A_WORD, exit_code=exit_code)

    def fence(self, store: BookmarkStore, *, error: str | None = None, exit_code: int | None = None) -> None:
        """Fence this try: if its driver is still alive, it can't plan, commit or mark any more.

        `error` and `exit_code` are for the head, where Spark has ended: see `BookmarkStore.fence`.
        """
        run_id, attempt = self.identity.run_id, self.identity.attempt
        held = store.fence(self.job, run_id, attempt, error=error, exit_code=exit_code)
        log.info(
            "bookmark %s: try %d of %r is fenced%s",
            self.job,
            self.identity.attempt,
            self.identity.run_id,
            "; it held the job" if held else "",
        )

    def has_begun(self, execution: Execution | None) -> bool:
        """Whether a driver of this series of tries took the job."""
        if execution is None or execution.attempt == 0:
            return False
        if execution.series is None or self.identity.series is None:
            return execution.attempt >= self.first
        return execution.series == self.identity.series


def _fate(job: str, is_published: bool, made: int | None, seen: Snapshot) -> str:
    if not is_published and made is not None:
        return (
            f"bookmark {job}: its runs up to {made} are committed and published, and stay; a retry reads what is left."
        )
    if is_published and seen.execution is not None:
        return (
            f"bookmark {job}: run {seen.execution.last_run} is committed and published all the same; what failed came "
            "after it. A retry succeeds without Spark."
        )
    if seen.head is None:
        return f"bookmark {job}: nothing was committed; the job has no bookmark yet."
    return (
        f"bookmark {job}: nothing was committed; it stands at run {seen.head.run_number} as before, and the next run "
        "begins there; the error says what has to be decided or mended first."
    )
