"""Transitions of a repair, each with an event that says so. No position is ever touched.

    free             HEAD fence + 1, without the lease that was found | EVENT
    publish later    HEAD publishing | check RUN COMMITTED | EVENT
    enter            index entry, where there is none | EVENT
    forget staging   HEAD staging, without folders that are not the job's own | EVENT

Each proves that the job is as the finding had it; False says that it moved since, and nothing was changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.rules.owner import DAG_ID
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Check, Condition, Equals, Lacks, Missing, Put, Update
from airflow_bookmarks.store.transitions.base import transact_once
from airflow_bookmarks.store.transitions.collection import COLLECTED_UNTIL
from airflow_bookmarks.store.transitions.lease import RUN_NUMBER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head, Lease
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.table import Attributes, Operation


def free(store: BookmarkStore, job: str, head: Head, lease: Lease, event: AuditEvent) -> bool:
    """Remove a lease that nobody renews, as an unlock does: under the next fence, its driver can't write any more."""
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("lease_nonce", lease.nonce)]
    conditions.append(Equals("lease_until", to_text(lease.expires_at)))
    fence = {"fence": head.fence + 1}
    freed = Update(store.keys(job).head, set=fence, remove=item.LEASE_ATTRIBUTES, conditions=conditions)
    return _repaired(store, job, head, [freed], event)


def publish_later(store: BookmarkStore, job: str, head: Head, key: RunKey, event: AuditEvent) -> bool:
    """Mark a committed run as due again, where nothing is due and nobody holds the job."""
    keys = store.keys(job)
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("epoch", head.epoch)]
    conditions += [Lacks("publishing"), Lacks("lease_nonce"), Lacks("cleaning")]
    operations: list[Operation] = [
        Update(keys.head, set={"publishing": str(key)}, conditions=conditions),
        Check(keys.run(key), [Equals("state", RunState.COMMITTED.value)]),
    ]
    return _repaired(store, job, head, operations, event)


def enter(
    store: BookmarkStore,
    job: str,
    head: Head,
    seen_at: datetime,
    collected_until: int,
    former: Mapping[str, Sequence[str]],
    event: AuditEvent,
) -> bool:
    """Write the entry of a job into the index, which has none.

    Args:
        collected_until: the number up to which runs were collected; without it, a consumer that is behind would
            silently read what is left. 0: none was.
        former: who owned the job before, and the former names of its owners, by the names of `core.rules.owner`.
    """
    entry: Attributes = {"first_seen_at": to_text(seen_at), RUN_NUMBER: head.run_number}
    entry |= {name: list(listed) for name, listed in former.items()}
    if head.owner is not None:
        entry[DAG_ID] = head.owner
    if collected_until:
        entry[COLLECTED_UNTIL] = collected_until
    return _repaired(store, job, head, [Put(store.keys(job).index, entry, [Missing()])], event)


def forget_staging(store: BookmarkStore, job: str, head: Head, own: Sequence[str], event: AuditEvent) -> bool:
    """Leave only the folders `own` on the list of the job's staging folders."""
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("staging", list(head.staging))]
    kept = Update(store.keys(job).head, set={"staging": [*own]}, conditions=conditions)
    return _repaired(store, job, head, [kept], event)


def _repaired(store: BookmarkStore, job: str, head: Head, operations: Sequence[Operation], event: AuditEvent) -> bool:
    trace = store.keys(job).event(store.new_id())
    met = {"version_before": head.version, "epoch_before": head.epoch, "epoch_after": head.epoch}
    return transact_once(store, trace, [*operations, Put(trace, {**event, **met}, [Missing()])])
