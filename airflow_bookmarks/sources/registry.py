"""The kinds of source: one line each. A new kind is an object here, a planner, and a reader under `spark/readers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.sources.files.kind import FileKind
from airflow_bookmarks.sources.upstream_kind import UpstreamKind

if TYPE_CHECKING:
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.sources.kind import Kind
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader

KINDS: dict[str, Kind[Any]] = {
    FileKind.name: FileKind(),
    UpstreamKind.name: UpstreamKind(),
}


def find_kind(name: str) -> Kind[Any] | None:
    """Return the kind of that name; None where this version does not know it."""
    return KINDS.get(name)


def kind_of(name: str) -> Kind[Any]:
    """Return the kind of that name, to read what is stored of it.

    Raises:
        StateCorruptError: this version does not know the kind.
    """
    kind = find_kind(name)
    if kind is None:
        raise StateCorruptError(f"a stored plan is of kind {name!r}, and this version knows {sorted(KINDS)}; upgrade")
    return kind


def recorded_source(store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
    """Return the source that a run of `job` planned from, as its plan has it: to look at it again without the script.

    Raises:
        OptionError: contexts of this kind can't be looked at without it, or not from here.
    """
    kind = find_kind(entry.kind)
    if kind is None:
        raise OptionError(
            f"a context of kind {entry.kind!r} can't be looked at without its script; {sorted(KINDS)} can. "
            "Nothing was read or changed."
        )
    return kind.source_of(store, job, entry)


def position_at(name: str, store: StateReader, found: PlanInput, plan: Any, value: str) -> Position:
    """Return the position that a value names, in the words of its kind: "now", a time, an upstream run.

    Raises:
        OptionError: the value does not fit the kind, or contexts of this kind can't be set.
    """
    kind = find_kind(name)
    if kind is None:
        raise OptionError(f"a context of kind {name!r} can't be set to a value; {sorted(KINDS)} can.")
    return kind.seek(store, found, plan, value)
