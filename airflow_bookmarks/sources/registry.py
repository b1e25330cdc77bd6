"""The kinds of source: one line each. A new kind is a planner here and a reader under `spark/readers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.sources.files.planner import OPTIONS, FileSource, advance_files, recorded_files
from airflow_bookmarks.sources.relocation import MOVES, moved_path
from airflow_bookmarks.sources.seek import files_at, upstream_at
from airflow_bookmarks.sources.upstream import UpstreamSource, advance_upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader

_ADVANCE: Mapping[str, Callable[[FilePlan, PlanInput], Position | None]] = {
    FileSource.kind: advance_files,
    UpstreamSource.kind: advance_upstream,
}

_POINTS: Mapping[str, Callable[[StateReader, PlanInput, FilePlan, str], Position]] = {
    FileSource.kind: files_at,
    UpstreamSource.kind: upstream_at,
}


def _recorded_files(store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
    if OPTIONS not in entry.facts:
        raise OptionError(
            "the last run was made by a version that did not record how it read these files. Nothing was read or "
            "changed. From the next run on it is known."
        )
    roots, options = FilePlan.decode(store.blobs.get(entry.body)).roots, entry.facts[OPTIONS]
    moves = entry.facts.get(MOVES, ())
    if moves:
        options = options | {
            name: [moved_path(path, moves) for path in options[name]] for name in ("roots", "globs") if name in options
        }
    return recorded_files([moved_path(root, moves) for root in roots], options, store.now)


def _recorded_upstream(store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
    window = entry.facts["upstream"]
    return UpstreamSource(store, job, window["job"], output=window["output"] or None)


_RECORDED: Mapping[str, Callable[[BookmarkStore, str, PlanEntry], Source]] = {
    FileSource.kind: _recorded_files,
    UpstreamSource.kind: _recorded_upstream,
}


def recorded_source(store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
    """Return the source that a run of `job` planned from, as its plan has it: to look at it again without the script.

    Raises:
        OptionError: contexts of this kind can't be looked at without it, or not from here.
    """
    if entry.kind not in _RECORDED:
        raise OptionError(
            f"a context of kind {entry.kind!r} can't be looked at without its script; {sorted(_RECORDED)} can. "
            "Nothing was read or changed."
        )
    return _RECORDED[entry.kind](store, job, entry)


def position_at(kind: str, store: StateReader, found: PlanInput, plan: FilePlan, value: str) -> Position:
    """Return the position that a value names, in the words of its kind: "now", a time, an upstream run.

    Raises:
        OptionError: the value does not fit the kind, or contexts of this kind can't be set.
    """
    if kind not in _POINTS:
        raise OptionError(f"a context of kind {kind!r} can't be set to a value; {sorted(_POINTS)} can.")
    return _POINTS[kind](store, found, plan, value)


def advance_stored(kind: str, plan: FilePlan, found: PlanInput) -> Position | None:
    """Return the position after a stored plan, without the source that made it (recovery has none).

    Raises:
        StateCorruptError: this version does not know the kind.
    """
    if kind not in _ADVANCE:
        raise StateCorruptError(
            f"a stored plan is of kind {kind!r}, and this version knows {sorted(_ADVANCE)}; upgrade"
        )
    return _ADVANCE[kind](plan, found)
