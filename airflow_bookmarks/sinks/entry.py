"""Build output entries as a commit stores them, from what was staged: published, discarded, or landed by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.files.file_list import encode_moves, encode_paths
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.core.text.count import REMOVED_KEYS
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.run import Payload
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest

StoreBodies = Callable[[Mapping[str, bytes]], Mapping[str, "Payload"]]


def landing_entry(request: StagingRequest, place: str = "") -> OutputEntry:
    """Return the entry of an output that commits by itself, as stored before its rows land."""
    return OutputEntry(request.sink, request.target, place, stats_of(request), commits_by_itself=True)


def landed_entry(entry: OutputEntry, staged: Staged) -> OutputEntry:
    """Return the entry of an output that is not in files: nothing is listed, its sink alone knows what is visible."""
    removed = {} if staged.removed_keys is None else {REMOVED_KEYS: staged.removed_keys}
    rows = None if staged.rows is None else staged.rows - (staged.removed_keys or 0)
    return replace(entry, stats={**entry.stats, "rows": rows, **removed, **staged.figures})


def discarded_entry(entry: OutputEntry, staged: Staged) -> OutputEntry:
    """Return the entry of an output that is not published: what was staged is swept."""
    is_left_out = not entry.lies_in_files
    return replace(entry, stats={**entry.stats, **discarded_stats(entry, staged)}, is_left_out=is_left_out)


def published_entry(
    entry: OutputEntry,
    staged: Staged,
    deletes: Sequence[str] | None,
    store: StoreBodies,
    stats: Mapping[str, Any] | None = None,
) -> OutputEntry:
    """Return the entry of an output that is published once its commit is done; its lists are stored.

    Args:
        deletes: what the publish removes; None: it has no such list.
        store: stores the lists, and returns what the entry refers to.
        stats: what else is recorded of it.
    """
    lists = {"publish": encode_moves(staged.moves, staged.files), "schema": (staged.schema or "").encode()}
    if deletes is not None:
        purged = {file.path: file for file in staged.purged}
        lists["delete"] = encode_paths([purged.get(path, path) for path in deletes])
    stored = store(lists)
    counts = {"rows": staged.rows, "files": len(staged.moves), "bytes": staged.bytes}
    counts["deleted_files"] = len(deletes or ())
    return replace(
        entry,
        stats={**entry.stats, **counts, **(stats or {})},
        publish=stored["publish"],
        schema=stored["schema"],
        delete=stored.get("delete"),
    )


def discarded_stats(entry: OutputEntry, staged: Staged) -> dict[str, Any]:
    """Return the counts of an output that is not published: those of what is visible, and of what is not."""
    stats: dict[str, Any] = {"rows": 0, "files": 0, "bytes": 0}
    if staged.moves:
        stats["discarded_files"] = len(staged.moves)
    if (staged.moves or not entry.lies_in_files) and staged.rows != 0:
        stats |= {"discarded": True, "discarded_rows": staged.rows, "discarded_files": len(staged.moves)}
    return stats
