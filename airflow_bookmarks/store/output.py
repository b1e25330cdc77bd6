"""Outputs as stored: the files that a run made visible, and those that it replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.plan import decode_paths
from airflow_bookmarks.store import item

if TYPE_CHECKING:
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.store.blob import BlobStore
    from airflow_bookmarks.store.state_reader import StateReader


def paths_replaced(blobs: BlobStore, output: OutputEntry) -> list[str]:
    """Return the files that the publish of an output deletes or has deleted, those of all its revisions together."""
    lists = [payload for payload in (output.delete, output.replaced) if payload is not None]
    return [path for payload in lists for path in decode_paths(blobs.get(payload))]


def paths_replaced_by_sides(store: StateReader, job: str) -> set[str]:
    """Return the published files that pause and disable runs of a job were asked to replace."""
    payloads = [
        item.payload_of(value)
        for record in store.sides(job)
        for name, value in record.items()
        if name.startswith(item.REPLACED_PREFIX)
    ]
    return {path for payload in payloads for path in decode_paths(store.blobs.get(payload))}
