"""Owners of jobs: bound by the first run of a DAG, and checked before every run.

A manual run, outside a DAG, neither binds an owner nor is refused. The protocol knows nothing of owners: they are
checked before a take, and the take proves that the owner has not changed since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import NameInvalidError, OwnerError
from airflow_bookmarks.core.rules.owner import may_run, owner_in
from airflow_bookmarks.core.rules.shard import shard_names, sharded_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def owner_of(store: BookmarkStore, job: str, head: Head | None) -> str | None:
    """Return the DAG that owns a job; None if it has no owner.

    The head says it; if an earlier version wrote the head, the index entry does, and is read for it.
    """
    if head is not None and head.owner is not None:
        return head.owner
    return None if head is None else owner_in(store.index_entry(job))


def owner_to_bind(store: BookmarkStore, job: str, head: Head | None, identity: RunIdentity) -> str | None:
    """Return the DAG that a take of a job is to bind as its owner; None if it binds none.

    For a virtual shard that begins, that is the DAG that owns the others; for a whole job, the one that owns its
    shards.

    Raises:
        OwnerError: the job belongs to another DAG, which does not share it.
    """
    if identity.dag_id is None:
        return None
    owner = check_owner(store, job, head, identity)
    if head is None or head.owner is None:
        # Without its index entry the owner is unknown, and the commit is refused.
        is_lost = head is not None and store.index_entry(job) is None
        return None if is_lost else owner or identity.dag_id
    return None


def check_owner(store: BookmarkStore, job: str, head: Head | None, identity: RunIdentity) -> str | None:
    """Make sure that a run of the caller's DAG may begin on a job; return the job's owner.

    Raises:
        OwnerError: the job belongs to another DAG, which does not share it.
    """
    if identity.dag_id is None or (head is not None and head.owner == identity.dag_id):
        return identity.dag_id
    owner = owner_of(store, job, head)
    shared = () if head is None else head.shared_with
    if owner is None or not may_run(owner, shared, identity.dag_id):
        others = _kin(store, job)
        owner = owner or _owner_among(store, others)
        shared = (*shared, *(dag_id for each in others.values() for dag_id in each.shared_with))
    if not may_run(owner, shared, identity.dag_id):
        raise _refused(job, str(owner), identity.dag_id)
    return owner


def owner_of_kin(store: BookmarkStore, job: str) -> str | None:
    """Return the owner of the jobs that share one with this job; see `_kin`. None if they have none."""
    return _owner_among(store, _kin(store, job))


def _owner_among(store: BookmarkStore, heads: Mapping[str, Head]) -> str | None:
    named = next((head.owner for head in heads.values() if head.owner is not None), None)
    if named is not None or not heads:
        return named
    # If an earlier version wrote the heads, the index entries say it.
    entries = store.index_entries(heads)
    return next((owner for entry in entries.values() if (owner := owner_in(entry)) is not None), None)


def _kin(store: BookmarkStore, job: str) -> Mapping[str, Head]:
    """Return the heads of the jobs that share an owner with a job: its shards, or for a shard the others and the whole.

    A change of the whole is one of its shards, so whoever takes the one name takes the others too.
    """
    whole = sharded_name(job) or job
    try:
        names = [whole, *shard_names(whole)]
    except NameInvalidError:  # the name is too long for a sharded job
        return {}
    return store.heads([name for name in names if name != job])


def _refused(job: str, owner: str, dag_id: str) -> OwnerError:
    name = sharded_name(job) or job
    return OwnerError(
        f"job {name!r} belongs to DAG {owner!r}, and a run of DAG {dag_id!r} was about to begin on it. Nothing was "
        f"read or written. If both are to run it: 'airflow-bookmarks share {name} --with {dag_id} --reason \"...\"'. "
        f"If {dag_id!r} takes the job over: 'airflow-bookmarks hand-over {name} --to {dag_id} --reason \"...\"', with "
        f"--renamed where it is DAG {owner!r} under a new name. If it was meant to be a job of its own, give it "
        "another name (bookmark_job)."
    )
