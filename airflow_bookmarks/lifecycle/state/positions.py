"""Read a job's positions: what the head says of a context, and what the run item that holds its position says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceSwitchedError, StateCorruptError
from airflow_bookmarks.core.metadata.file_plan import with_moves
from airflow_bookmarks.core.rules.start import BEGINNING, Start, is_first_run
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.lifecycle.state.start import found_at_start
from airflow_bookmarks.sources.registry import has_ledger, kind_of
from airflow_bookmarks.sources.relocation import moved_path
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState, Payload, PlanEntry, Run
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
        turning, where = store.turning(job, state.set_in), f"the line of epoch {state.set_in}"
        payload = None if turning is None else turning.positions.get(ctx)
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
            if on_change == "error" or state.kind != source.kind or not kind_of(state.kind).keeps_elsewhere:
                raise SourceSwitchedError(self._job, ctx, state.fingerprint, given)
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
