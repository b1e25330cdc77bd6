"""Transitions of an import: items of a whole job, written where the job is absent, or over an existing one.

    claim     HEAD as it is to be, under the next fence and a lease without end | index | EVENT | lines
              (whose the job is, and who shares it, stay as they are: store.owner)
    write     check HEAD.fence | items, 99 at a time; items of before that are not among them go
    release   HEAD without the lease

Between claim and release the job is held: nothing runs on half a job, and the next import of it goes on from there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, ConditionFailedError, NameTakenError
from airflow_bookmarks.core.head import Lease
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.backends.limits import MAX_TRANSACTION_BYTES, check_item
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import (
    MAX_OPERATIONS,
    Attributes,
    Check,
    Delete,
    Equals,
    Key,
    Lacks,
    Missing,
    Put,
    Update,
)
from airflow_bookmarks.store.transitions.base import ALIAS_OF, protected_as, same_state, stamped, transact_once
from airflow_bookmarks.store.transitions.collection import IMPORTED_AT
from airflow_bookmarks.store.transitions.naming import alias_of
from airflow_bookmarks.store.transitions.ownership import landed, same_entry, same_ownership

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.codec.item import Keys
    from airflow_bookmarks.store.table import Condition, Operation

CLAIM = "(import)"
_NO_END = datetime(9999, 12, 31, tzinfo=UTC)
_ROOM = MAX_TRANSACTION_BYTES // 2  # keys and conditions count too
_KEPT = (item.EVENT_PREFIX, item.SIDE_PREFIX)


def is_claimed(head: Head) -> bool:
    """Whether an import of the job was begun and not finished."""
    return head.lease is not None and head.lease.run_id == CLAIM and head.lease.expires_at == _NO_END


def check_unclaimed(job: str, head: Head) -> None:
    """Make sure that no import of a job is unfinished.

    Raises:
        ChangeRefusedError: one does; only another import ends it.
    """
    if is_claimed(head):
        raise ChangeRefusedError(
            f"an import of job {job!r} was begun and has not ended: what is there is not whole, so nobody works on it. "
            "Nothing was changed. Import the same document again, which goes on from there."
        )


def table_made_at(store: BookmarkStore) -> str | None:
    """Return what tells this table from others: when it was made, to the microsecond."""
    made_at = store.table.get([item.SCHEMA]).get(item.SCHEMA, {}).get("created_at")
    return made_at if isinstance(made_at, str) else None


def has_blob(store: BookmarkStore, sha256: str) -> bool:
    """Whether a blob with that name exists, whole or not."""
    return any(True for _ in store.table.query(f"{store.namespace}#BLOB#{sha256}", limit=1))


def write_job(
    store: BookmarkStore,
    job: str,
    seen: Head | None,
    items: Mapping[str, Attributes],
    index: Attributes,
    event: AuditEvent,
    owner: str | None = None,
) -> bool:
    """Write the items of a job, given by sort key; False if the job moved since `seen` (None: it was absent).

    `owner` is the DAG that is to own the job if nothing present of the job itself names one.

    The head gets a fence and, where there was one, a version above those of `seen` and of the items.
    """
    keys = store.keys(job)
    fence = _claim(store, job, seen, items["HEAD"], index, event, owner)
    if fence is None:
        return False
    try:
        for part in _parts(_writes(store, keys, items)):
            store.table.transact([Check(keys.head, [Equals("fence", fence)]), *part])
    except ConditionFailedError:
        return False
    return _release(store, job, keys, fence)


def write_alias(store: BookmarkStore, job: str, name: str) -> None:
    """Make `name` an alias of `job`, as exported.

    Raises:
        NameTakenError: another job took the name meanwhile.
    """
    named = store.keys(name)
    entry: Attributes = {ALIAS_OF: job, "named_at": to_text(store.now())}
    try:
        store.table.transact([Check(named.head, [Missing()]), Put(named.index, entry, [Missing()])])
    except ConditionFailedError as error:
        if alias_of(store.index_entry(name), name) != job:
            raise NameTakenError(
                f"{name!r}, a name of job {job!r}, became another job meanwhile. The bookmark of {job!r} is imported "
                "without this name."
            ) from error


def _claim(
    store: BookmarkStore,
    job: str,
    seen: Head | None,
    head: Attributes,
    index: Attributes,
    event: AuditEvent,
    owner: str | None,
) -> int | None:
    keys = store.keys(job)
    base = item.head_of(head)
    fence = max(base.fence, 0 if seen is None else seen.fence) + 1
    version = base.version if seen is None else max(base.version, seen.version) + 1
    lease = Lease(CLAIM, 1, store.now(), _NO_END, store.new_id())
    entry = store.index_entry(job)
    head, index = landed(seen, entry, head, index, owner)
    claimed: Attributes = {**head, "fence": fence, "version": version, **item.lease_attributes(lease)}
    conditions: list[Condition] = [Missing()]
    if seen is not None:
        conditions = [*same_state(seen), *same_ownership(seen), protected_as(seen)]
    trace = keys.event(store.new_id())
    operations: list[Operation] = [
        Put(keys.head, claimed, conditions),
        Put(keys.index, {**index, IMPORTED_AT: to_text(store.now())}, [Lacks(ALIAS_OF), *same_entry(entry or {})]),
        Put(trace, stamped(store, base, event)),
    ]
    return fence if transact_once(store, trace, operations) else None


def _writes(store: BookmarkStore, keys: Keys, items: Mapping[str, Attributes]) -> Iterator[Operation]:
    """Yield lines first, because the rest can't be interpreted without them."""
    there = [key for key, _ in store.table.query(keys.partition)]
    new = sorted((sk for sk in items if sk != "HEAD"), key=lambda sk: (not sk.startswith(item.LINE_PREFIX), sk))
    for key in there:
        if key.sk != "HEAD" and key.sk not in items and not key.sk.startswith(_KEPT):
            yield Delete(key)
    stay = {key.sk for key in there if key.sk.startswith(item.EVENT_PREFIX)}  # local events are never rewritten
    for sk in (sk for sk in new if sk not in stay):
        yield Put(Key(keys.partition, sk), items[sk])


def _parts(operations: Iterable[Operation]) -> Iterator[Sequence[Operation]]:
    part: list[Operation] = []
    size = 0
    for operation in operations:
        more = check_item(operation.key, operation.attributes) if isinstance(operation, Put) else 0
        if part and (len(part) == MAX_OPERATIONS - 1 or size + more > _ROOM):
            yield part
            part, size = [], 0
        part.append(operation)
        size += more
    if part:
        yield part


def _release(store: BookmarkStore, job: str, keys: Keys, fence: int) -> bool:
    released = Update(keys.head, remove=item.LEASE_ATTRIBUTES, conditions=[Equals("fence", fence)])
    try:
        store.table.transact([released])
    except ConditionFailedError:
        return not is_claimed(store.head(job))  # only this import ends the claim of its fence
    return True
