"""Collect artifacts of positions that nothing refers to any more, including those of crashed drivers.

    look for folders -> look who holds a job -> read every item of the job -> remove the folders that no item names

An artifact is made by a plan and named by the commit, within the time of one run: those younger than `BLOB_GRACE` are
left alone, by the clock of the driver. A run that is left open may be taken over at any later time, and its plan alone
knows what it has made: while there is one, nothing of its job goes. A reference that is copied from one item to another
is seen in one of both, as that of a blob is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StoreAccessError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE, held_since, ulid_time
from airflow_bookmarks.store.codec import item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader
    from airflow_bookmarks.store.stored_item import ItemKey, StoredValue

log = logging.getLogger(__name__)

_OPEN = tuple(state.value for state in RunState if state.is_open)


def collect_artifacts(
    store: BookmarkStore, now: datetime, *, dry_run: bool, without: frozenset[ItemKey]
) -> tuple[str, ...]:
    """Remove the artifacts of the namespace that nothing refers to; return their URIs.

    Artifacts under a former `state_uri` stay, and so do those of the last position of a job that was deleted: an undo
    brings it back.

    Args:
        now: the present time, aware.
        dry_run: remove nothing, and return what would be removed.
        without: items that are taken as gone, whatever they refer to.

    What can't be listed or removed from here is logged, and the next collection tries again.
    """
    gone: list[str] = []
    try:
        # The order matters: whoever makes a folder after this look holds a lease at the next one, or has committed.
        found = {job: store.artifacts.of_job(job) for job in store.artifacts.jobs()}
        young = min([now, *held_since(store)]) - BLOB_GRACE
        for job, names in found.items():
            old = [name for name in names if _is_made_before(name, young)]
            for name in _loose(store, job, old, without) if old else ():
                if not dry_run:
                    store.artifacts.remove(job, name)
                gone.append(store.artifacts.new(job, name))
    except StoreAccessError as error:
        log.warning("%s The next collection tries again.", error)
    return tuple(gone)


def _is_made_before(name: str, moment: datetime) -> bool:
    made_at = ulid_time(name)
    return made_at is not None and made_at < moment


def _loose(store: StateReader, job: str, names: Sequence[str], without: frozenset[ItemKey]) -> list[str]:
    """Return those artifacts of a job, by name, that none of its items refers to; a name is unique to each.

    Of the lines only the present one counts, which an undo goes back to: others stay for ever, and nobody goes there.
    The head is read before them, so a line that begins meanwhile is a later one, and counts.
    """
    keys = store.keys(job)
    named: set[str] = set()
    present = ""
    for key, attributes in store.partition(keys.partition):
        if key == keys.head:
            present = keys.line(item.head_of(attributes).epoch).sk
        is_past = key.sk.startswith(item.LINE_PREFIX) and key.sk < present
        if key in without or is_past:
            continue
        if key.sk.startswith(item.RUN_PREFIX) and attributes.get("state") in _OPEN:
            return []
        named |= {uri.rpartition("/")[2] for uri in artifact_uris(attributes)}
    return [name for name in names if name not in named]


def artifact_uris(value: StoredValue) -> Iterator[str]:
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
