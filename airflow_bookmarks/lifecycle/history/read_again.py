"""Count how much input the next runs read again, each file once however many runs have read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.sources.registry import files_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def input_of(
    store: BookmarkStore, runs: Iterable[Run], names_in: Callable[[Run], Collection[str]] | None
) -> Sequence[Mapping[str, Any]]:
    """Return the total files, bytes and rows of what runs read, in the shape of what a run measured.

    `names_in` returns which contexts count, as a run calls them; None: all.

    A file that several of them read counts once, with its newest version and unknown rows. Where a stored plan can no
    longer be read, the counts that its run measured are used.
    """
    sizes: dict[tuple[str, str], int] = {}
    rows: list[Any] = []
    unlisted: list[Mapping[str, Any]] = []
    listed = 0
    for run in runs:
        names = None if names_in is None else names_in(run)
        for ctx, figures in dict(run.metrics.get("contexts", {})).items():
            if names is not None and ctx not in names:
                continue
            try:
                files = files_in(run.plans[ctx].kind, store.blobs.get(run.plans[ctx].body))
            except (KeyError, StateCorruptError):
                files = None
            if files is None:
                unlisted.append(figures)
                continue
            sizes |= {(ctx, file.path): file.size_bytes for file in files}
            listed += len(files)
            rows.append(figures.get("rows"))
    is_counted = listed == len(sizes) and all(isinstance(each, int) for each in rows)
    return [*unlisted, {"files": len(sizes), "bytes": sum(sizes.values()), "rows": sum(rows) if is_counted else None}]


def names_in(run: Run, head: Head, contexts: Iterable[str]) -> set[str]:
    """Return the run's names of the job's present contexts: the same, or a former one over the same source."""
    names: set[str] = set()
    for ctx in contexts:
        state = head.contexts.get(ctx)
        if ctx in run.plans or state is None:
            names.add(ctx)
            continue
        same = {name for name, e in run.plans.items() if (e.kind, e.fingerprint) == (state.kind, state.fingerprint)}
        names |= {name for name in (*same, state.planned_as(ctx)) if name in run.plans and name not in head.contexts}
    return names


def targets_written(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return the targets in which runs wrote anything, by name."""
    return tuple(sorted({o.target for run in runs for o in run.outputs.values() if _has_written(run, o)}))


def _has_written(run: Run, output: OutputEntry) -> bool:
    if output.lies_in_files:
        return output.publish is not None and output.metadata.files != 0
    return output.makes_visible and not run.is_empty
