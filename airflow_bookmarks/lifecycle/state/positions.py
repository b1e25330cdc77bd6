"""Read a job's positions: where its contexts stand, where the first run begins, and what the last plan recorded.

The head says where a context stands, and the item of a run holds the position itself. No folder is listed here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceSwitchedError, StateCorruptError, StoreAccessError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.ledger.gap import shown_gaps
from airflow_bookmarks.core.metadata.file_plan import with_moves
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.rules.start import BEGINNING, Start, is_first_run
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.selection.bound import READ_LATER
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.sources.registry import has_ledger, kind_of, own_errors
from airflow_bookmarks.sources.relocation import moved_path
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.transitions.naming import job_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.metadata.plan import PlanMetadata
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.core.run import ContextState, Payload, PlanEntry, RunKey
    from airflow_bookmarks.sources.source import OnSourceChange, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def stored_position(
    store: BookmarkStore, job: str, ctx: str, state: ContextState | None, run: Run | None = None
) -> Payload | None:
    """Return the position that a context's state names; None if there is no state. `run` saves a read of its item.

    Raises:
        StateCorruptError: the state names a position that is not there.
    """
    if state is None:
        return None
    if state.set_in is not None:
        line_change, where = store.line_change(job, state.set_in), f"the line of epoch {state.set_in}"
        payload = None if line_change is None else line_change.positions.get(ctx)
    else:
        run, where = run or store.run(job, state.run), f"run {state.run}"
        payload = None if run is None else run.positions.get(ctx)
    if payload is None:
        raise StateCorruptError(
            f"job {job!r}, context {ctx!r}: its position lies in {where}, and that item or the position in it is gone. "
            "Nothing was read or changed: an absent position is never taken for an empty one. Restore the table from a "
            "backup, or reset the job: its next run then reads everything."
        )
    return payload


def is_of_another_format(source: Source[Any], stored: PlanEntry | PlanInput) -> bool:
    """Whether a plan was read in another format than the source's; an unknown one never counts."""
    return source.format is not None and stored.file_metadata.format not in (None, source.format)


def switched_format(job: str, ctx: str, source: Source[Any], stored: PlanEntry | PlanInput) -> SourceSwitchedError:
    """Return the error that a context is read in another format than its bookmark has."""
    given = str(source.ref())
    return SourceSwitchedError(job, ctx, f"{given} as {stored.file_metadata.format}", f"{given} as {source.format}")


def moved_entry(entry: PlanEntry, moves: Sequence[tuple[str, str]]) -> PlanEntry:
    """Return a stored plan as if made after some roots had moved: what is known of its source then."""
    return replace(entry, stats=with_moves(entry.stats, moves))


def entry_now(entry: PlanEntry, state: ContextState | None) -> PlanEntry:
    """Return a stored plan of a context as its source is now: with the roots that moved since it was made."""
    if state is None or not state.moves or entry.fingerprint == state.fingerprint:
        return entry
    return replace(moved_entry(entry, state.moves), fingerprint=state.fingerprint)


