"""Outputs as stored: the files that a run made visible, and those that it replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.plan import decode_paths

if TYPE_CHECKING:
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.store.blob import BlobStore


def paths_replaced(blobs: BlobStore, output: OutputEntry) -> list[str]:
    """Return the files that the publish of an output deletes or has deleted, those of all its revisions together."""
    lists = [payload for payload in (output.delete, output.replaced) if payload is not None]
    return [path for payload in lists for path in decode_paths(blobs.get(payload))]
