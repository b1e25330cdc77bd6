"""Read again: how much input the next runs read once more, each file counted once however many runs have read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.plan import FilePlan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def input_of(
    store: BookmarkStore, runs: Iterable[Run], contexts: Collection[str] | None
) -> Sequence[Mapping[str, Any]]:
    """Return files, bytes and rows of what runs read, in the shape of what a run measured; together they are the whole.

    A file that several of them read counts once, with its newest version, and its rows are not known then. Where a
    stored plan can't be read any more, what its run measured counts as it is.
    """
    sizes: dict[tuple[str, str], int] = {}
    rows: list[Any] = []
    unlisted: list[Mapping[str, Any]] = []
    listed = 0
    for run in runs:
        for ctx, facts in dict(run.metrics.get("contexts", {})).items():
            if contexts is not None and ctx not in contexts:
                continue
            try:
                plan = FilePlan.decode(store.blobs.get(run.plans[ctx].body))
            except (KeyError, StateCorruptError):
                unlisted.append(facts)
                continue
            sizes |= {(ctx, file.path): file.size_bytes for file in plan.files}
            listed += len(plan)
            rows.append(facts.get("rows"))
    is_counted = listed == len(sizes) and all(isinstance(each, int) for each in rows)
    return [*unlisted, {"files": len(sizes), "bytes": sum(sizes.values()), "rows": sum(rows) if is_counted else None}]


def targets_written(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return the targets in which runs wrote anything, by name."""
    return tuple(sorted({o.target for run in runs for o in run.outputs.values() if _has_written(run, o)}))


def _has_written(run: Run, output: OutputEntry) -> bool:
    if output.is_staged:
        return output.publish is not None and output.facts.get("files") != 0
    return not run.is_empty
