"""Find which partitions an execution has not read: those of a loop over partitions that failed, or were not reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.lifecycle.state.positions import stored_position
from airflow_bookmarks.sources.registry import find_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.plan import PlanPart
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

PartitionsLeft = dict[str, dict[str, list[str | None]]]


def partitions_left(store: BookmarkStore, job: str, run_id: str) -> PartitionsLeft:
    """Return by context and column the parts that an execution has found, and not committed.

    Of tables the position names them, also those that it has not reached. Else the runs that failed do.

    Raises:
        StateCorruptError: the position or a plan can't be read.
    """
    seen = store.snapshot(job, run_id)
    if seen.head is None:
        return {}
    found: dict[str, set[PlanPart]] = {}
    for ctx, state in seen.head.contexts.items():
        kind, payload = find_kind(state.kind), stored_position(store, job, ctx, state)
        if kind is not None and payload is not None:
            found.setdefault(ctx, set()).update(kind.parts_left(store.blobs.get(payload), run_id))
    first = seen.head.run_number + 1 if seen.execution is None else seen.execution.first_run or seen.head.run_number + 1
    for run in store.runs(job, after=first - 1):
        for ctx, entry in run.plans.items() if run.run_id == run_id else ():
            kind = find_kind(entry.kind)
            part = None if kind is None else kind.part_of(kind.decode(store.blobs.get(entry.body)))
            if part is not None and run.state.is_committed:
                found.setdefault(ctx, set()).discard(part)
            elif part is not None:
                found.setdefault(ctx, set()).add(part)
    return {ctx: by_column for ctx, parts in found.items() if (by_column := _by_column(parts))}


def _by_column(parts: set[PlanPart]) -> dict[str, list[str | None]]:
    values: dict[str, list[str | None]] = {}
    for part in sorted(parts, key=lambda each: (each.column, each.value is None, each.value or "")):
        values.setdefault(part.column, []).append(part.value)
    return values


def joined(all_left: Mapping[str, PartitionsLeft]) -> PartitionsLeft:
    """Return what is left in any of several jobs."""
    whole: PartitionsLeft = {}
    for left in all_left.values():
        for ctx, by_column in left.items():
            for column, values in by_column.items():
                known = whole.setdefault(ctx, {}).setdefault(column, [])
                known += [value for value in values if value not in known]
    return whole
