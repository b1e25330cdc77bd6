"""The job as one run holds it: its lease, what is staged for it, and the way from the commit to the mark.

begin -> recover -> ... commit -> publish -> mark -> sweep      or fail

What the run reads and writes, and what its commit says, is up to the run: see `enabled` and `replay`.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, MisuseError
from airflow_bookmarks.core.rules.start import BEGINNING
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.lifecycle.protocol.acquire import begin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import Renewer
from airflow_bookmarks.lifecycle.protocol.publish import (
    publish_run,
    stored_output,
    sweep_after_mark,
    sweep_before_plan,
)
from airflow_bookmarks.lifecycle.protocol.recover import STAYS_OPEN, recover
from airflow_bookmarks.lifecycle.run.commit_preparation import CommitPreparation, ItemBodies
from airflow_bookmarks.lifecycle.state.job_state import JobStates
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.lifecycle.state.summary import Summary, log_committed
from airflow_bookmarks.lifecycle.state.timing import Stopwatch
from airflow_bookmarks.sinks.failure import named_failure
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.core.run import OutputEntry, Run, RunKey
    from airflow_bookmarks.lifecycle.protocol.acquire import OnConflict
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.sinks.staging import StagingRequest
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)


class LeasedRun:
    """What a run that holds the lease has of its job; without a lock, which is that of the run.

    `staging` are the roots to sweep after the mark, `has_item` is whether something of the run is stored yet. `next` is
    the holding of the run that follows in the same execution.
    """

    def __init__(
        self,
        store: BookmarkStore,
        grant: LeaseGrant,
        environment: RunEnvironment,
        renewer: Renewer,
        stopwatch: Stopwatch,
        *,
        sinks: SinkRegistry = SINKS,
        start: Start = BEGINNING,
    ) -> None:
        self.store, self.grant, self.environment = store, grant, environment
        self.renewer, self.stopwatch = renewer, stopwatch
        self.sinks, self.start = sinks, start
        self.territory = Territory(store.namespace, grant.job)
        self.bodies = ItemBodies(store)
        self.staging: list[str] = list(grant.base.staging)
        self.has_item = False
        self.next: LeaseGrant | None = None
        self.is_over = False
        self.is_marked = False

    # ---- begin

    @classmethod
    def begin(
        cls,
        store: BookmarkStore,
        job: str,
        identity: RunIdentity,
        environment: RunEnvironment,
        *,
        on_conflict: OnConflict,
        wait_for: timedelta,
        sinks: SinkRegistry,
        replays: int | None = None,
        start: Start = BEGINNING,
    ) -> LeasedRun:
        """Take the job, finish what is due, settle what is open.

        Raises:
            JobBusyError, AttemptRefusedError, PublishError, SourceError, StoreError: nothing of the run has begun.
        """
        stopwatch = Stopwatch(environment.monotonic)
        with stopwatch.measure("begin"):
            grant = begin(
                store, job, identity, environment, on_conflict=on_conflict, wait_for=wait_for, replays=replays
            )
            leased = cls(store, grant, environment, Renewer(store, environment), stopwatch, sinks=sinks, start=start)
            leased.renewer.start(grant)
            try:
                leased._settle()
            except BaseException as error:  # nobody has the run yet, so nobody else can give the job back
                leased.give_back(cause_of(error))
                raise
        return leased

    def _settle(self) -> None:
        grant, adopted = recover(self.store, self.grant, self.environment, self.sinks)
        self.hold(grant)
        if adopted is not None:
            self._commit_adopted(adopted)
        # Nothing is due or open now, so nobody needs what lower fences staged. A driver whose publish was dropped by a
        # forced rewind finds nothing to move any more: else it could move files into the target after this run has
        # listed what it replaces. What it stages from now on, the last sweep takes.
        sweep_before_plan(self.store, self.grant.job, self.staging, self.grant.fence - 1, self.sinks)

    def _commit_adopted(self, adopted: Run) -> None:
        """Commit and publish a run that was taken over, as it was planned; then go on under the next fence."""
        reader = ContextReader(self.store, self.grant.job, self.grant.base, self.start)
        landed = replace(adopted, outputs={name: self._as_landed(adopted, name) for name in adopted.outputs})
        commit = self.preparation(reader, JobStates(reader)).commit_adopted(landed)
        run = replace(self.store.commit(self.grant, commit), fences=adopted.fences)  # under which it has staged
        for ctx in adopted.plans.keys() & commit.contexts.keys():
            log_committed(log, self.grant.job, ctx, self.grant.run_number, commit.contexts[ctx])
        publish_run(self.store, self.grant, run, self.environment, self.sinks)
        self.hold(self._mark_and_take(run))

    def _as_landed(self, adopted: Run, name: str) -> OutputEntry:
        """Return an output with what its sink tells of the rows that have landed: its driver died before it could."""
        entry = adopted.outputs[name]
        sink = self.sinks.reaching(self.store.databases).find_committing(entry.sink)
        if sink is None or entry.is_left_out:
            return entry
        output = stored_output(self.store, self.grant.job, adopted, name)
        with named_failure(sink.kind, output, STAYS_OPEN):
            return replace(entry, stats={**entry.stats, **sink.figures(output)})

    def hold(self, grant: LeaseGrant) -> None:
        """Go on with another holding of the job."""
        self.grant = grant
        self.renewer.switch(grant)

    # ---- stage, commit

    def stage(self, key: RunKey, output: str, place: StagingRequest) -> tuple[OutputEntry, list[str]]:
        """Return where an output is staged, and the roots to sweep with it; the caller stores both."""
        entry, root = self.sinks.stage(self.territory, key, output, place)
        return entry, self.staging if root is None or root in self.staging else [*self.staging, root]

    def preparation(self, reader: ContextReader, states: JobStates) -> CommitPreparation:
        """Return what a commit is built from, by the contexts and the `job.state` of the run."""
        return CommitPreparation(self.grant, reader, states, self.bodies, self.stopwatch)

    def publish(self, run: Run, *, goes_on: bool = False) -> Summary:
        """Publish, mark and sweep a committed run; `goes_on`: hold the job for the next run of the execution."""
        with self.stopwatch.measure("publish"):
            publish_run(self.store, self.grant, run, self.environment, self.sinks)
        run = replace(run, metrics={**run.metrics, "seconds": self.stopwatch.seconds()})
        if goes_on:
            self.next = self._mark_and_take(run)
            self.renewer.switch(self.next)
        else:
            self.store.mark(self.grant, run, is_own=True)
            self.renewer.stop()
        self.is_marked = True
        self.environment.at(Failpoint.MARKED)
        sweep_after_mark(self.store, self.grant.job, run, self.staging, self.grant.fence, self.sinks)
        self.environment.at(Failpoint.SWEPT)
        return Summary.of(run, self.store.namespace, self.grant.job)

    def _mark_and_take(self, run: Run) -> LeaseGrant:
        """Mark the own run, and take the next fence for the next run of the same execution, in one transaction."""
        self.renewer.rest()  # a renewal under the old fence, on its way now, must not count as a lost lease
        following = self.store.mark(self.grant, run, is_own=True, take_next=self.environment.lease_time)
        if following is None:
            raise MisuseError(f"job {self.grant.job!r}: the mark of run {run.key} took no next fence")
        return following

    # ---- batches

    def following(self) -> LeasedRun:
        """Return the job as the next run of this execution holds it.

        Raises:
            MisuseError: this run was the last one, or has not ended.
        """
        if self.next is None:
            raise none_follows(self.grant.job)
        stopwatch = Stopwatch(self.environment.monotonic)
        leased = LeasedRun(self.store, self.next, self.environment, self.renewer, stopwatch, sinks=self.sinks)
        self.next = None
        return leased

    def leave(self) -> None:
        """Give the job back between two runs of an execution that is not finished; otherwise do nothing."""
        if self.next is None:
            return
        self.grant, self.next = self.next, None
        log.warning("bookmark %s: the loop was left with input over; the next run of the job reads it", self.grant.job)
        self.give_back()

    # ---- end

    def check_running(self, what: str) -> None:
        """Make sure that the run still holds the job, and has not ended.

        Raises:
            FencedError: the job is not ours any more. MisuseError: the run is over.
        """
        if self.renewer.fenced is not None:
            raise self.renewer.fenced
        if self.is_over:
            raise MisuseError(
                f"job {self.grant.job!r}: can't {what}, this run is over (committed or aborted). Nothing moved. "
                "Begin another run."
            )

    def fail(self, error: str, *, is_kept: bool, is_failure: bool = True, exit_code: int | None = None) -> None:
        """Give the job back without a commit; `is_kept`: the error stays in the history, also without an item.

        `is_failure`: the head says so too; not where the run only leaves its work to another one. `exit_code` is that
        of the driver, if it is known.
        """
        self.is_over = True
        self.renewer.stop()
        log.warning("bookmark %s: the run failed, nothing is committed: %s", self.grant.job, in_lines(error))
        try:
            self.store.fail(
                self.grant,
                error,
                has_item=self.has_item,
                is_kept=is_kept,
                is_failure=is_failure,
                exit_code=exit_code,
            )
        except BookmarkError as also:
            # The user has to see the reason for the abort; the next begin settles the run in any case.
            log.warning("bookmark %s: the failed run could not be marked: %s", self.grant.job, also)

    def let_go(self, error: str, *, exit_code: int | None = None) -> None:
        """Give the job back after the commit: a failed publish stays due, for the next run."""
        if self.is_marked:
            self.leave()
        else:
            self.give_back(error, version=self.grant.base.version + 1, exit_code=exit_code)

    def give_back(self, error: str | None = None, *, version: int | None = None, exit_code: int | None = None) -> None:
        """Release the lease, so that no other run has to wait for its end; what is due or open stays on the head.

        The head says why, where there is an `error`; `version` is its version by now, if this run has committed.
        `exit_code` is that of the driver, if it is known.
        """
        self.renewer.stop()
        try:
            self.store.release(self.grant, error, version=version, exit_code=exit_code)
        except BookmarkError as also:
            log.warning("bookmark %s: the lease could not be released and runs out by itself: %s", self.grant.job, also)


def none_follows(job: str) -> MisuseError:
    """Return the error of a loop that asks a run for the next one where there is none."""
    return MisuseError(f"job {job!r}: no run follows this one. Nothing moved. Begin another one.")
