"""Export bookmarks as one JSON document: see `document` for its format."""

from __future__ import annotations

import base64
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import ChangedMeanwhileError, JobUnknownError
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.lifecycle.changes.naming import key_of, names_of
from airflow_bookmarks.lifecycle.history.state_values import shown_state
from airflow_bookmarks.lifecycle.maintenance.artifacts import artifact_uris
from airflow_bookmarks.lifecycle.maintenance.blobs import position_hashes
from airflow_bookmarks.lifecycle.maintenance.transfer.document import (
    FORMAT,
    LEDGER_START,
    checksum_of,
    payloads_in,
    to_json,
)
from airflow_bookmarks.sources.registry import upstream_of
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.transitions import importing as transition
from airflow_bookmarks.store.transitions.collection import holds_positions
from airflow_bookmarks.store.transitions.naming import job_keys
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import StoredItem

_LOOKS = 5


def export(store: BookmarkStore, jobs: Sequence[str] | None = None, *, hide_state: bool = False) -> dict[str, Any]:
    """Return the bookmarks of jobs as one JSON document, with all that a run, a consumer or a rewind needs of them.

    It can run beside drivers: each job is as it was at one moment, a consumer before its upstream jobs. So no position
    counts runs of an upstream that the document lacks. A consumer goes with its upstream jobs.

    Args:
        jobs: any names of these jobs; None: all of the namespace.
        hide_state: leave the values of `job.state` out of what people see of them. The items have them all the same, as
            an import needs them: what they keep secret, the document must be kept secret for.

    Raises:
        JobUnknownError: no such bookmark. StateCorruptError: bytes are damaged or gone. ChangedMeanwhileError: a job
            moved at every look.

    Example:
        json.dump(export(open_store("dynamodb://bookmarks?region=eu-west-1")), file)
    """
    store.check_layout()
    keys = list(store.heads(list(job_keys(store)))) if jobs is None else [key_of(store, name) for name in jobs]
    blobs: dict[str, str] = {}
    parts = {key: _exported_job(store, key, blobs) for key in _consumers_first(store.heads(keys), keys)}
    heads = store.heads(list(parts))
    states = {"states": {job: shown_state(store, job, head.contexts) for job, head in sorted(heads.items())}}
    return {
        "format": FORMAT,
        "exported_at": to_text(store.now()),
        "table_made_at": transition.table_made_at(store),
        "package_version": __version__,
        "namespace": store.namespace,
        "jobs": {key: parts[key] for key in dict.fromkeys(keys)},
        "blobs": dict(sorted(blobs.items())),
        "artifacts": {job: found for job, part in parts.items() if (found := _artifacts(part["items"]))},
        **(hidden(states) if hide_state else states),
    }


def _consumers_first(heads: Mapping[str, Head], jobs: Sequence[str]) -> list[str]:
    """Return jobs in an order in which each comes before those that it reads; those that read in a ring as given."""
    read: dict[str, list[str]] = {job: [] for job in jobs}
    for job, head in heads.items():
        for upstream in filter(None, map(upstream_of, head.contexts.values())):
            if upstream in read:
                read[upstream].append(job)
    try:
        return list(TopologicalSorter(read).static_order())
    except CycleError:
        return list(read)


def _artifacts(items: StoredItem) -> list[str]:
    """Return the folders that belong to positions of an exported job: a document names them, and does not hold them."""
    return sorted(set(artifact_uris(items)))


def _exported_job(store: BookmarkStore, job: str, blobs: dict[str, str]) -> dict[str, Any]:
    items = _settled_items(store, job)
    for sha256 in _needed_blobs(store, items.values()):
        if sha256 not in blobs:
            blobs[sha256] = base64.b64encode(store.blobs.get_named([sha256])[sha256]).decode()
    part = {
        "index": to_json(store.index_entry(job) or {}),
        "aliases": names_of(store, job)[1:],
        "items": {sk: to_json(_shown(sk, attributes)) for sk, attributes in items.items()},
    }
    return {**part, "sha256": checksum_of(part)}


def _shown(sort_key: str, attributes: StoredItem) -> StoredItem:
    """Return an item as a document has it: without secrets in an error that an earlier version stored raw."""
    error = attributes.get("error")
    is_raw = sort_key.startswith(item.RUN_PREFIX) and isinstance(error, str)
    return {**attributes, "error": stored_error(str(error))} if is_raw else attributes


def _settled_items(store: BookmarkStore, job: str) -> dict[str, StoredItem]:
    """Return the items of a job by sort key, read while its head did not move."""
    keys = store.keys(job)
    for _ in range(_LOOKS):
        rows = store.partition(keys.partition)
        items = {key.sk: attributes for key, attributes in rows if not key.sk.startswith(item.SIDE_PREFIX)}
        head = items.get(keys.head.sk)
        if head is None:
            raise JobUnknownError(f"no bookmark named {job!r} in namespace {store.namespace!r}. Nothing was exported.")
        if _still(head) == _still(store.items([keys.head]).get(keys.head)):
            return items
    raise ChangedMeanwhileError(f"job {job!r} moved at every look. Nothing was exported. Try again when it is at rest.")


def _still(head: StoredItem | None) -> StoredItem | None:
    return None if head is None else {name: value for name, value in head.items() if name != "lease_until"}


def _needed_blobs(store: BookmarkStore, items: Any) -> Iterator[str]:
    for attributes in items:
        for name, value in attributes.items():
            for payload in payloads_in(value):
                if "inline" not in payload:
                    yield str(payload["sha256"])
                if holds_positions(name):
                    yield from _named_by_position(store, payload)


def _named_by_position(store: BookmarkStore, payload: StoredItem) -> list[str]:
    body = store.blobs.get(item.payload_of(payload))
    if body.startswith(LEDGER_START):
        return Ledger.from_root(body, store.blobs.get_named).segment_ids()
    # A position of another kind names its blobs in plain text; text that only looks like such a name has none.
    return [name for name in position_hashes(body) if transition.has_blob(store, name)]