class ContextReader:
    """Positions, watermarks and schemas of one head; each run item is fetched once.

    `start` is where the job begins if it has no bookmark yet.
    """

    def __init__(self, store: BookmarkStore, job: str, head: Head, start: Start = BEGINNING) -> None:
        self._store, self._job, self._head = store, job, head
        self._start = start if is_first_run(head) else BEGINNING
        self._runs: dict[str, Run | None] = {}

    def state(self, ctx: str) -> ContextState | None:
        """Return what the head says of a context."""
        return self._head.contexts.get(ctx)

    def watermark(self, ctx: str) -> str | None:
        """Return the committed watermark of a context, None where it has none."""
        state = self._head.contexts.get(ctx)
        return None if state is None else state.watermark

    @property
    def head(self) -> Head:
        """The head that everything is read by."""
        return self._head

    @property
    def start(self) -> Start:
        """Where a context without a position begins: the job's start in its first run, then the beginning."""
        return self._start

    def found_for(self, ctx: str, source: Source[Any], on_change: OnSourceChange) -> PlanInput:
        """Return what to plan `source` from, if the stored position is of this source.

        Raises:
            SourceSwitchedError: it is of another source, and `on_change` says neither "reset" nor, for the same kind of
                source, "keep". StateCorruptError: as `found`.
        """
        state, given = self.state(ctx), str(source.ref())
        if state is not None and state.fingerprint != given:
            if on_change == "reset":
                return PlanInput()
            keeps = state.kind == source.kind and kind_of(state.kind).keeps_elsewhere
            if on_change == "error" or not keeps:
                raise SourceSwitchedError(self._job, ctx, state.fingerprint, given, keeps_elsewhere=keeps)
        if state is None:
            return found_at_start(self._store, source, self._start)
        found = self.found(ctx)
        if is_of_another_format(source, found):
            if on_change == "reset":
                return PlanInput()
            if on_change == "error":
                raise switched_format(self._job, ctx, source, found)
        return found

    def found(self, ctx: str) -> PlanInput:
        """Return what a source is planned from.

        Raises:
            StateCorruptError: the head names a position that is not there.
        """
        if ctx not in self._head.contexts:
            return PlanInput()
        run, state = self._run(ctx), self._head.contexts[ctx]
        payload = stored_position(self._store, self._job, ctx, state, run)
        plan = self.planned_entry(ctx)
        if payload is None:
            return PlanInput()
        return PlanInput(
            self._store.blobs.get(payload),
            self._store.segments.take,
            {} if plan is None else plan.file_metadata.partition_types,
            watermark=state.watermark if state.watermark_column is None else None,
            stats={} if plan is None else plan.stats,
            read_at=None if run is None else from_text(run.planned_at),
            is_set=state.set_in is not None,
        )

    def planned_entry(self, ctx: str) -> PlanEntry | None:
        """Return the plan that led to the position of a context, as its source is now; None if it is gone."""
        run = self._run(ctx)
        state = self._head.contexts[ctx]
        entry = None if run is None else run.plans.get(state.planned_as(ctx))
        return None if entry is None else entry_now(entry, state)

    def stored_plan(self, ctx: str) -> Any:
        """Return the plan that led to the position of a context (the one before it was set, where it was); of its kind.

        Raises:
            StateCorruptError: the run item that holds it is gone.
        """
        entry = self.planned_entry(ctx)
        if entry is None:
            raise StateCorruptError(
                f"job {self._job!r}, context {ctx!r}: the plan of run {self._head.contexts[ctx].run} is gone. Nothing "
                "was changed."
            )
        plan = kind_of(entry.kind).decode(self._store.blobs.get(entry.body))
        moves = entry.file_metadata.moves if has_ledger(entry.kind) else ()  # nothing else is relocated
        return replace(plan, roots=tuple(moved_path(root, moves) for root in plan.roots)) if moves else plan

    def known_schema(self, ctx: str) -> str | None:
        """Return the schema (JSON) with which the run that holds the position read it; None if there is none."""
        run = self._run(ctx) if ctx in self._head.contexts else None
        payload = None if run is None else run.schemas.get(self._head.contexts[ctx].planned_as(ctx))
        return None if payload is None else self._store.blobs.get(payload).decode()

    def _run(self, ctx: str) -> Run | None:
        key = self._head.contexts[ctx].run
        if str(key) not in self._runs:
            wanted = list(dict.fromkeys(state.run for state in self._head.contexts.values()))
            found = self._store.run_items(self._job, wanted)
            self._runs = {str(k): found.get(k) for k in wanted}
        return self._runs[str(key)]


