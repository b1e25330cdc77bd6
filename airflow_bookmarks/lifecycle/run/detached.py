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

from airflow_bookmarks.core.errors import (
    BookmarkError,
    MisuseError,
    OptionError,
    PublishError,
    SourceChangedError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job import RunIdentity, check_name
from airflow_bookmarks.core.option import Choice, Option
from airflow_bookmarks.core.plan import FilePlan, Plan, encode_paths
from airflow_bookmarks.core.rules.emptiness import WHEN_EMPTY, Increment
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.rules.territory import SIDE_FOLDER, OutputBounds, StagingBounds, Territory, staging_root
from airflow_bookmarks.core.run import FILES_SINK
from airflow_bookmarks.core.selection.reason import QUARANTINED
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.lifecycle.history.relocation import found_moved
from airflow_bookmarks.lifecycle.history.rewind import resolve_run, window_runs
from airflow_bookmarks.lifecycle.history.window import window_entries
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.owner import check_owner
from airflow_bookmarks.lifecycle.protocol.publish import steps_of
from airflow_bookmarks.lifecycle.run.commit_builder import is_over_bound
from airflow_bookmarks.lifecycle.run.enabled import check_read, check_staged
from airflow_bookmarks.lifecycle.run.expectation import Expects
from airflow_bookmarks.lifecycle.run.unfinished_write import TracksWrites
from airflow_bookmarks.lifecycle.state.discard import discarded_facts, increment_of, is_published, log_discarded
from airflow_bookmarks.lifecycle.state.guard import guarded
from airflow_bookmarks.lifecycle.state.job_state import JobStates, KeepsState
from airflow_bookmarks.lifecycle.state.manifest import WritesManifests
from airflow_bookmarks.lifecycle.state.positions import ContextReader, ReadsContexts
from airflow_bookmarks.lifecycle.state.quarantine import log_corrupt
from airflow_bookmarks.lifecycle.state.start import log_start
from airflow_bookmarks.lifecycle.state.summary import Summary, log_found, log_planned
from airflow_bookmarks.lifecycle.state.timing import Stopwatch
from airflow_bookmarks.lifecycle.state.verification import (
    OnMissing,
    gone_in_words,
    plan_of_files,
    recheck_plan,
    without,
)
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.files.publish import Closing, delete_all, move_all
from airflow_bookmarks.sinks.staging import published_by_runs
from airflow_bookmarks.sources.registry import kind_of
from airflow_bookmarks.sources.source import P, PlanInput, Source
from airflow_bookmarks.sources.upstream import RewindWanted
from airflow_bookmarks.sources.way_back import way_back
from airflow_bookmarks.store.codec.item import payload_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.ledger.segment import Segment
    from airflow_bookmarks.core.position import Greatest, Position
    from airflow_bookmarks.core.run import Payload, Run
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.sources.source import OnSourceChange
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


class _WindowWalk:
    """Where the contexts of a loop of side runs stand: positions that are never stored, with what they refer to."""

    def __init__(self) -> None:
        self.found: dict[str, PlanInput] = {}
        self._blobs: dict[str, bytes] = {}

    def move(self, ctx: str, before: PlanInput, position: Position) -> None:
        """Let the next run of the loop go on from `position`, the result of a plan from `before`."""
        self._blobs |= position.blobs
        load = before.load if ctx in self.found else self._with_own(before.load)
        self.found[ctx] = replace(before, position=position.body, load=load, watermark=position.watermark)

    def _with_own(self, stored: Load) -> Load:
        def load(names: Sequence[str]) -> Mapping[str, bytes | Segment]:
            missing = [name for name in names if name not in self._blobs]
            own = {name: self._blobs[name] for name in names if name in self._blobs}
            return {**own, **(stored(missing) if missing else {})}

        return load


class DetachedRun(ReadsContexts, KeepsState, Expects, WritesManifests, TracksWrites):
    """A run under `pause` or `disable`. Made by `DetachedRun.begin`; ends with `commit` or `abort`.

    It reads `job.state` (`pause` alone: as it is, or as it was before the window) and stores nothing of it.
    """

    def __init__(
        self,
        store: BookmarkStore,
        job: str,
        caller: RunIdentity,
        choice: Choice,
        machine: RunEnvironment,
        head: Head | None,
        start: Start = BEGINNING,
        walk: _WindowWalk | None = None,
    ) -> None:
        super().__init__()
        self._store, self._job, self._caller, self._choice, self._machine = store, job, caller, choice, machine
        self._head = head or Head()
        self._reader = ContextReader(store, job, self._head, start)
        self._states = JobStates(self._reader)
        self._id = store.new_id()
        self._stopwatch = Stopwatch(machine.monotonic)
        self._window: list[Run] | None = None
        self._start, self._walk = start, walk
        self._goes_on = False
        self._batch = 1
        self._found: dict[str, PlanInput] = {}
        self._sources: dict[str, tuple[Source[Any], Any, OnMissing]] = {}
        self._rows: dict[str, int | None] = {}
        self._greatest: dict[str, Greatest] = {}
        self._places: dict[str, tuple[StagingRequest, str]] = {}
        self._staged: dict[str, Staged] = {}
        self._failures: dict[str, str] = {}
        self._is_over = False
        self._record_id: str | None = None

    @classmethod
    def begin(
        cls,
        store: BookmarkStore,
        job: str,
        caller: RunIdentity,
        choice: Choice,
        machine: RunEnvironment,
        *,
        start: Start = BEGINNING,
        in_batches: bool = False,
    ) -> DetachedRun:
        """Read the bookmark (for a disable, only its owner); resolve the window of a pause.

        `start` is where a pause of a job without a bookmark begins; disable reads all. `in_batches`: where a bound has
        left something over, another run goes on after this one (`following`). A pause over a window is one run: it
        reads what stored plans say.

        Raises:
            RunUnknownError, OptionError: the window names no run, or its ends are the wrong way round.
            OwnerError: the job belongs to another DAG than the caller's, which does not share it.
        """
        walk = _WindowWalk() if in_batches else None
        head = store.look(job).head
        check_owner(store, job, head, caller)
        if choice.option is Option.DISABLE:
            return cls(store, job, caller, choice, machine, None, walk=walk)
        run = cls(store, job, caller, choice, machine, head, start, walk)
        if choice.from_run is not None and choice.to_run is not None:
            run._window = window_runs(store, job, choice.from_run, choice.to_run)
            is_all = choice.from_run == "0"
            before = {} if is_all else resolve_run(store, job, run._head, choice.from_run).contexts
            run._states = JobStates(ContextReader(store, job, replace(run._head, contexts=before)))
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
        return self._caller.run_id

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
    def has_input(self) -> bool:
        """Whether a context that was planned so far has anything to read."""
        return any(not plan.is_empty for _, plan, _ in self._sources.values())

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
            MisuseError: the run is over, or the context is planned already. SourceError: it can't be planned.
        """
        check_name("context", ctx)
        self._check_running(f"read {ctx!r}")
        if ctx in self._sources:
            raise MisuseError(f"job {self._job!r}: context {ctx!r} is read twice in one run. Nothing was changed.")
        with self._stopwatch.measure("plan"):
            plan = (
                self._window_plan(ctx, source, on_missing)
                if self._window is not None
                else self._new_plan(ctx, source, on_source_change, moved_from)
            )
            self._write_manifest(ctx, plan)
            self._machine.at(Failpoint.PLANNED)
        self._sources[ctx] = (source, plan, on_missing)
        log_planned(log, self._job, ctx, plan)
        return plan

    def _new_plan(self, ctx: str, source: Source[P], on_change: OnSourceChange, moved_from: str | None) -> P:
        is_blind = self.option is Option.DISABLE
        walked = None if self._walk is None else self._walk.found.get(ctx)
        moved = None if is_blind else found_moved(self._store, self._job, self._reader, ctx, source, moved_from)
        found = moved or (PlanInput() if is_blind else self._reader.found_for(ctx, source, on_change))
        self._found[ctx] = found = found if walked is None else walked
        if is_blind:
            log.info("bookmark %s, context %s: option disable, the bookmark is not looked at", self._job, ctx)
        elif not self._reader.start.is_beginning:
            log_start(log, self._job, ctx, source.kind, self._reader.start)
        else:
            log_found(log, self._job, ctx, source.kind, self.watermark(ctx), self._head)
        try:
            return source.plan(found)
        except RewindWanted as wanted:
            consumed = int(self.watermark(ctx) or 0)
            way = way_back(self._store, self._job, wanted.upstream, wanted.target)
            raise UpstreamRewoundError(self._job, wanted.upstream, consumed, wanted.target, way) from wanted

    def _window_plan(self, ctx: str, source: Source[P], on_missing: OnMissing) -> P:
        stored = window_entries(self._job, ctx, source, self._window or (), self._head.contexts)
        kind = kind_of(source.kind)
        plans = [kind.decode(self._store.blobs.get(entry.body)) for entry in stored]
        runs = [run.key.number for run in self._window or ()]
        why_not = next(filter(None, map(kind.why_not_again, plans)), None)
        if why_not is not None:
            raise OptionError(
                f"job {self._job!r}, context {ctx!r}: what runs {runs} read can't be read again: {why_not}. Nothing "
                "was read or changed."
            )
        plan: P = kind.union(plans)
        log.info("bookmark %s, context %s: pause reads again what runs %s read", self._job, ctx, runs)
        found = source.recheck(plan)
        if found.moved is not None:
            raise SourceChangedError(
                f"job {self._job!r}, context {ctx!r}: {found.moved} since runs {runs} read it. Nothing was read or "
                "changed. What they read then is no longer there: choose a window of runs that read its present output."
            )
        gone = found.missing
        if gone and on_missing == "error":
            raise SourceChangedError(
                f"job {self._job!r}, context {ctx!r}: {gone_in_words(plan, gone)} that runs {runs} read have another "
                f"version now, or are gone, the first: {gone[0]!r}. Nothing was read or changed. What they read then "
                "is no longer there: choose a window that ends with the run that read the present version, or leave "
                "such files out with on_missing='skip'."
            )
        return recheck_plan(self._job, ctx, source, plan, on_missing) if gone else plan

    @guarded
    def quarantine(self, ctx: str, corrupt: Mapping[str, str]) -> FilePlan:
        """Leave files that can't be parsed out of what this run reads, and record nothing of it."""
        source, plan, on_missing = self._sources[ctx]
        plan = without(plan_of_files(self._job, ctx, plan, "quarantine"), corrupt, QUARANTINED)
        self._write_manifest(ctx, plan)
        self._sources[ctx] = (source, plan, on_missing)
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

    @guarded
    def set_greatest(self, ctx: str, greatest: Greatest) -> None:
        """Keep the greatest value that was read of a column, for the side record."""
        self._greatest[ctx] = greatest

    def schema_before(self, ctx: str) -> str | None:
        """Return the schema (JSON) of the run from which a planned context goes on; None for a window or a disable."""
        found = self._found.get(ctx)
        return None if found is None or found.position is None else self.known_schema(ctx)

    @guarded
    def start_over(self, ctx: str) -> Any:
        """Plan a context again, from its beginning."""
        self._check_running(f"read {ctx!r} from the beginning")
        source, _, on_missing = self._sources[ctx]
        with self._stopwatch.measure("plan"):
            self._found[ctx] = found = PlanInput()
            plan = source.plan(found)
            self._write_manifest(ctx, plan)
        self._sources[ctx] = (source, plan, on_missing)
        log_planned(log, self._job, ctx, plan)
        return plan

    def set_schema(self, ctx: str, schema: str, change: Mapping[str, Any] | None = None) -> None:
        """Keep nothing: no later run reads what a side run left."""

    @guarded
    def set_failed(self, ctx: str, error: str) -> None:
        """Record that a planned context could not be read: this run can't publish, even if the error is caught."""
        self._failures[ctx] = error

    @guarded
    def set_rows(self, ctx: str, rows: int | None) -> None:
        """Keep the number of rows that were read from a context (None: not known)."""
        self._rows[ctx] = rows

    @guarded
    def place(self, output: str, place: StagingRequest) -> str:
        """Return the folder in which to stage an output: below a root that enabled runs neither use nor sweep."""
        check_name("output", output)
        self._check_running(f"write {output!r}")
        if output in self._places:
            raise MisuseError(f"job {self._job!r}: output {output!r} is written twice in one run. Nothing was changed.")
        if place.sink != FILES_SINK:
            self._places[output] = (place, "")
            return ""
        root = staging_root(place.target, place.staging, self._store.namespace, self._job)
        folder = f"{root}{SIDE_FOLDER}/{self._id}/{output}"
        self._places[output] = (place, folder)
        return folder

    @guarded
    def staged(self, output: str, staged: Staged) -> None:
        """Record what is staged for an output."""
        self._staged[output] = staged
        self._note_written(output)
        self._machine.at(Failpoint.STAGED)

    @guarded
    def commit(self) -> Summary:
        """Publish what was staged, and leave the side record; the bookmark does not move.

        Raises:
            MisuseError: it is over already, a read failed, or an output was placed and not written.
            SourceChangedError: planned input changed. In these cases nothing was published.
            PublishError: an output can't be moved; what was not moved is gone.
        """
        self._check_running("commit")
        check_read(self._job, self._failures, "published")
        self._check_written("published")
        check_staged(self._job, self._places, self._staged, "published")
        plans = {
            ctx: recheck_plan(self._job, ctx, source, plan, on_missing)
            for ctx, (source, plan, on_missing) in self._sources.items()
        }
        increment = increment_of(plans, state_changed=self._states.has_changed)
        replaced, changes = self._replaced(increment), self._changes(increment)
        self._is_over = True
        try:
            self._note_replaced(replaced)
            outputs = {name: self._publish(name, increment, changes) for name in self._staged}
            self._move_on(plans)
            contexts = self._facts_of(plans)
            self._leave_record(contexts, outputs, replaced)
        finally:
            self._sweep()  # no later run looks for what a side run has staged
        return Summary(
            job=self._job,
            namespace=self._store.namespace,
            run_id=self._caller.run_id,
            option=self.option.value,
            is_empty=increment.is_empty(publishes=any(output["files"] != 0 for output in outputs.values())),
            is_published=True,
            contexts=contexts,
            outputs=outputs,
            seconds=self._stopwatch.seconds(),
        )

    def _facts_of(self, plans: Mapping[str, Plan]) -> dict[str, dict[str, Any]]:
        contexts = {ctx: {**plan.facts(), "rows": self._rows.get(ctx)} for ctx, plan in plans.items()}
        for ctx, found in self._greatest.items():
            contexts[ctx] |= {"watermark_column": found.column, "greatest": found.value}
        return contexts

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
            self._store, self._job, self._caller, self._choice, self._machine, head, self._start, self._walk
        )
        self._goes_on = False
        run._batch = self._batch + 1
        run.write_manifests(self._manifests)
        return run

    def leave(self) -> None:
        """Do nothing: between two runs of a loop nothing is held."""

    def _move_on(self, plans: Mapping[str, Plan]) -> None:
        if self._walk is None or self._window is not None:
            return
        self._goes_on = is_over_bound(plans)
        for ctx, plan in plans.items():
            position = self._sources[ctx][0].advance(plan)
            if position is not None:
                self._walk.move(ctx, self._found[ctx], position)

    def _is_published(self, name: str, increment: Increment) -> bool:
        place, _ = self._places[name]
        return is_published(increment, {**place.facts, **_said(place)}, self._staged[name])

    def _changes(self, increment: Increment) -> dict[str, FileChanges]:
        """Return what publishing changes, all of it checked before the first change.

        Raises:
            OutOfBoundsError: a link leads out of a target, or a whole file system or bucket is overwritten.
        """
        changes: dict[str, FileChanges] = {}
        for name, staged in self._staged.items():
            place, folder = self._places[name]
            if folder and self._is_published(name, increment):
                item, tokens = f"{self._item}, output {name!r}", frozenset([self.file_token])
                bounds = OutputBounds(self._territory, item, place.target, folder, tokens)
                changes[name] = FileChanges.of_output(bounds, staged.moves, staged.deletes)
        return changes

    @property
    def _item(self) -> str:
        return f"{self.option.value} run"

    @property
    def _territory(self) -> Territory:
        return Territory(self._store.namespace, self._job)

    def _publish(self, name: str, increment: Increment, changes: Mapping[str, FileChanges]) -> dict[str, Any]:
        place, _ = self._places[name]
        staged = self._staged[name]
        if place.sink != FILES_SINK:
            return {"rows": staged.rows, "files": None, "bytes": None}
        if not self._is_published(name, increment):
            facts = discarded_facts(staged)
            log_discarded(self._job, name, {**_said(place), **facts})
            return facts
        what, closing = f"job {self._job!r}, {self._item}, output {name!r}", self._closing()
        move_all(changes[name], what, steps_of(self._machine), closing)
        delete_all(changes[name], what, steps_of(self._machine), closing)
        return {"rows": staged.rows, "files": len(staged.moves), "bytes": staged.bytes}

    def _closing(self) -> Closing:
        stays = (
            "The bookmark is where it was. What of this run was moved before stays in the targets, by names with "
            f"{self.file_token!r}; the rest of it is removed."
        )
        again = "run it again; of an append remove those files first, an overwrite replaces them."
        return Closing(
            failed=f"{stays} Mend the cause (disk, rights) and {again}",
            lost=f"{stays} Somebody else removed staged files: see to that and {again}",
        )

    def _replaced(self, increment: Increment) -> dict[str, Payload]:
        """Return the published files that this run replaces, by output.

        Raises:
            PublishError: there are such files in an output that was not asked to replace them.
        """
        replaced: dict[str, Payload] = {}
        for name, staged in self._staged.items():
            place, _ = self._places[name]
            paths = published_by_runs(staged.deletes) if self._is_published(name, increment) else []
            if paths and not place.overwrites_published:
                raise PublishError(
                    f"job {self._job!r}, {self.option.value} run, output {name!r}: to overwrite {place.target!r} would "
                    f"delete {len(paths)} file(s) that runs have published, the first: {paths[0]!r}. Such a run is "
                    "part of no history, so nothing brings them back, and consumers that have not read them lose their "
                    "rows. Nothing was published or deleted, and the bookmark is where it was. Write to another "
                    f"target, or ask for it: job.write(df, {name!r}, overwrite_published=True); consumers then see "
                    "those files as replaced."
                )
            if paths:
                replaced[name] = self._store.blobs.payload(encode_paths(paths))
        return replaced

    def _note_replaced(self, replaced: Mapping[str, Payload]) -> None:
        """Store what is about to be replaced, before the first of it is deleted; without an attempt, do nothing."""
        if replaced:
            record: dict[str, Any] = {"option": self.option.value, "run_id": self._caller.run_id, "attempt": 0}
            record |= {"contexts": {}, "outputs": {}}
            self._record_id = self._store.put_side(self._job, record, replaced=replaced)

    def _leave_record(
        self, contexts: Mapping[str, Any], outputs: Mapping[str, Any], replaced: Mapping[str, Payload]
    ) -> None:
        record: dict[str, Any] = {
            "option": self.option.value,
            "run_id": self._caller.run_id,
            "attempt": self._caller.attempt,
            "from": self._choice.from_run,
            "to": self._choice.to_run,
            "contexts": contexts,
            "outputs": outputs,
        }
        manifests = {ctx: plan.encode() for ctx, (_, plan, _) in self._sources.items()}
        for ctx, payload in self._store.payloads(manifests).items():
            record[f"plan:{ctx}"] = payload_value(payload)
        self._store.put_side(self._job, record, ulid=self._record_id, replaced=replaced)

    def _sweep(self) -> None:
        for _, folder in self._places.values():
            if not folder:
                continue  # its sink is not a folder
            staging = folder.rpartition("/")[0]
            try:
                FileChanges.of_staging(StagingBounds(self._territory, self._item), [staging]).remove()
            except (BookmarkError, OSError) as error:
                # The user has to see how the run ended, not this.
                log.warning(
                    "bookmark %s: what the %s run staged could not be removed: %s. Readers don't see it; remove %s",
                    self._job,
                    self.option.value,
                    error,
                    staging,
                )

    @guarded
    def abort(self, error: str) -> None:
        """Remove what was staged; nothing else was changed."""
        if not self._is_over:
            self._is_over = True
            error = self._with_unmet(error)
            log.info("bookmark %s: %s run ends without publishing: %s", self._job, self.option.value, in_lines(error))
            self._sweep()

    def _check_running(self, what: str) -> None:
        if self._is_over:
            raise MisuseError(f"job {self._job!r}: can't {what}, this run is over. Nothing moved. Begin another run.")
        self._check_expectations()


def _said(place: StagingRequest) -> dict[str, Any]:
    return {} if place.when_empty is None else {WHEN_EMPTY: place.when_empty}
