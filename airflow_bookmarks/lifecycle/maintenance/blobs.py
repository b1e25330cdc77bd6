"""Collect blobs that nothing refers to any more, including those of crashed drivers.

It scans the table, so it is housekeeping (a daily DAG, a cron job), never part of a run.

    look for blobs -> read every item of every job -> remove those that no item names, each if its stamp is the one seen

Of blobs under `state_uri` the item that names the object goes so, and then the object. Objects that no item names, of
drivers that died between the two writes, go as well, once they are as old.

It can run beside jobs. A driver puts a blob, which stamps it, and then refers to it, within the time of one run; blobs
stamped within `BLOB_GRACE` are left alone, and one that is stamped anew between look and removal is not removed. A
reference that is copied from one item to another, without a put, is seen in one of both: a later run takes it over from
an earlier one, and items of a partition are read upwards; a set takes it over from a run that stays for its undo.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.object_store import ulid_of
from airflow_bookmarks.store.transitions import collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.stored_item import ItemKey, StoredValue

BLOB_GRACE = timedelta(days=7)  # longer than any run lasts, from the put of a blob to the commit that refers to it

_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(f"[{_BASE32}]{{26}}")
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class BlobsGone:
    """What a collection removed, or would remove: blobs, objects that no blob named, and foreign ones that it left."""

    blobs: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    foreign_objects: tuple[str, ...] = ()


def collect_blobs(store: BookmarkStore, now: datetime, *, dry_run: bool, without: frozenset[ItemKey]) -> BlobsGone:
    """Remove blobs and objects that nothing refers to.

    Args:
        now: the present time, aware.
        dry_run: remove nothing, and return what would be removed.
        without: items that are taken as gone, whatever they refer to.
    """
    # The order matters. Whatever is put after these looks is stamped anew, and stays; who has put something before them
    # holds a lease at the next look, or has committed, and the last look, for names, sees that. An object is put before
    # the item that names it: so objects are looked for before items.
    objects = store.blobs.objects()
    found = collection.stored_blobs(store)
    young = min([now, *held_since(store)]) - BLOB_GRACE
    named_objects = {object_name_in(blob.uri) for blob in found if blob.uri is not None}
    orphans = [uri for uri in objects if object_name_in(uri) not in named_objects and _is_put_before(uri, young)]
    if not dry_run:
        for uri in orphans:
            store.blobs.delete_object(uri)
    old = [blob for blob in found if blob.stamped_at is not None and blob.stamped_at < to_text(young)]
    if not old:
        return BlobsGone(objects=tuple(orphans))
    named = _named_blobs(store, without)
    loose = [blob for blob in old if blob.sha256 not in named]
    gone = [blob for blob in loose if dry_run or collection.remove_blob(store, blob)]
    foreign = [blob.uri for blob in gone if blob.uri is not None and not store.blobs.owns(blob.uri, blob.sha256)]
    return BlobsGone(tuple(blob.sha256 for blob in gone), tuple(orphans), tuple(foreign))


def object_name_in(uri: str) -> str:
    """Return the name of an object, which is unique to its put.

    Objects are compared by this name rather than by URI: a folder has many spellings (`s3a://` beside `s3://`,
    `file:///x` beside `/x`), and the item that names an object has the spelling used at the time.
    """
    return uri.rpartition("/")[2]


def _is_put_before(uri: str, moment: datetime) -> bool:
    """Whether an object was put before `moment`, by the clock of its writer; False for a foreign name."""
    ulid = ulid_of(object_name_in(uri))
    put_at = None if ulid is None else ulid_time(ulid)
    return put_at is not None and put_at < moment


def held_since(store: StateReader) -> list[datetime]:
    """Return since when each held job has been held, by the clock of its driver.

    The same clock stamps what that driver puts: however wrong it or ours is, what a run puts stays until it ends.
    """
    heads = store.heads([partition.split("#JOB#")[1] for partition in collection.job_partitions(store)])
    return [head.lease.since for head in heads.values() if head.lease is not None]


def ulid_time(ulid: str) -> datetime | None:
    """Return the time in a ULID (its first ten characters, milliseconds since 1970), None for any other name."""
    if not _ULID.fullmatch(ulid):
        return None
    milliseconds = 0
    for character in ulid[:10]:
        milliseconds = milliseconds * 32 + _BASE32.index(character)
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _named_blobs(store: StateReader, without: frozenset[ItemKey]) -> set[str]:
    """Return the hashes of all blobs that an item of any job refers to, directly or by a position that it holds."""
    named: set[str] = set()
    for partition in collection.job_partitions(store):
        for key, attributes in store.partition(partition):
            if key in without:
                continue
            for value in attributes.values():
                named |= set(payload_hashes(value))
            for position in collection.stored_positions(attributes):
                named |= _named_by_position(store, key, position)
    return named


def payload_hashes(value: StoredValue) -> Iterator[str]:
    """Yield the hashes that the payloads within an attribute name, at whatever depth."""
    if isinstance(value, dict):
        sha256 = value.get("sha256")
        if isinstance(sha256, str):
            yield sha256
        for inner in value.values():
            yield from payload_hashes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from payload_hashes(inner)


def _named_by_position(store: StateReader, key: ItemKey, value: StoredValue) -> set[str]:
    try:
        return set(position_hashes(store.blobs.get(item.payload_of(value))))
    except StateCorruptError as error:
        raise StateCorruptError(
            f"a position in {key} can't be read ({error}), so nobody can tell which blobs it needs. No blob was "
            "removed. 'airflow-bookmarks doctor' says more; restore the table from a backup, or reset the job."
        ) from error


def position_hashes(body: bytes) -> list[str]:
    """Return the hashes of the blobs that a position may refer to: everything in its text that looks like one.

    A position of any kind names its blobs in plain hexadecimal text (`core.position.Position.blobs`). Text that only
    looks so keeps a blob too many, never one too few.
    """
    return [match.decode("ascii") for match in _HASH.findall(body)]