class ReadsContexts:
    """What any run tells of its contexts: before its commit as the runs before left them, after it as it left them.

    Under `disable` there is nothing to tell.
    """

    _reader: ContextReader

    def position(self, ctx: str) -> bytes | None:
        """Return the stored position of a context; None if it has none."""
        return self._reader.found(ctx).position

    def watermark(self, ctx: str) -> str | None:
        """Return the committed watermark of a context; None if it has none."""
        return self._reader.watermark(ctx)

    def context_state(self, ctx: str) -> ContextState | None:
        """Return where a context stands; None if it was never read."""
        return self._reader.state(ctx)

    def known_schema(self, ctx: str) -> str | None:
        """Return the schema (JSON) with which the last run that moved this context read it."""
        return self._reader.known_schema(ctx)


# ---- the first run of a job


log = logging.getLogger(__name__)

_NAMED = 3  # jobs that a warning names


def found_at_start(store: BookmarkStore, source: Source[Any], start: Start) -> PlanInput:
    """Return what a context of a job without a bookmark is planned from, so that it begins at `start`.

    An upstream begins after the last run that it had published by then; any other source is given the time.
    """
    kind, ref = kind_of(source.kind), source.ref()
    with own_errors(kind.name):
        return kind.begin(store, ref, start)


def position_at_start(found: PlanInput, plan: Plan) -> Position | None:
    """Return the position of a context that the first run put at its start and read nothing from."""
    if found.position is None or plan.edge is None:
        return None
    return Position(found.position, str(plan.edge.until))


def with_place(found: PlanInput, store: BookmarkStore, job: str) -> PlanInput:
    """Let a run of a job keep folders beside what it plans: a look that only previews a plan may not."""
    return replace(
        found, new_artifact=partial(store.new_artifact, job), drop_artifact=partial(store.drop_artifact, job)
    )


def log_start(log: logging.Logger, job: str, ctx: str, kind: str, start: Start) -> None:
    """Log where the first run of a job begins."""
    log.info(
        "bookmark %s, context %s (%s): no bookmark yet, start %r: what was there before counts as read",
        job,
        ctx,
        kind,
        start.text,
    )


def warn_renamed(job: str, before: Mapping[str, ContextState], read: Mapping[str, Source[Any]]) -> None:
    """Warn of each new context that has the source of one that the job has and this run did not read.

    Args:
        job: the job that is about to commit.
        before: its contexts.
        read: the sources of this run by context.
    """
    unread = {state.fingerprint: ctx for ctx, state in before.items() if ctx not in read}
    for ctx, source in read.items():
        other = unread.get(str(source.ref()))
        if ctx in before or other is None:
            continue
        log.warning(
            "bookmark %s, context %s: it is new, and its source (%s) is that of the context %r, which this run did not "
            "read. If that is the same read under a former name, all of it was read again: take this run back (rewind, "
            "with --clean where it wrote), and move the position with 'airflow-bookmarks rename-context %s %s %s'. "
            "Else nothing needs to be done.",
            job,
            ctx,
            str(source.ref()),
            other,
            job,
            other,
            ctx,
        )


class OtherReaders:
    """The other jobs of a namespace, read once, to recognise a renamed job in its first run."""

    def __init__(self, store: BookmarkStore, job: str) -> None:
        self._store, self._job = store, job
        self._heads: Mapping[str, Head] | None = None

    def warn(self, ctx: str, source: Source[Any]) -> None:
        """Warn if other jobs read the source of a context already, and name them."""
        fingerprint = str(source.ref())
        readers = sorted(
            name
            for name, head in self._others().items()
            if fingerprint in {s.fingerprint for s in head.contexts.values()}
        )
        if not readers:
            return
        more = f" and {len(readers) - _NAMED} more" if len(readers) > _NAMED else ""
        log.warning(
            "bookmark %s, context %s: this job has no bookmark, and the same source (%s) is read already by %s%s. If "
            "that is this job under a former name (a renamed DAG or task), stop this run before it commits and carry "
            "the bookmark over with `airflow-bookmarks adopt`. Where each of them reads it for itself, such as one "
            "that runs beside the other on trial, nothing needs to be done.",
            self._job,
            ctx,
            fingerprint,
            ", ".join(map(repr, readers[:_NAMED])),
            more,
        )

    def _others(self) -> Mapping[str, Head]:
        if self._heads is None:
            try:
                others = [name for name in job_keys(self._store) if name != self._job]
                # Only a hint: the damage of another job is no reason to stop this one.
                found = self._store.heads_or_damage(others)
                self._heads = {name: head for name, head in found.items() if isinstance(head, Head)}
            except StoreAccessError as error:
                log.info("bookmark %s: can't look whether another job reads the same source: %s", self._job, error)
                self._heads = {}
        return self._heads


