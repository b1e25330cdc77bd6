"""The bookmark of a job as plain values: where it stands, who works on it, who reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.run import watermarks
from airflow_bookmarks.store.naming import is_deleted, job_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head, Lease
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_INDEX = ("dag_id", "task_id", "map_index", "first_seen_at", "last_commit_at")


def bookmark(store: BookmarkStore, job: str) -> dict[str, Any]:
    """Return where a job stands: its numbers, its contexts with their watermarks, its lease, its consumers, and the
    resets and rewinds that were made.

    Raises:
        JobUnknownError: no such bookmark.
    """
    head = store.head(job)
    contexts = {
        ctx: {
            "kind": state.kind,
            "watermark": state.watermark,
            "run_number": state.run.number,
            "source": state.fingerprint,
            "set_in_epoch": state.set_in,
        }
        for ctx, state in head.contexts.items()
    }
    consumers = {
        edge.consumer: {"run_number": edge.run_number, "epoch": edge.epoch, "updated_at": edge.updated_at}
        for edge in store.edges(job)
    }
    row = _row(store.namespace, job, head, store.index_entry(job) or {})
    return {**row, "contexts": contexts, "consumers": consumers, "changes": changes(store, job)}


def changes(store: BookmarkStore, job: str) -> list[dict[str, Any]]:
    """Return the changes and replays of a job, oldest first: what, who, when, why, and what it was about."""
    names = ("kind", "who", "at", "why", "to_run", "ctx", "value", "run", "epoch_before", "epoch_after")
    return [{name: event.get(name) for name in names} for event in store.events(job)]


def bookmarks(store: BookmarkStore) -> list[dict[str, Any]]:
    """Return all jobs of the namespace by name: their numbers and watermarks. Deleted ones are left out, and
    names that a rename gave.
    """
    index = job_keys(store)
    heads = store.heads(list(index))
    shown = [job for job, entry in index.items() if job in heads and not is_deleted(entry, heads[job])]
    return [_row(store.namespace, job, heads[job], index[job]) for job in shown]


def _row(namespace: str, job: str, head: Head, index: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "job": job,
        "namespace": namespace,
        "run_number": head.run_number,
        "published": head.published,
        "data_run_number": head.data_run_number,
        "due_run_number": None if head.publishing is None else head.publishing.number,
        "cleaning": head.cleaning is not None,
        "protected": head.protected,
        "epoch": head.epoch,
        "version": head.version,
        "watermark": watermarks(head.contexts),
        "lease": None if head.lease is None else _lease(head.lease),
        **{name: index.get(name) for name in _INDEX},
    }


def _lease(lease: Lease) -> dict[str, Any]:
    return {
        "run_id": lease.run_id,
        "attempt": lease.attempt,
        "since": to_text(lease.since),
        "until": to_text(lease.expires_at),
    }
