"""Paused and disabled runs: they read and write, and change nothing of the bookmark.

Such a run takes no lease, stages in places of its own that no enabled run sweeps or uses, publishes without a commit
(so at least once), and leaves a side record that no run reads.

In batches, each run hands what it has read to the next in memory only, so that the loop advances like an enabled one,
while the bookmark stays where it is.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job import RunIdentity, check_name
from airflow_bookmarks.core.option import Choice, Option
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.selection.reason import QUARANTINED
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.owner import check_owner
from airflow_bookmarks.lifecycle.run.checks.expectation import Expects
from airflow_bookmarks.lifecycle.run.commit_builder import is_over_bound
from airflow_bookmarks.lifecycle.run.side.new_input import NewInput
from airflow_bookmarks.lifecycle.run.side.publish import DetachedPublish
from airflow_bookmarks.lifecycle.run.side.record import SideRecord, context_figures
from airflow_bookmarks.lifecycle.run.side.walk import BatchWalk, positions_after
from airflow_bookmarks.lifecycle.run.side.window import PauseWindow
from airflow_bookmarks.lifecycle.run.use.inputs import PlannedContext
from airflow_bookmarks.lifecycle.run.use.recording import RecordsUse
from airflow_bookmarks.lifecycle.state.discard import increment_of, is_to_land
from airflow_bookmarks.lifecycle.state.guard import guarded
from airflow_bookmarks.lifecycle.state.job_state import JobStates, KeepsState
from airflow_bookmarks.lifecycle.state.manifest import WritesManifests
from airflow_bookmarks.lifecycle.state.positions import ContextReader, ReadsContexts, with_place
from airflow_bookmarks.lifecycle.state.quarantine import log_corrupt
from airflow_bookmarks.lifecycle.state.summary import Summary, log_planned
from airflow_bookmarks.lifecycle.state.timing import Stopwatch
from airflow_bookmarks.lifecycle.state.verification import OnMissing, plan_of_files, recheck_plan, without
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.contract import stats_of
from airflow_bookmarks.sources.source import P, PlanInput, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.sources.source import OnSourceChange
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


class DetachedRun(ReadsContexts, KeepsState, Expects, WritesManifests, RecordsUse):
    """A run under `pause` or `disable`. Made by `DetachedRun.begin`; ends with `commit` or `abort`.

    It reads `job.state` (`pause` alone: as it is, or as it was before the window) and stores nothing of it.
    """

    def __init__(
        self,
        store: BookmarkStore,
        job: str,
        identity: RunIdentity,
        choice: Choice,
        environment: RunEnvironment,
        head: Head | None,
        start: Start = BEGINNING,
        walk: BatchWalk | None = None,
        sinks: SinkRegistry = SINKS,
    ) -> None:
        super().__init__(job)
        self._sinks = sinks
        self._store, self._job, self._identity, self._choice = store, job, identity, choice
        self._given_environment = environment
        self._head = head or Head()
        self._reader = ContextReader(store, job, self._head, start)
        self._states = JobStates(self._reader)
        self._id = store.new_id()
        self._stopwatch = Stopwatch(environment.monotonic)
        self._window: PauseWindow | None = None
        self._start, self._walk = start, walk
        self._new = NewInput(store, job, self._reader, walk, is_blind=choice.option is Option.DISABLE)
        self._goes_on = False
        self._batch = 1
        self._overwriting: set[str] = set()  # the outputs that may replace what runs have published
        self._is_over = False
        self._record = SideRecord(store, job, identity, choice)

    @classmethod
    def begin(
        cls,
        store: BookmarkStore,
        job: str,
        identity: RunIdentity,
        choice: Choice,
        environment: RunEnvironment,
        *,
        start: Start = BEGINNING,
        in_batches: bool = False,
        sinks: SinkRegistry = SINKS,
    ) -> DetachedRun:
        """Read the bookmark (for a disable, only its owner); resolve the window of a pause.

        `start` is where a pause of a job without a bookmark begins; disable reads all. `in_batches`: where a bound has
        left something over, another run goes on after this one (`following`). A pause over a window is one run: it
        reads what stored plans say.

        Raises:
            RunUnknownError, OptionError: the window names no run, or its ends are the wrong way round.
            OwnerError: the job belongs to another DAG than the caller's, which does not share it.
        """
        walk = BatchWalk() if in_batches else None
        head = store.snapshot(job).head
        check_owner(store, job, head, identity)
        if choice.option is Option.DISABLE:
            return cls(store, job, identity, choice, environment, None, walk=walk, sinks=sinks)
        run = cls(store, job, identity, choice, environment, head, start, walk, sinks)
        if choice.from_run is not None and choice.to_run is not None:
            window = PauseWindow.of(store, job, run._head, choice.from_run, choice.to_run)
            run._window, run._walk = window, None  # one run reads all of it
            run._states = JobStates(ContextReader(store, job, replace(run._head, contexts=window.contexts_before)))
        return run

    @property
    def option(self) -> Option:
        """`pause` or `disable`."""
        return self._choice.option

    @property
    def job(self) -> str:
        """The job's name."""
        return self._job

    @property
    def execution_id(self) -> str:
        """The run id of the execution that makes this run."""
        return self._identity.run_id

    @property
    def _environment(self) -> RunEnvironment:
        return self._given_environment

    @property
    def _manifest_part(self) -> str | None:
        return None if self._batch == 1 else f"batch-{self._batch}"

    @property
    def run_number(self) -> int | None:
        """None: the run takes no number."""
        return None

    @property
    def epoch(self) -> int | None:
        """None: the run is part of no history."""
        return None

    @property
    def may_quarantine(self) -> bool:
        """Whether planned files that can't be parsed may be left out: yes, and nothing is recorded."""
        return True

    @property
    def compares_columns(self) -> bool:
        """Whether the columns of a read are compared with those of the run before, if `schema_before` knows them."""
        return True

    @property
    def token(self) -> str:
        """What tells this run's output from that of any other; it can't meet an enabled run's."""
        return f"{self._store.namespace}/{self._job}/side/{self._id}"

    @property
    def file_token(self) -> str:
        """The part of published file names that tells this run from any other."""
        return f"side-{self._id}"

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
        """Fix what this run reads: what is new (pause), what earlier runs read (pause with a window), all (disable).

        Raises:
            MisuseError: the run is over, the context is planned already, or the side record can't take its facts.
            SourceError: it can't be planned.
        """
        check_name("context", ctx)
        self._check_running(f"read {ctx!r}")
        self._inputs.check_new(ctx)
        with self._stopwatch.measure("plan"):
            found, plan = (
                (PlanInput(), self._window.plan(ctx, source, on_missing))
                if self._window is not None
                else self._new.plan(ctx, source, on_source_change, moved_from)
            )
            stats_of(plan)  # the side record gets them after the publish, which is too late to refuse them
            self._write_manifest(ctx, plan)
            self._environment.at(Failpoint.PLANNED)
        self._inputs.add(ctx, PlannedContext(source, found, plan, on_missing))
        log_planned(log, self._job, ctx, plan)
        return plan

    def plan_of(self, ctx: str) -> Plan | None:
        """Return what this run reads from a context; see `RunSession.plan_of`."""
        return self._inputs[ctx].plan if ctx in self._inputs else None

    @guarded
    def quarantine(self, ctx: str, corrupt: Mapping[str, str]) -> FilePlan:
        """Leave files that can't be parsed out of what this run reads, and record nothing of it."""
        plan = without(plan_of_files(self._job, ctx, self._inputs[ctx].plan, "quarantine"), corrupt, QUARANTINED)
        self._write_manifest(ctx, plan)
        self._inputs[ctx].plan = plan
        log_corrupt(self._job, ctx, corrupt, is_kept=False)
        return plan

    def dispose(self, ctx: str, disposal: Disposal) -> None:
        """Only log it: a run that leaves the bookmark where it is leaves the files where they are."""
        log.info(
            "bookmark %s, context %s: on_published=%r means nothing with option %s: read files stay where they are",
            self._job,
            ctx,
            disposal.on_published,
            self.option.value,
        )

    def keep_files(self, ctx: str, why: str) -> None:
        """Do nothing: files stay in any case."""

    def schema_before(self, ctx: str) -> str | None:
        """Return the schema (JSON) of the run from which a planned context goes on; None for a window or a disable."""
        return None if self._inputs[ctx].found.position is None else self.known_schema(ctx)

    @guarded
    def start_over(self, ctx: str) -> Any:
        """Plan a context again, from its beginning."""
        self._check_running(f"read {ctx!r} from the beginning")
        context = self._inputs[ctx]
        with self._stopwatch.measure("plan"):
            found = PlanInput()
            plan = context.source.plan(with_place(found, self._store, self._job))
            stats_of(plan)
            self._write_manifest(ctx, plan)
        context.found, context.plan = found, plan
        log_planned(log, self._job, ctx, plan)
        return plan

    @guarded
    def place(self, output: str, place: StagingRequest) -> str:
        """Return where to stage an output: where enabled runs neither stage nor sweep.

        Raises:
            OptionError: its sink stages, and has no place for such a run.
            MisuseError: its sink commits by itself, and the next run of the loop would read the same again.
        """
        return self._place_all({output: place})[output]

    @guarded
    def place_landings(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        """Return where outputs land that commit by themselves; see `place`."""
        return self._place_all(places)

    def _place_all(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        territory, entries = Territory(self._store.namespace, self._job), {}
        for output, place in places.items():
            check_name("output", output)
            self._check_running(f"write {output!r}")
            self._outputs.check_new(output)
            entries[output] = self._sinks.stage_aside(territory, self._id, output, place)
        if any(entry.commits_by_itself for entry in entries.values()):
            self._check_landing(places)
        for output, entry in entries.items():
            self._outputs.place(output, entry)
            if places[output].overwrites_published:
                self._overwriting.add(output)
        return {output: entry.place for output, entry in entries.items()}

    def _check_landing(self, outputs: Collection[str]) -> None:
        # Rows that have landed can't be taken back, so what would refuse the end of the run refuses them. A plan of
        # files may still lose some before it.
        self._inputs.check_read("published")
        self._outputs.check_written("published", but=outputs)
        self._outputs.check_staged("published")
        whole = {ctx: plan for ctx, plan in self._inputs.plans.items() if not isinstance(plan, FilePlan)}
        self._positions_after(whole)

    @guarded
    def is_to_land(self, place: StagingRequest, made_from: Sequence[str], has_rows: Callable[[], bool]) -> bool:
        """Decide whether an output that commits by itself is written; see `ActiveRun.is_to_land`."""
        increment = increment_of(self._inputs.plans, state_changed=self._states.has_changed)
        return is_to_land(increment, place, made_from, has_rows)

    @guarded
    def leave_out(self, output: str, place: StagingRequest, staged: Staged) -> None:
        """Record an output that commits by itself and is not written in this run."""
        check_name("output", output)
        self._check_running(f"leave out {output!r}")
        self._outputs.check_new(output)
        entry = self._sinks.stage_aside(Territory(self._store.namespace, self._job), self._id, output, place)
        self._outputs.place(output, replace(entry, is_left_out=True))
        self._outputs.stage(output, staged)

    @guarded
    def commit(self) -> Summary:
        """Publish what was staged, and leave the side record; the bookmark does not move.

        Raises:
            MisuseError: it is over already, a read failed, an output was placed and not written, or the next run of the
                loop would read the same again.
            SourceChangedError: planned input changed. In these cases nothing was published.
            PublishError: an output can't be moved; what was not moved is gone.
        """
        self._check_running("commit")
        self._inputs.check_read("published")
        self._outputs.check_written("published")
        self._outputs.check_staged("published")
        if self._window is not None:
            self._window.check_unmoved(self._inputs)
        plans = {
            ctx: recheck_plan(self._job, ctx, context.source, context.plan, context.on_missing)
            for ctx, context in self._inputs.items()
        }
        contexts, positions = context_figures(self._inputs, plans), self._positions_after(plans)
        increment = increment_of(plans, state_changed=self._states.has_changed)
        publisher = self._publisher()
        replaced, prepared = publisher.replaced(increment), publisher.prepared(increment)
        self._is_over = True
        try:
            self._record.note_replaced(replaced)
            outputs = publisher.publish(increment, prepared)
            self._move_on(plans, positions)
            self._record.leave(contexts, outputs, self._inputs, replaced)
        finally:
            publisher.sweep()  # no later run looks for what a side run has staged
        return Summary(
            job=self._job,
            namespace=self._store.namespace,
            run_id=self._identity.run_id,
            option=self.option.value,
            is_empty=increment.is_empty(publishes=any(output["files"] != 0 for output in outputs.values())),
            is_published=True,
            contexts=contexts,
            outputs=outputs,
            seconds=self._stopwatch.seconds(),
            left_out=self._inputs.left_out,
        )

    # ---- batches

    @property
    def goes_on(self) -> bool:
        """Whether this run has ended, and a bound has left something for the next run of its loop."""
        return self._goes_on

    def following(self) -> DetachedRun:
        """Return the next run of the loop, which reads on where this one has ended.

        Raises:
            MisuseError: this run was the last one, or has not ended.
        """
        if not self._goes_on:
            raise MisuseError(f"job {self._job!r}: no run follows this one. Nothing was changed. Begin another one.")
        head = None if self.option is Option.DISABLE else self._head
        run = DetachedRun(
            self._store,
            self._job,
            self._identity,
            self._choice,
            self._environment,
            head,
            self._start,
            self._walk,
            self._sinks,
        )
        self._goes_on = False
        run._batch = self._batch + 1
        run.write_manifests(self._manifests)
        return run

    def leave(self) -> None:
        """Do nothing: between two runs of a loop nothing is held."""

    def _positions_after(self, plans: Mapping[str, Plan]) -> dict[str, Position]:
        """Return where the next run of the loop reads on; empty for contexts that stay, and where there is no loop.

        Raises:
            MisuseError: it would read the same again.
        """
        if self._walk is None:
            return {}
        is_landed = any(entry.commits_by_itself for entry in self._outputs.placed.values())
        done = "Nothing else was published." if is_landed else "Nothing was published."
        return positions_after(self._job, self._inputs, plans, done)

    def _move_on(self, plans: Mapping[str, Plan], positions: Mapping[str, Position]) -> None:
        if self._walk is None:
            return
        self._goes_on = is_over_bound(plans)
        for ctx, position in positions.items():
            self._walk.move(ctx, self._inputs[ctx].found, position)

    def _publisher(self) -> DetachedPublish:
        return DetachedPublish(
            self._store,
            self._job,
            self.option,
            self.file_token,
            self._environment,
            self._outputs,
            self._overwriting,
            self._sinks,
        )

    @guarded
    def abort(self, error: str, *, exit_code: int | None = None) -> None:
        """Remove what was staged; nothing else was changed, so the exit code of the driver is kept nowhere."""
        if not self._is_over:
            self._is_over = True
            error = self._with_unmet(error)
            log.info("bookmark %s: %s run ends without publishing: %s", self._job, self.option.value, in_lines(error))
            self._publisher().sweep()

    def _check_running(self, what: str) -> None:
        if self._is_over:
            raise MisuseError(f"job {self._job!r}: can't {what}, this run is over. Nothing moved. Begin another run.")
        self._check_expectations()
