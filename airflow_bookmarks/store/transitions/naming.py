"""Transitions of names. A job's key is its first name; the index entry of any other name points to that key.

    alias    index of the new name: alias_of | EVENT | checks of both heads
    hide     index of the key: deleted_at, deleted_version | edges gone, 99 at a time | check HEAD version

A deleted job is hidden as long as its head has the version that the deletion gave it: any later change brings it back,
without a write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ConditionFailedError, StateCorruptError
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.table import (
    MAX_OPERATIONS,
    Attributes,
    Check,
    Condition,
    Delete,
    Equals,
    Exists,
    Lacks,
    Missing,
    Put,
    Update,
)
from airflow_bookmarks.store.transitions.base import ALIAS_OF, stamped, transact_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.table import Operation

_RENAMED_TO = "renamed_to"
DELETED_AT, DELETED_VERSION = "deleted_at", "deleted_version"


def alias_of(entry: Mapping[str, object] | None, name: str) -> str | None:
    """Return the key that an index entry points to; None if the name is a key itself, or unknown."""
    key = (entry or {}).get(ALIAS_OF)
    if key is not None and not isinstance(key, str):
        raise StateCorruptError(f"the index item {name!r} says {ALIAS_OF} = {key!r}, which is no name. Restore it.")
    return key


def resolve_name(store: StateReader, name: str) -> str:
    """Return the key of the job that `name` names: the name itself unless it came from a rename. One read."""
    return alias_of(store.index_entry(name), name) or name


def job_keys(store: StateReader) -> dict[str, Attributes]:
    """Return the index entries of all jobs by key, without names that came from a rename."""
    return {name: entry for name, entry in store.jobs() if alias_of(entry, name) is None}


def aliases(entries: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, list[str]]:
    """Return the names that renames gave to jobs, by key; `entries` are those of the index (`store.jobs()`)."""
    names: dict[str, list[str]] = {}
    for name, entry in entries:
        key = alias_of(entry, name)
        if key is not None:
            names.setdefault(key, []).append(name)
    return names


def is_deleted(entry: Mapping[str, object], head: Head) -> bool:
    """Whether a job was deleted and has not changed since."""
    return entry.get(DELETED_VERSION) == head.version and head.lease is None


@dataclass(frozen=True, slots=True)
class EmptyJob:
    """A job without a position that is to become another name: its head, and its other names (`names`).

    `renamed_to` is the last of these names, None if there is none: while it stands, no other was given.
    """

    head: Head
    names: Sequence[str] = ()
    renamed_to: str | None = None


def add_alias(store: BookmarkStore, job: str, head: Head, name: str, empty: EmptyJob | None, event: AuditEvent) -> bool:
    """Make `name` an alias of `job`; False if one of both moved meanwhile.

    Args:
        head: the head of `job` as seen.
        empty: the job without a position that has this name now, None where there is none. It is fenced, and says
            so itself: whoever is about to begin under it can't. Its other names become names of `job`.
    """
    keys, named = store.keys(job), store.keys(name)
    trace = keys.event(store.new_id())
    entry: Attributes = {ALIAS_OF: job, "named_at": to_text(store.now())}
    operations: list[Operation] = [
        Check(keys.head, [Equals("version", head.version)]),
        # An alias always points to a key, so that no name has to be followed twice. An entry that is lost stays lost:
        # one that a rename has begun would say that no run was collected or imported.
        Update(keys.index, set={_RENAMED_TO: name}, conditions=[Exists(), Lacks(ALIAS_OF)]),
        Put(trace, {**stamped(store, head, event), "name": name}),
    ]
    if empty is None:
        operations += [Check(named.head, [Missing()]), Put(named.index, entry, [Missing()])]
    else:
        conditions: list[Condition] = [Equals("fence", empty.head.fence), Equals("version", empty.head.version)]
        conditions.append(Lacks("lease_nonce"))
        last = Lacks(_RENAMED_TO) if empty.renamed_to is None else Equals(_RENAMED_TO, empty.renamed_to)
        operations += [
            # With `named_at` here too: by it the IAM policies of jobs recognise what no run writes.
            Update(named.head, set={"fence": empty.head.fence + 1, **entry}, conditions=conditions),
            Update(named.index, set=entry, conditions=[Lacks(ALIAS_OF), last]),
            *(Update(store.keys(other).index, set=entry, conditions=[Equals(ALIAS_OF, name)]) for other in empty.names),
        ]
    return transact_once(store, trace, operations)


def check_may_delete(store: BookmarkStore, job: str) -> None:
    """Check that this role may delete, before anything is changed, by deleting an edge that no job has, to itself.

    Raises:
        StoreAccessError: it may not.
    """
    store.table.transact([Delete(store.keys(job).edge(job))])


def hide(store: BookmarkStore, job: str, after: Head, others: Iterable[str]) -> bool:
    """Hide a deleted job from lists, and take away the edges that it has with other jobs, so that nobody waits for it;
    False where the job has moved since `after`, which brought it back.

    `others` are all jobs that it may have read. Their edges are looked up: which of them it has, its head does not tell
    after a reset, or where a context went over to another job.
    """
    keys = store.keys(job)
    entry: Attributes = {DELETED_AT: to_text(store.now()), DELETED_VERSION: after.version}
    unmoved = Check(keys.head, [Equals("version", after.version)])
    edges = store.items([store.keys(other).edge(job) for other in others])
    operations: list[Operation] = [*map(Delete, edges), Update(keys.index, set=entry, conditions=[Exists()])]
    room = MAX_OPERATIONS - 1
    try:
        for start in range(0, len(operations), room):
            store.table.transact([unmoved, *operations[start : start + room]])
    except ConditionFailedError:
        return False
    return True
