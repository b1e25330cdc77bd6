"""Replay: make the output of a finished run again, from its stored plan. Position and later runs stay.

begin, recover   as any run
read             the stored plan; a planned file that changed or went is an error here, always
stage            under the own fence
commit           one transaction: HEAD publishing = n, changes + 1 | RUN n COMMITTED, revision + 1
publish          the new files, then the former ones of that run are deleted; consumers are told by the revision
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    MisuseError,
    SourceChangedError,
    SourceSwitchedError,
)
from airflow_bookmarks.core.files.file_list import decode_moves
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.settings import PREFIX
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.checks.replayable import check_not_overwritten, replayable_run
from airflow_bookmarks.lifecycle.run.lease_holder import LeaseHolder
from airflow_bookmarks.lifecycle.run.leased import LeasedRun, none_follows
from airflow_bookmarks.lifecycle.run.use.inputs import PlannedContext
from airflow_bookmarks.lifecycle.state.discard import increment_of, is_published, log_discarded
from airflow_bookmarks.lifecycle.state.guard import guarded
from airflow_bookmarks.lifecycle.state.job_state import JobStates
from airflow_bookmarks.lifecycle.state.positions import ContextReader, is_of_another_format, switched_format
from airflow_bookmarks.lifecycle.state.summary import Summary, log_planned
from airflow_bookmarks.lifecycle.state.verification import gone_in_words
from airflow_bookmarks.sinks.entry import discarded_entry, discarded_stats, landed_entry, published_entry
from airflow_bookmarks.sinks.files.publish import check_publishable
from airflow_bookmarks.sinks.registry import SINKS, SinkRegistry
from airflow_bookmarks.sources.registry import kind_of
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.lifecycle.protocol.acquire import OnConflict
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.state.verification import OnMissing
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.sources.source import OnSourceChange, P, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_AS_THEN = "A replay makes what its run made, and that left this output out. To have it, let a new run make it."


class ReplayRun(LeaseHolder):
    """A run that holds the lease and makes run `number` again. Made by `ReplayRun.begin_replay`."""

    def __init__(self, leased: LeasedRun, run: Run) -> None:
        super().__init__(leased)
        self._run = run
        self._reader = ContextReader(self._store, self.job, self._grant.base)
        self._states = JobStates.seen_by(self._store, self.job, run)

    @classmethod
    def begin_replay(
        cls,
        store: BookmarkStore,
        job: str,
        identity: RunIdentity,
        environment: RunEnvironment,
        number: int,
        *,
        on_conflict: OnConflict = "fail",
        wait_for: timedelta = timedelta(hours=1),
        sinks: SinkRegistry = SINKS,
    ) -> ReplayRun:
        """Take the job, finish what is due, settle what is open, and find the run that is to be made again.

        Raises:
            RunUnknownError: no such committed run.
            ChangeRefusedError: it can't be replayed: undone, written by a sink that commits by itself, or overwritten.
            JobBusyError, AttemptRefusedError, PublishError, SourceError, StoreError: as `ActiveRun.begin`.
        """
        leased = LeasedRun.begin(
            store, job, identity, environment, on_conflict=on_conflict, wait_for=wait_for, sinks=sinks, replays=number
        )
        try:
            run = cls(leased, replayable_run(store, job, leased.grant.base, number, sinks))
        except BaseException:  # nobody has the run yet, so nobody else can give the job back
            leased.give_back()
            raise
        log.info("bookmark %s: replay of run %d, revision %d", job, number, run._run.revision + 1)
        return run

    @property
    def run_number(self) -> int:
        """The number of the run that is made again."""
        return self._run.key.number

    @property
    def epoch(self) -> int:
        """The epoch of the run that is made again."""
        return self._run.epoch

    @property
    def may_quarantine(self) -> bool:
        """No: a replay reads exactly what the run read."""
        return False

    @property
    def compares_columns(self) -> bool:
        """No: what later runs have made of the columns does not matter here."""
        return False

    def known_schema(self, ctx: str) -> str | None:
        """Return the schema (JSON) with which the run that is made again read a context, not that of the newest run."""
        payload = self._run.schemas.get(ctx)
        return None if payload is None else self._store.blobs.get(payload).decode()

    def schema_before(self, ctx: str) -> str | None:
        """Return the schema with which the run read the context, so that its columns come out as they did then."""
        return self.known_schema(ctx)

    # ---- plan, place

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
        """Return the stored plan of the context; `on_missing` and what follows it don't apply to a replay.

        Raises:
            MisuseError: the run did not read the context, or this one has read it already.
            SourceSwitchedError: it was read from another source. SourceChangedError: a planned file changed or went.
            ChangeRefusedError: its kind can't read a plan a second time.
        """
        check_name("context", ctx)
        self._check_running(f"read {ctx!r}")
        entry = self._run.plans.get(ctx)
        if entry is None or ctx in self._inputs:
            raise MisuseError(
                f"job {self.job!r}: run {self.run_number} read the contexts {sorted(self._run.plans)}, each once; its "
                f"replay can't read {ctx!r} {'again' if entry else ''}. Nothing was changed."
            )
        if entry.fingerprint != str(source.ref()):
            raise SourceSwitchedError(self.job, ctx, entry.fingerprint, str(source.ref()))
        if is_of_another_format(source, entry):
            raise switched_format(self.job, ctx, source, entry)
        with self._stopwatch.measure("plan"):
            kind = kind_of(entry.kind)
            plan: P = kind.decode(self._store.blobs.get(entry.body))
            self._check_again(ctx, kind.why_not_again(plan))
            self._check_unchanged(ctx, source, plan)
            self._write_manifest(ctx, plan)
        self._inputs.add(ctx, PlannedContext(source, PlanInput(), plan))
        self._environment.at(Failpoint.PLANNED)
        log_planned(log, self.job, ctx, plan)
        return plan

    def quarantine(self, ctx: str, corrupt: Mapping[str, str]) -> NoReturn:
        """Refuse to read less than the run that is made again.

        Raises:
            MisuseError: always.
        """
        raise self._reads_otherwise(f"leave out {len(corrupt)} file(s) of {ctx!r}")

    def start_over(self, ctx: str) -> NoReturn:
        """Refuse to read more than the run that is made again.

        Raises:
            MisuseError: always.
        """
        raise self._reads_otherwise(f"read {ctx!r} from the beginning")

    def _reads_otherwise(self, what: str) -> MisuseError:
        return MisuseError(
            f"job {self.job!r}: can't {what}: a replay reads exactly what run {self.run_number} read. Nothing was "
            "changed. Rewind the job to before that run instead, or let the next run do it."
        )

    def _check_again(self, ctx: str, why_not: str | None) -> None:
        if why_not is not None:
            raise ChangeRefusedError(
                f"job {self.job!r}, context {ctx!r}: run {self.run_number} can't be replayed: {why_not}. Nothing was "
                "changed. Rewind the job to before that run instead, or let the next run go on."
            )

    def _check_unchanged(self, ctx: str, source: Source[P], plan: P) -> None:
        found = source.recheck(plan)
        if found.moved is not None:
            why = f"{found.moved} since run {self.run_number} read it"
        elif found.missing:
            gone = gone_in_words(plan, found.missing)
            why = f"{gone} that run {self.run_number} read have changed or are gone, the first: {found.missing[0]!r}"
        else:
            return
        raise SourceChangedError(
            f"job {self.job!r}, context {ctx!r}: {why}. A replay reads exactly what the run read, so it can't be done. "
            "Nothing was changed. Rewind the job to before that run instead: it then reads what is there."
        )

    @guarded
    def place(self, output: str, place: StagingRequest) -> str:
        """Return the folder in which to stage an output of the run again.

        Raises:
            MisuseError: the run had no such output, wrote it elsewhere, or it was placed already.
            FencedError: the job is not ours any more.
        """
        check_name("output", output)
        self._check_running(f"write {output!r}")
        former = self._run.outputs.get(output)
        if (
            former is None
            or former.target != place.target
            or former.sink != place.sink
            or output in self._outputs.placed
        ):
            wrote = {name: entry.target for name, entry in self._run.outputs.items()}
            raise MisuseError(
                f"job {self.job!r}: run {self.run_number} wrote {wrote}, each once; its replay can't write {output!r} "
                f"to {place.target!r}. Nothing was changed. Rewind the job to before that run instead."
            )
        entry, self._leased.staging = self._leased.stage(self._run_key, output, place)
        self._store.add_staging(self._grant, self._leased.staging)
        self._outputs.place(output, entry)
        self._environment.at(Failpoint.PLACED)
        return entry.place

    def place_landings(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        """Raise, as `place` does: nothing that commits by itself can be written again."""
        return {output: self.place(output, place) for output, place in places.items()}

    def is_to_land(self, place: StagingRequest, made_from: Sequence[str], has_rows: Callable[[], bool]) -> bool:
        """Return True: `place` says why nothing of it can be written again."""
        return True

    def leave_out(self, output: str, place: StagingRequest, staged: Staged) -> None:
        """Do nothing: a replay leaves out what the run left out."""

    # ---- commit

    @guarded
    def commit(self) -> Summary:
        """Commit the revision, publish, mark, sweep.

        Raises:
            MisuseError: over already, a read failed, or not all that the run read and wrote was read and written again.
            SourceChangedError: planned input changed. ChangeRefusedError: a later run has the same partitions.
            FencedError, ChangedMeanwhileError: nothing was committed.
            PublishError: committed; the publish stays due and is finished by whoever begins next.
        """
        self._check_running("commit")
        self._inputs.check_read("committed")
        self._outputs.check_written("committed")
        self._check_whole()
        for ctx, context in self._inputs.items():
            self._check_unchanged(ctx, context.source, context.plan)
        if self._states.changed() is not None:
            log.warning("bookmark %s: a replay leaves job.state as it is; what it has set is not stored", self.job)
        if self._run.is_empty:
            return self._end_empty()
        self._stopwatch.measure_since("read_write", "plan")
        with self._stopwatch.measure("commit"):
            outputs = {name: self._entry(name) for name in self._outputs.placed}
            self._environment.at(Failpoint.BEFORE_COMMIT)
            run = self._store.commit_replay(self._grant, self._run, outputs)
        self._leased.is_over = True
        self._environment.at(Failpoint.COMMITTED)
        log.info("bookmark %s: revision %d of run %d committed", self.job, run.revision, run.key.number)
        return self._leased.publish(run)

    def _check_whole(self) -> None:
        unread = sorted(set(self._run.plans) - set(self._inputs))
        unwritten = sorted(set(self._run.outputs) - set(self._outputs.staged))
        if unread or unwritten:
            raise MisuseError(
                f"job {self.job!r}: the replay of run {self.run_number} did not read {unread} or write {unwritten}, "
                "which that run did. Nothing was committed: a replay replaces a run's output whole."
            )

    def following(self) -> NoReturn:
        """Refuse: a replay is one run.

        Raises:
            MisuseError: always.
        """
        raise none_follows(self.job)

    def _end_empty(self) -> Summary:
        """Give the job back: an empty run has published nothing, so there is nothing to replace."""
        for name, staged in self._outputs.staged.items():
            log_discarded(self.job, name, discarded_stats(self._outputs.placed[name], staged), remedy=_AS_THEN)
        self._leased.is_over = True
        self._leased.renewer.stop()
        self._store.end_replay(self._grant, self._run)
        self._leased.is_marked = True
        log.info("bookmark %s: run %d was empty, its replay changes nothing", self.job, self.run_number)
        return Summary.of(self._run, self._store.namespace, self.job)

    def _entry(self, name: str) -> OutputEntry:
        entry, staged, former = self._outputs.placed[name], self._outputs.staged[name], self._run.outputs[name]
        if not self._replaces(former, staged):
            discarded = discarded_entry(entry, staged)
            log_discarded(self.job, name, discarded.stats, when_empty=entry.metadata.when_empty, remedy=_AS_THEN)
            return discarded
        if not entry.lies_in_files:
            return landed_entry(entry, staged)
        if not entry.metadata.is_append:
            check_not_overwritten(self._store, self.job, self._grant.base, self._run, entry.target, staged)
        fresh = {target for _, target in staged.moves}
        own = [] if former.publish is None else decode_moves(self._store.blobs.get(former.publish))
        deletes = [target for _, target in own if target not in fresh]
        fences = (self._run.key.fence, *self._run.fences)
        check_publishable(self._leased.territory, self._run_key, name, entry, staged.moves, deletes, replayed=fences)
        published = published_entry(entry, staged, deletes, self._leased.bodies.payloads)
        return replace(published, replaced=former.delete if self._run.revision == 0 else former.replaced)

    def _replaces(self, former: OutputEntry, staged: Staged) -> bool:
        """Whether an output of the run is made visible again, or for the first time.

        The files that an overwrite has to delete are known only when its run commits: so an output that was discarded
        then is discarded again.
        """
        if former.makes_visible:
            return True
        increment = increment_of(self._inputs.plans, state_changed=STATE_CONTEXT in self._run.positions)
        return former.metadata.is_append and is_published(increment, former, staged)


def replay_settings(store: BookmarkStore, job: str, number: int) -> dict[str, Any]:
    """Return the spark-submit settings for a replay of a run; the run is looked up again when the driver begins.

    Raises:
        RunUnknownError, ChangeRefusedError: the run can't be replayed.
    """
    run = replayable_run(store, job, store.head(job), number)
    return {
        "job": job,
        "run_number": number,
        "revision": run.revision,
        "conf": {f"{PREFIX}job": job, f"{PREFIX}replay": str(number)},
        "in_airflow": f"where a task made it (run id {run.run_id}), clear that task",
    }
