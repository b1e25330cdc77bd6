"""Sharded jobs on the page: shown as one job to users who may see each of its virtual shards.

A job with a bookmark of its own beside shards is not one: its name would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, NameInvalidError, StateCorruptError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.core.rules.shard import shard_names
from airflow_bookmarks.lifecycle.inspect.sharded_list import common
from airflow_bookmarks.store.transitions.naming import alias_of, is_deleted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.plugin.auth import Rights, UserScope
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry


@dataclass(frozen=True, slots=True)
class Parts:
    """The virtual shards of a sharded job that are not deleted: the index entry of each, or why it can't be read.

    `others` are what rights are asked of besides: deleted shards, and the deleted bookmark of the whole.
    """

    shards: Mapping[str, IndexEntry | str]
    others: tuple[IndexEntry | str, ...] = ()

    @property
    def entry(self) -> dict[str, Any]:
        """What the shards have in common, in the form of the index entry of one job."""
        known = [each for each in self.shards.values() if not isinstance(each, str)]
        shared = {
            name: common(_plain(each.get(name)) for each in known) for name in ("dag_id", "task_id", "run_number")
        }
        commits = [at for each in known if isinstance(at := each.get("last_commit_at"), str)]
        return {**shared, "last_commit_at": max(commits, default=None)}

    def is_seen(self, scope: UserScope) -> bool:
        """Whether a user may look at all of it."""
        each = (*self.shards.values(), *self.others)
        return all(scope.may_read_unknown if isinstance(one, str) else scope.sees(one) for one in each)


@dataclass(frozen=True, slots=True)
class Sharded:
    """A sharded job: its shards in order, deleted ones too, whose they are, and which DAG and task they share."""

    shards: tuple[str, ...]
    rights: Rights
    dag_id: str | None
    task_id: str | None


def find_sharded(store: BookmarkStore, job: str) -> Sharded | None:
    """Return the sharded job of that name; None if it has a bookmark of its own, or no shard has one."""
    try:
        names = shard_names(job)
    except NameInvalidError:  # too long a name for a sharded job
        return None
    entries = store.index_entries([job, *names])
    heads = store.heads_or_damage([job, *names])
    whole, own = entries.pop(job, None), heads.pop(job, None)
    if (whole is not None or own is not None) and not _is_gone(whole, own):
        return None
    found = [name for name in names if (name in entries or name in heads) and not _is_alias(entries.get(name), name)]
    if all(_is_gone(entries.get(name), heads.get(name)) for name in found):
        return None
    rights = [_owners(entries.get(name), heads.get(name), name) for name in found]
    known = [entries[name] for name in found if name in entries]
    return Sharded(
        tuple(found),
        tuple(dict.fromkeys([*rights, *([] if whole is None else [owners_in(whole)])])),
        common(_text(each.get("dag_id")) for each in known),
        common(_text(each.get("task_id")) for each in known),
    )


def live_shards(
    store: BookmarkStore, shards: Iterable[str]
) -> dict[str, tuple[IndexEntry, Head | BookmarkError | None]]:
    """Return index entry and head of those of some shards that are not deleted."""
    names = list(dict.fromkeys(shards))
    heads, entries = store.heads_or_damage(names), store.index_entries(names)
    found = {name: (entries.get(name, {}), heads.get(name)) for name in names}
    return {name: (entry, head) for name, (entry, head) in found.items() if not _is_gone(entry, head)}


def _is_gone(entry: IndexEntry | None, head: Head | BookmarkError | None) -> bool:
    return entry is not None and isinstance(head, Head) and is_deleted(entry, head)


def _is_alias(entry: IndexEntry | None, name: str) -> bool:
    try:
        return entry is not None and alias_of(entry, name) is not None
    except StateCorruptError:
        return False


def _owners(entry: IndexEntry | None, head: Head | BookmarkError | None, name: str) -> tuple[str, ...] | None:
    if entry is None:
        return owners_in({"dag_id": head.owner}) if isinstance(head, Head) else None
    try:
        alias_of(entry, name)
    except StateCorruptError:
        return None
    return owners_in(entry)


def _plain(value: object) -> str | int | None:
    return value if isinstance(value, (str, int)) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
