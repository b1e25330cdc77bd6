"""Collect artifacts of positions that nothing refers to any more, including those of crashed drivers.

    look for folders -> read every item of the job -> remove the folders that no item names

An artifact is made by a plan and named by the commit, within the time of one run: those younger than `BLOB_GRACE` are
left alone. A reference that is copied from one item to another is seen in one of both, as that of a blob is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE, held_since, ulid_time
from airflow_bookmarks.store.codec import item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.table import Key, Value


def collect_artifacts(
    store: BookmarkStore, now: datetime, *, dry_run: bool, without: frozenset[Key]
) -> tuple[str, ...]:
    """Remove the artifacts of the namespace that nothing refers to; return their URIs.

    Those of a job that was deleted go too. Artifacts under a former `state_uri` stay.

    Args:
        now: the present time, aware.
        dry_run: remove nothing, and return what would be removed.
        without: items that are taken as gone, whatever they refer to.

    Raises:
        StoreAccessError: `state_uri` can't be reached from here.
    """
    young = min([now, *held_since(store)]) - BLOB_GRACE
    gone: list[str] = []
    for job in store.artifacts.jobs():
        old = [name for name in store.artifacts.of_job(job) if _is_made_before(name, young)]
        named = _named_artifacts(store, job, without) if old else set()
        loose = [name for name in old if name not in named]
        if not dry_run:
            store.artifacts.remove(job, loose)
        gone += [store.artifacts.new(job, name) for name in loose]
    return tuple(gone)


def _is_made_before(name: str, moment: datetime) -> bool:
    made_at = ulid_time(name)
    return made_at is not None and made_at < moment


def _named_artifacts(store: StateReader, job: str, without: frozenset[Key]) -> set[str]:
    """Return the names of all artifacts that an item of a job refers to; the name is unique to each.

    Of the lines only the present one counts, which an undo goes back to: others stay for ever, and nobody goes there.
    The head is read before them, so a line that begins meanwhile is a later one, and counts.
    """
    keys = store.keys(job)
    found: set[str] = set()
    present = ""
    for key, attributes in store.partition(keys.partition):
        if key == keys.head:
            present = keys.line(item.head_of(attributes).epoch).sk
        is_past = key.sk.startswith(item.LINE_PREFIX) and key.sk < present
        if key not in without and not is_past:
            found |= {uri.rpartition("/")[2] for uri in artifact_uris(attributes)}
    return found


def artifact_uris(value: Value) -> Iterator[str]:
    """Yield the URIs of artifacts that an item names, at whatever depth.

    Example:
        >>> list(artifact_uris({"contexts": {"queue": {"kind": "queue", "artifacts": ["s3://state/01K7"]}}}))
        ['s3://state/01K7']
    """
    if isinstance(value, dict):
        named = value.get(item.ARTIFACTS)
        if isinstance(named, list):
            yield from (uri for uri in named if isinstance(uri, str))
        for inner in value.values():
            yield from artifact_uris(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from artifact_uris(inner)
