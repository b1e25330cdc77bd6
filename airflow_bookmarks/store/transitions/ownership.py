"""Transitions of ownership: which DAG owns a job, and which others may run it. Made by people, never by a run.

    hand over   HEAD owner | index: dag_id, former_owners (or former_names) | EVENT
    share       HEAD shared_with | EVENT
    import      (store.transfer) HEAD owner, shared_with | index: dag_id, former_owners, former_names
    of a request that was approved: the request is carried out, in the same transaction

Each proves that the owner, the DAGs that share the job and its protection have not changed since they were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.rules.owner import DAG_ID, FORMER_NAMES, FORMER_OWNERS, former_in, owner_in, owners_in
from airflow_bookmarks.store.table import Attributes, Condition, Equals, Exists, Lacks, Put, Update, Value
from airflow_bookmarks.store.transitions.approval import carried_out
from airflow_bookmarks.store.transitions.base import ALIAS_OF, stamped, transact_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.table import Operation


def hand_over(
    store: BookmarkStore,
    job: str,
    head: Head,
    entry: Mapping[str, object],
    to: str,
    event: AuditEvent,
    *,
    is_renamed: bool = False,
    request_id: str | None = None,
) -> bool:
    """Make the DAG `to` the owner; False if the job moved since `head` and `entry`, its index entry, were read.

    The former owner stays on the list of DAGs on which rights are asked; with `is_renamed` (`to` is its new name), it
    goes on the list of former names.
    """
    keys = store.keys(job)
    trace = keys.event(store.new_id())
    former = head.owner or owner_in(entry)
    name = FORMER_NAMES if is_renamed else FORMER_OWNERS
    listed = [*former_in(entry, name), *([] if former is None else [former])]
    owned: Attributes = {DAG_ID: to, "task_id": None, "map_index": None, name: list(dict.fromkeys(listed))}
    shared = [dag_id for dag_id in head.shared_with if dag_id != to]
    operations: list[Operation] = [
        _head_update(store, job, head, {"owner": to}, shared, is_approved=request_id is not None),
        Update(keys.index, set=owned, conditions=[Exists(), _as_seen(entry, DAG_ID), _as_seen(entry, name)]),
        Put(trace, {**stamped(store, head, event), "owner_before": former, "owner_after": to}),
        *carried_out(store, job, request_id),
    ]
    return transact_once(store, trace, operations)


def share(
    store: BookmarkStore,
    job: str,
    head: Head,
    owner: str,
    shared_with: Sequence[str],
    event: AuditEvent,
    *,
    request_id: str | None = None,
) -> bool:
    """Let the DAGs `shared_with`, and no others, run a job of `owner`; False if it moved since `head`.

    If an earlier version wrote the head, it does not name the owner yet; from now on it does.
    """
    trace = store.keys(job).event(store.new_id())
    operations: list[Operation] = [
        _head_update(store, job, head, {"owner": owner}, shared_with, is_approved=request_id is not None),
        Put(trace, {**stamped(store, head, event), "shared_with": list(shared_with)}),
        *carried_out(store, job, request_id),
    ]
    return transact_once(store, trace, operations)


def landed(
    seen: Head | None, entry: Attributes | None, head: Attributes, index: Attributes, owner: str | None = None
) -> tuple[Attributes, Attributes]:
    """Return the head and index entry of a document as an import writes them over a job, or where there is none.

    No document changes who owns a job and who may run it. Rights are asked on the document's owners too, because it
    brings what is theirs.

    Args:
        seen, entry: the head and index entry that are there.
        head, index: those of the document.
        owner: whose the job is where neither `seen` nor `entry` says it: that of its virtual shards, or of the others.
    """
    owner = (None if seen is None else seen.owner) or owner_in(entry) or owner
    brought = owner_in({DAG_ID: head.get("owner")}) or owner_in(index)
    renamed = former_in(entry, FORMER_NAMES)
    from_document = [dag_id for dag_id in (brought, *owners_in(index)) if dag_id is not None and dag_id not in renamed]
    asked = [dag_id for dag_id in dict.fromkeys([*owners_in(entry), *from_document]) if dag_id != (owner or brought)]
    names = renamed if owner is not None else former_in(index, FORMER_NAMES)
    owned: Attributes = {name: value for name, value in index.items() if name not in (FORMER_OWNERS, FORMER_NAMES)}
    owned |= {DAG_ID: owner or brought}
    owned |= {name: list(listed) for name, listed in ((FORMER_OWNERS, asked), (FORMER_NAMES, names)) if listed}
    if owner is None:
        return head, owned
    there = entry or {}
    owned |= {name: there.get(name) for name in ("task_id", "map_index")}
    kept: Attributes = {name: value for name, value in head.items() if name != "shared_with"}
    shared = [] if seen is None else [*seen.shared_with]
    return {**kept, "owner": owner, **({"shared_with": list(shared)} if shared else {})}, owned


def same_ownership(head: Head) -> list[Condition]:
    """Return the conditions under which a head still names the owner and the sharing DAGs that were read."""
    shared: list[Value] = [*head.shared_with]
    return [
        Lacks("owner") if head.owner is None else Equals("owner", head.owner),
        Equals("shared_with", shared) if shared else Lacks("shared_with"),
    ]


def same_entry(entry: Mapping[str, object]) -> list[Condition]:
    """Return the conditions under which an index entry still names the owners that were read."""
    return [_as_seen(entry, DAG_ID), _as_seen(entry, FORMER_OWNERS), _as_seen(entry, FORMER_NAMES)]


def _head_update(
    store: BookmarkStore, job: str, head: Head, owned: Attributes, shared_with: Sequence[str], *, is_approved: bool
) -> Update:
    # The fence: a run that begins meanwhile begins under the former owner.
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("version", head.version), Lacks(ALIAS_OF)]
    conditions += same_ownership(head)
    conditions.append(Equals("protected", True) if is_approved or head.protected else Lacks("protected"))
    return Update(
        store.keys(job).head,
        set={**owned, **({"shared_with": list(shared_with)} if shared_with else {})},
        remove=[] if shared_with else ["shared_with"],
        conditions=conditions,
    )


def _as_seen(entry: Mapping[str, object], name: str) -> Condition:
    value = entry.get(name)
    if name not in entry:
        return Lacks(name)
    return Equals(name, list(value) if isinstance(value, list) else owner_in(entry))