# ---- what the last plan recorded


LastPlans = dict[str, "PlanEntry"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run left of a context to later runs, over a bound or settling, when it listed it.

    `run_number` is that of the run. `bytes` and `oldest` are None where they were not recorded, and `oldest` also where
    nothing was left. `skipped` counts by reason all that it left out.
    """

    run_number: int
    looked_at: datetime
    files: int
    bytes: int | None
    oldest: datetime | None
    skipped: Mapping[str, int]

    @classmethod
    def of(cls, run: Run, plan: PlanMetadata) -> Waiting:
        """Read it from what is stored with a plan of the run."""
        files, oldest = sum(plan.skipped.get(reason, 0) for reason in READ_LATER), plan.waiting_oldest_ms
        return cls(
            run.key.number,
            from_text(run.planned_at if plan.looked_at is None else plan.looked_at),
            files,
            plan.waiting_bytes if files else 0,
            None if oldest is None else instant(oldest),
            plan.skipped,
        )


def left_waiting(store: BookmarkStore, job: str, head: Head, ctx: str, recent: Sequence[Run]) -> Waiting | None:
    """Return what the last plan of a context left to later runs; None if no run of the present epoch planned it.

    What a run saw before a reset, rewind or set says nothing of what the next run reads.

    Args:
        recent: the runs that committed last.
    """
    state = head.contexts.get(ctx)
    last = [run for run in recent if run.key.number == head.run_number and run.state.is_committed]
    holder = None if state is None else store.run(job, state.run)
    for run in (*last, *([] if holder is None else [holder])):
        name = ctx if ctx in run.plans or state is None else state.planned_as(ctx)
        if run.epoch == head.epoch and name in run.plans:
            return Waiting.of(run, run.plans[name].metadata)
    return None


def last_plans(store: BookmarkStore, job: str, head: Head) -> LastPlans:
    """Return the plan that listed each context last.

    A run item that can't be read is skipped; `doctor` names it.
    """
    numbers = {head.run_number, *(state.run.number for state in head.contexts.values())}
    found: dict[RunKey, Run] = {}
    for number in sorted(numbers - {0}):
        runs = store.runs_or_damage(job, after=number - 1, until=number)
        found |= {key: run for key, run in runs if isinstance(run, Run) and run.state.is_committed}
    return last_plans_among(head, found)


def last_plans_among(head: Head, runs: Mapping[RunKey, Run]) -> LastPlans:
    """Return the same from the committed runs that are given: the newest one of the present epoch, which listed last,
    else the one that holds the position.
    """
    newest = [run for key, run in runs.items() if key.number == head.run_number and run.epoch == head.epoch]
    told: LastPlans = {}
    for ctx, state in head.contexts.items():
        holder = runs.get(state.run)
        for run in (*newest, *([] if holder is None else [holder])):
            name = ctx if ctx in run.plans else state.planned_as(ctx)
            if name in run.plans:
                told[ctx] = run.plans[name]
                break
    return told


def shown(entry: PlanEntry | None) -> dict[str, Any]:
    """Return what a plan tells of a position: `gaps` and `newest_partition`, where it does."""
    if entry is None:
        return {}
    gaps, newest = shown_gaps(entry.stats), entry.file_metadata.newest_partition
    return {**({} if gaps is None else {"gaps": gaps}), **({} if newest is None else {NEWEST_PARTITION: newest})}
