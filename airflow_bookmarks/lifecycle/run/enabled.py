"""Enabled runs, from begin to mark: what a driver does with the bookmark, without Spark.

begin -> recover -> plan(ctx) ... place(output) ... staged(output) -> commit -> publish -> mark -> sweep

In batches the mark takes the next fence in the same transaction, and the next run goes on from there (`following`):

            plan ... commit -> publish -> mark + take -> sweep -> plan ... commit -> publish -> mark -> sweep
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.core.job import RunIdentity, check_name
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.rules.start import BEGINNING, Start, is_first_run
from airflow_bookmarks.core.run import OutputEntry, PlanEntry, StateEntry
from airflow_bookmarks.lifecycle.history.relocation import MOVED_FROM, found_moved
from airflow_bookmarks.lifecycle.history.rewind import rewind_along
from airflow_bookmarks.lifecycle.protocol.cleanup import finish_clean
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.new_name import check_part_name
from airflow_bookmarks.lifecycle.protocol.recover import STARTS_FROM, STARTS_OVER, starts_from
from airflow_bookmarks.lifecycle.run.checks.going_on import check_moves
from airflow_bookmarks.lifecycle.run.checks.other_use import check_alone, put_away_read, warn_of_readers
from airflow_bookmarks.lifecycle.run.checks.replacement import Replacement
from airflow_bookmarks.lifecycle.run.checks.unknown_run import check_known_runs
from airflow_bookmarks.lifecycle.run.commit_builder import StoredBodies, build_commit, is_over_bound
from airflow_bookmarks.lifecycle.run.lease_holder import LeaseHolder
from airflow_bookmarks.lifecycle.run.leased import LeasedRun
from airflow_bookmarks.lifecycle.run.use.inputs import PlannedContext
from airflow_bookmarks.lifecycle.state.discard import (
    increment_of,
    is_published,
    is_to_land,
    log_discarded,
    remedy_for,
)
from airflow_bookmarks.lifecycle.state.guard import guarded
from airflow_bookmarks.lifecycle.state.job_state import JobStates
from airflow_bookmarks.lifecycle.state.positions import ContextReader, OtherReaders, log_start, warn_renamed, with_place
from airflow_bookmarks.lifecycle.state.quarantine import log_corrupt, without_corrupt
from airflow_bookmarks.lifecycle.state.summary import (
    Summary,
    log_committed,
    log_found,
    log_planned,
    warn_of_repetition,
)
from airflow_bookmarks.lifecycle.state.verification import (
    OnMissing,
    plan_of_files,
    recheck_plan,
    warn_changed_since,
)
from airflow_bookmarks.sinks.entry import discarded_entry, landed_entry, published_entry
from airflow_bookmarks.sinks.files.publish import check_publishable
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry
from airflow_bookmarks.sources.contract import stats_of
from airflow_bookmarks.sources.registry import encoded_plan
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.rewind import RewindWanted
from airflow_bookmarks.store.bookmark_store import PLAN_INLINE_BYTES, BookmarkStore, Commit, LeaseGrant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.rules.emptiness import Increment
    from airflow_bookmarks.lifecycle.protocol.acquire import OnConflict
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.run.commit_builder import RunOutcome
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.sources.source import OnSourceChange, P, Source

log = logging.getLogger(__name__)


class ActiveRun(LeaseHolder):
    """A run that holds the job's lease. Made by `ActiveRun.begin`; ends with `commit` or `abort`.

    `skipped` and metrics are kept per context; nothing is left out silently.
    """

    def __init__(self, leased: LeasedRun, *, in_batches: bool = False) -> None:
        super().__init__(leased)
        self._in_batches = in_batches
        self._others = OtherReaders(leased.store, leased.grant.job)
        self._read_head()
        self._entries: Mapping[str, OutputEntry] = {}
        self._landing: Mapping[str, Plan] | None = None

    @classmethod
    def begin(
        cls,
        store: BookmarkStore,
        job: str,
        identity: RunIdentity,
        environment: RunEnvironment,
        *,
        on_conflict: OnConflict = "fail",
        wait_for: timedelta = timedelta(hours=1),
        sinks: SinkRegistry = SINKS,
        start: Start = BEGINNING,
        in_batches: bool = False,
    ) -> Self:
        """Take the job, finish what is due, settle what is open.

        `start` is where a job without a bookmark begins (`core.rules.start.is_first_run`). `in_batches`: where a bound
        has left something over, the execution goes on with another run after this one (`following`).

        Raises:
            JobBusyError, AttemptRefusedError, PublishError, SourceError, StoreError: nothing of this run has begun.
        """
        leased = LeasedRun.begin(
            store, job, identity, environment, on_conflict=on_conflict, wait_for=wait_for, sinks=sinks, start=start
        )
        return cls(leased, in_batches=in_batches)

    def _read_head(self) -> None:
        self._reader = ContextReader(self._store, self.job, self._grant.base, self._leased.start)
        self._states = JobStates(self._reader)

    # ---- plan

    @guarded
    def plan(
        self,
        ctx: str,
        source: Source[P],
        *,
        on_missing: OnMissing = "error",
        on_source_change: OnSourceChange = "error",
        moved_from: str | None = None,
    ) -> P:
        """Fix what this run reads from one context, and store it before the first byte is read.

        Raises:
            SourceSwitchedError: the context's position is of another source, and nothing says that its files moved.
            MisuseError: after the commit, a context that this run has planned already, or one too many to be committed.
            SourceError: it can't be planned. FencedError: the job is not ours any more.
        """
        check_name("context", ctx)
        with self._inputs.planning(ctx):
            self._check_before_landing(f"read {ctx!r}")
            self._inputs.check_new(ctx)
            self._check_alone(ctx, source)
            check_part_name(self._store, self.job, "context", ctx, self._grant.base)
            with self._stopwatch.measure("plan"):
                found, plan = self._plan_source(ctx, source, on_source_change, moved_from)
                if ctx in self._inputs.disposals:
                    plan_of_files(self.job, ctx, plan, "on_published")
                self._environment.at(Failpoint.LISTED)
                self._store_plan(ctx, source, found, plan)
                self._write_manifest(ctx, plan)
                self._environment.at(Failpoint.PLANNED)
            self._inputs.add(ctx, PlannedContext(source, found, plan, on_missing))
        log_planned(log, self.job, ctx, plan)
        return plan

    def _check_alone(self, ctx: str, source: Source[Any]) -> None:
        disposing = {name: disposal.on_published for name, disposal in self._inputs.disposals.items()}
        try:
            check_alone(self.job, ctx, source, self._inputs.sources, disposing)
        except OptionError:
            for name in disposing:  # the script goes on nevertheless
                self.keep_files(name, f"context {ctx!r}, which was refused, reads them as well")
            raise
        if ctx in disposing and is_first_run(self._grant.base):
            warn_of_readers(self._store, self.job, ctx, source)

    def _store_plan(self, ctx: str, source: Source[Any], found: PlanInput, plan: Plan) -> None:
        figures = {**stats_of(plan), STARTS_FROM: starts_from(self._grant.base, ctx)}
        if found.position is None:
            figures[STARTS_OVER] = True
        if ctx in self._inputs.disposals:
            figures |= self._inputs.disposals[ctx].stats()
        if found.moved is not None:
            figures[MOVED_FROM] = dict(found.moved.stats)
        body = self._leased.bodies.payloads({ctx: encoded_plan(source.kind, plan)}, PLAN_INLINE_BYTES)[ctx]
        entry = PlanEntry(source.kind, body, figures, str(source.ref()))
        self._leased.bodies.add_context(self._grant, ctx, entry)
        self._store.plan(self._grant, ctx, entry, option=self.option.value, is_last=not self._in_batches)
        self._leased.has_item = True

    @property
    def may_quarantine(self) -> bool:
        """Whether this run may leave planned files out because they can't be parsed."""
        return True

    @property
    def compares_columns(self) -> bool:
        """Whether the columns of a read are compared with those of the run before."""
        return True

    @guarded
    def quarantine(self, ctx: str, corrupt: Mapping[str, str]) -> FilePlan:
        """Leave planned files that can't be parsed out of the plan of a context; return what is left of it.

        Call it before anything of the context is read or written. The plan is stored anew, so that a run which takes
        over or replays this one reads none of them; that they were found is part of the position after this run.

        Args:
            corrupt: the error of each of these files, by its path.

        Raises:
            QuarantineFullError: they are too many. FencedError: the job is not ours any more.
        """
        self._check_running(f"quarantine files of {ctx!r}")
        context = self._inputs[ctx]
        planned = plan_of_files(self.job, ctx, context.plan, "quarantine")
        plan = without_corrupt(planned, context.found, corrupt, self.run_number)
        self._store_plan(ctx, context.source, context.found, plan)
        self._write_manifest(ctx, plan)
        context.plan = plan
        log_corrupt(self.job, ctx, corrupt, is_kept=True)
        return plan

    def _plan_source(
        self, ctx: str, source: Source[P], on_change: OnSourceChange, moved_from: str | None
    ) -> tuple[PlanInput, P]:
        found = found_moved(self._store, self.job, self._reader, ctx, source, moved_from)
        found = self._reader.found_for(ctx, source, on_change) if found is None else found
        if is_first_run(self._grant.base):
            self._others.warn(ctx, source)
        if self._reader.start.is_beginning:
            log_found(log, self.job, ctx, source.kind, self.watermark(ctx), self._grant.base)
        else:
            log_start(log, self.job, ctx, source.kind, self._reader.start)
        while True:  # the upstream may go back once more while this job goes back along with it
            try:
                return found, source.plan(self._with_place(found))
            except RewindWanted as wanted:
                self._go_back_along(ctx, wanted)
                found = self._reader.found_for(ctx, source, on_change)

    def _with_place(self, found: PlanInput) -> PlanInput:
        """Let the source keep folders with its position, which this run commits."""
        return with_place(found, self._store, self.job)

    def _go_back_along(self, ctx: str, wanted: RewindWanted) -> None:
        used = [*self._inputs, *self._outputs.placed, *(["job.state"] if self._states.is_used else [])]
        if used:
            raise MisuseError(
                f"job {self.job!r}: {wanted}, and to go back along with it has to take all contexts of this job back, "
                f"but {sorted(used)} of this run are planned or read already. Nothing was committed. Read {ctx!r} "
                "before anything else in the script."
            ) from wanted
        # A renewal under the old fence, on its way now, must not count as a lost lease.
        self._leased.renewer.rest()
        self._hold(rewind_along(self._store, self._grant, wanted))
        self._hold(finish_clean(self._store, self._grant, self._leased.sinks))

    def _hold(self, grant: LeaseGrant) -> None:
        """Go on with another holding of the job, and with what its head says."""
        self._leased.hold(grant)
        self._read_head()

    def schema_before(self, ctx: str) -> str | None:
        """Return the schema (JSON) of the run from which a planned context goes on; None where it starts anew."""
        return None if self._inputs[ctx].found.position is None else self.known_schema(ctx)

    @guarded
    def start_over(self, ctx: str) -> Any:
        """Plan a context again, from its beginning; call it before anything of it is read.

        The plan that was stored is replaced, with the note that it goes on from no position.

        Raises:
            SourceError: it can't be planned. FencedError: the job is not ours any more.
        """
        self._check_running(f"read {ctx!r} from the beginning")
        context = self._inputs[ctx]
        with self._stopwatch.measure("plan"):
            found = PlanInput()
            plan = context.source.plan(self._with_place(found))
            self._store_plan(ctx, context.source, found, plan)
            self._write_manifest(ctx, plan)
        context.found, context.plan = found, plan
        log_planned(log, self.job, ctx, plan)
        return plan

    # ---- place, stage

    @guarded
    def place(self, output: str, place: StagingRequest) -> str:
        """Store where an output is staged, before its first byte is written; return that folder.

        Raises:
            MisuseError: after the commit, or an output of that name was placed already.
            UnknownRunsError: a first run finds files of runs that the store does not know.
            FencedError: the job is not ours any more.
        """
        if self._leased.sinks.find_staged(place.sink) is None:
            return self._place_landings({output: place})[output]
        self._check_place(output, place)
        entry, staging = self._leased.stage(self._run_key, output, place)
        self._store_places({output: entry}, {}, staging)
        return entry.place

    @guarded
    def place_landings(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        """Store where outputs land that commit by themselves, all of them before the first; return their tokens.

        Whoever finds rows of one then knows of the others, and whether they have landed too. See `place`.
        """
        return self._place_landings(places)

    def _place_landings(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        for output, place in places.items():
            self._check_place(output, place)
        listed = self._listed_before(tuple(places))
        entries = {output: self._leased.stage(self._run_key, output, place)[0] for output, place in places.items()}
        self._store_places(entries, listed, self._leased.staging, state=self._state_entry())
        return {output: entry.place for output, entry in entries.items()}

    def _check_place(self, output: str, place: StagingRequest) -> None:
        check_name("output", output)
        self._check_running(f"write {output!r}")
        self._outputs.check_new(output)
        if self._landing is not None:
            raise MisuseError(
                f"job {self.job!r}: output {output!r} is written after one that commits by itself. Nothing was "
                "committed. Write that one last; two of its kind are placed together, before either is written."
            )
        check_part_name(self._store, self.job, "output", output, self._grant.base)
        if place.on_unknown_runs == "error" and is_first_run(self._grant.base) and self._leased.start.is_beginning:
            check_known_runs(self._store, self.job, output, place.target)

    def _store_places(
        self,
        entries: Mapping[str, OutputEntry],
        listed: Mapping[str, OutputEntry],
        staging: list[str],
        *,
        state: StateEntry | None = None,
    ) -> None:
        """Store new outputs, with what else is to be known from now on: others as they are `listed`, and `state`."""
        option, is_last = self.option.value, not self._in_batches
        placed = {**listed, **entries}
        self._store.place(self._grant, placed, staging, option=option, is_last=is_last, state=state)
        self._leased.staging, self._leased.has_item = staging, True
        for output, entry in entries.items():
            self._outputs.place(output, entry)
        self._environment.at(Failpoint.PLACED)

    @guarded
    def is_to_land(self, place: StagingRequest, made_from: Sequence[str], has_rows: Callable[[], bool]) -> bool:
        """Decide whether an output that commits by itself is written; False: `leave_out` records that it was not."""
        increment = increment_of(self._inputs.plans, state_changed=self._states.has_changed)
        return is_to_land(increment, place, made_from, has_rows)

    @guarded
    def leave_out(self, output: str, place: StagingRequest, staged: Staged) -> None:
        """Record an output that commits by itself and is not written in this run.

        Raises:
            MisuseError: after the commit, or an output of that name was placed already.
        """
        check_name("output", output)
        self._check_running(f"leave out {output!r}")
        self._outputs.check_new(output)
        entry, _ = self._leased.stage(self._run_key, output, place)
        self._outputs.place(output, replace(entry, is_left_out=True))
        self._outputs.stage(output, staged)

    def _listed_before(self, landing: Collection[str]) -> Mapping[str, OutputEntry]:
        """Return what to store with the places of outputs that commit by themselves.

        Another process that finds its rows takes the run over, with what is staged and what `job.state` is: so by then
        everything else is staged, and listed. The input, and where it leads, are checked one last time, because rows
        that have landed can't be taken back.
        """
        # Whoever finds its rows commits the run as it is now, so what would refuse the commit refuses the landing.
        self._inputs.check_read("committed")
        self._outputs.check_written("committed", but=landing)
        self._outputs.check_staged("committed")
        plans = self._rechecked()
        self._check_moves(self._leased.preparation(self._reader, self._states).outcome(self._inputs, plans))
        self._landing = plans
        # Rows are about to land in that sink, so this run moves something, whatever else it has found.
        return self._output_entries(increment_of(self._landing, state_changed=True))

    def _state_entry(self) -> StateEntry | None:
        """Return `job.state` as it is now; None if the run has not used it."""
        values = self._states.encoded()
        if values is None:
            return None
        payload = self._leased.bodies.payloads({STATE_CONTEXT: values})[STATE_CONTEXT]
        return StateEntry(starts_from(self._grant.base, STATE_CONTEXT), payload)

    def _check_may_set(self, what: str) -> None:
        self._check_before_landing(what)

    def _check_before_landing(self, what: str) -> None:
        """Make sure that the run may still change what it commits.

        Raises:
            MisuseError: it is over; or an output that commits by itself was written, and whoever finds its rows commits
                the run as it was then.
        """
        self._check_running(what)
        if self._landing is not None:
            raise MisuseError(
                f"job {self.job!r}: can't {what} after an output that commits by itself was written. Its rows are "
                "there, and what the run commits with them was fixed before; nothing of this was read or changed. Read "
                "every context, and set job.state, before that write."
            )

    # ---- commit

    @guarded
    def commit(self) -> Summary:
        """Commit, publish, mark, sweep.

        Raises:
            MisuseError: it is over already, a read failed, or a write was refused or not finished.
            SourceChangedError: planned input changed; nothing was committed.
            FencedError, ChangedMeanwhileError: nothing was committed.
            PublishError: committed; the publish stays due and is finished by whoever begins next.
        """
        self._check_running("commit")
        self._inputs.check_read("committed")
        self._outputs.check_written("committed")
        self._outputs.check_staged("committed")
        self._stopwatch.measure_since("read_write", "plan")
        with self._stopwatch.measure("commit"):
            plans = self._rechecked() if self._landing is None else self._landed(self._landing)
            warn_of_repetition(log, self.job, plans, self._outputs.placed)
            commit = self._commit_of(plans)
            self._environment.at(Failpoint.BEFORE_COMMIT)
            run = self._store.commit(self._grant, commit)
        self._leased.is_over = True
        self._reader = ContextReader(self._store, self.job, replace(self._grant.base, contexts=commit.contexts))
        self._environment.at(Failpoint.COMMITTED)
        for ctx, state in commit.contexts.items():
            if ctx == STATE_CONTEXT:
                continue
            log_committed(log, self.job, ctx, self._grant.run_number, state)
        for name, output in run.outputs.items():
            when_empty, remedy = output.metadata.when_empty, remedy_for(plans)
            log_discarded(self.job, name, output.stats, when_empty=when_empty, remedy=remedy)
        for name, replacement in self._outputs.replacements.items():
            replacement.log(self.job, name)
        summary = self._leased.publish(run, goes_on=not commit.is_last)
        put_away_read(self._store, self._grant, self._inputs, plans)
        return summary

    def following(self) -> ActiveRun:
        """Return the next run of this execution, which holds the job already.

        Raises:
            MisuseError: this run was the last one, or has not ended.
        """
        run = ActiveRun(self._leased.following(), in_batches=True)
        run.write_manifests(self._manifests)
        return run

    def _rechecked(self) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        for ctx, context in self._inputs.items():
            plan = recheck_plan(self.job, ctx, context.source, context.plan, context.on_missing)
            if plan is not context.plan:
                # A run that takes this one over, or replays it, must not read what it leaves to the next one.
                self._store_plan(ctx, context.source, context.found, plan)
            plans[ctx] = plan
        return plans

    def _landed(self, plans: Mapping[str, Plan]) -> Mapping[str, Plan]:
        """Return the plans whose rows have landed, with a warning for what changed after the last look."""
        for ctx, context in self._inputs.items():
            warn_changed_since(self.job, ctx, context.source, plans[ctx])
        return plans

    def _commit_of(self, plans: Mapping[str, Plan]) -> Commit:
        warn_renamed(self.job, self._grant.base.contexts, self._inputs.sources)
        prepared = self._leased.preparation(self._reader, self._states)
        outcome = prepared.outcome(self._inputs, plans)
        if self._landing is None:
            self._check_moves(outcome)
        stored = StoredBodies(
            positions=prepared.store_positions(outcome, self._inputs),
            outputs=self._output_entries(outcome.increment),
            schemas=prepared.store_schemas(outcome, self._inputs),
        )
        is_last = not (self._in_batches and is_over_bound(plans))
        return build_commit(outcome, stored, is_last=is_last, has_item=self._leased.has_item)

    def _check_moves(self, outcome: RunOutcome) -> None:
        for ctx, context in outcome.contexts.items() if self._in_batches else ():
            found = self._inputs[ctx].found
            check_moves(self.job, ctx, found, context.plan, context.position, "Nothing was committed.")

    def _output_entries(self, increment: Increment) -> Mapping[str, OutputEntry]:
        """Return the outputs as the commit stores them; those that were stored with a landing stay as they were."""
        built = {name: self._entries.get(name) for name in self._outputs.placed}
        self._entries = {name: self._output_entry(name, increment) if e is None else e for name, e in built.items()}
        return self._entries

    def _output_entry(self, name: str, increment: Increment) -> OutputEntry:
        entry, staged = self._outputs.placed[name], self._outputs.staged[name]
        if entry.is_left_out:
            return discarded_entry(entry, staged)
        if entry.commits_by_itself:
            return landed_entry(entry, staged)
        if not is_published(increment, entry, staged):
            return discarded_entry(entry, staged)
        if not entry.lies_in_files:
            return landed_entry(entry, staged)
        check_publishable(self._leased.territory, self._run_key, name, entry, staged.moves, staged.deletes)
        plans = {ctx: (context.source.kind, context.plan) for ctx, context in self._inputs.items()}
        replacement = Replacement.of(self._store, self._grant, entry, staged, plans)
        self._outputs.replacements[name] = replacement
        return published_entry(entry, staged, staged.deletes or None, self._leased.bodies.payloads, replacement.stats())
