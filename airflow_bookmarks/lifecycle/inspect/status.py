"""Show the bookmark of a job as plain values: where it stands, who works on it, who reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import NameInvalidError, StateCorruptError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.rules.owner import former_in
from airflow_bookmarks.core.run import orders, watermarks
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.history.shards import head_of_whole
from airflow_bookmarks.lifecycle.history.state_values import shown_state
from airflow_bookmarks.lifecycle.state.positions import last_plans, shown
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_counts
from airflow_bookmarks.store.transitions.lease import RUN_NUMBER
from airflow_bookmarks.store.transitions.naming import alias_of, is_deleted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.head import Head, Lease
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

_INDEX = ("dag_id", "task_id", "map_index", "first_seen_at", "last_commit_at")


def bookmark(store: BookmarkStore, job: str) -> dict[str, Any]:
    """Return where a job stands: its numbers, its contexts with their watermarks and, where there are any, their gaps,
    newest partition and number of quarantined files, the values of `job.state` as short JSON texts, its lease, its
    consumers, and the changes that were made.

    Raises:
        JobUnknownError: no such bookmark; or the job is sharded, and its bookmarks are those of its shards.
    """
    head = head_of_whole(store, job)
    planned, held = last_plans(store, job, head), quarantined_counts(store, job, head)
    contexts = {
        ctx: {
            "kind": state.kind,
            "watermark": state.watermark,
            "order": state.order,
            "run_number": state.run.number,
            "source": state.fingerprint,
            "set_in_epoch": state.set_in,
            **shown(planned.get(ctx)),
            **({"quarantined": held[ctx]} if ctx in held else {}),
            **({"watermark_column": state.watermark_column} if state.watermark_column is not None else {}),
        }
        for ctx, state in head.contexts.items()
    }
    consumers = {
        edge.consumer: {"run_number": edge.run_number, "epoch": edge.epoch, "updated_at": edge.updated_at}
        for edge in store.edges(job)
    }
    row = _row(store.namespace, job, head, store.index_entry(job) or {})
    state = shown_state(store, job, head.contexts)
    return {**row, "contexts": contexts, "state": state, "consumers": consumers, "changes": changes(store, job)}


def changes(store: BookmarkStore, job: str) -> list[dict[str, Any]]:
    """Return the changes and replays of a job, oldest first: what, who, when, why, and what it was about."""
    names = ("kind", "who", "who_kind", "at", "why", "to_run", "ctx", "value", "name", "dag", "run", "epoch_before",
             "epoch_after")  # fmt: skip
    # The line that an undo begins keeps everything that its parent has, up to another run number.
    return [
        {name: event.get(name) for name in names} | {"to_run": event.get("last_kept", event.get("to_run"))}
        for event in store.events(job)
    ]


def bookmarks(store: BookmarkStore) -> list[dict[str, Any]]:
    """Return all jobs of the namespace by name: their numbers and watermarks. Deleted ones are left out, and
    names that a rename gave.

    A job that can't be read says why under `damaged`, and nothing else; of the others `damaged` is None.
    """
    index, damage = readable_keys(store)
    rows = {name: _damaged_row(store.namespace, name, error) for name, error in damage.items()}
    heads = store.heads_or_damage(list(index))
    for job in index.keys() - heads.keys():
        if RUN_NUMBER in index[job]:  # any other has never run
            gone = StateCorruptError(
                f"the head of job {job!r} is gone, and it had one. Restore the table from a backup or an export."
            )
            rows[job] = _damaged_row(store.namespace, job, gone)
    for job, head in heads.items():
        if isinstance(head, Exception):
            rows[job] = _damaged_row(store.namespace, job, head)
        elif not is_deleted(index[job], head):
            rows[job] = _row(store.namespace, job, head, index[job])
    return [rows[job] for job in sorted(rows)]


def readable_keys(store: BookmarkStore) -> tuple[dict[str, IndexEntry], dict[str, BookmarkError]]:
    """Return the index entries of all jobs by key, and the reason for each entry that can't be read, by name.

    Neither contains names that came from a rename.
    """
    keys: dict[str, IndexEntry] = {}
    damage: dict[str, BookmarkError] = {}
    for name, entry in store.jobs():
        try:
            check_name("job", name)
            if alias_of(entry, name) is None:
                keys[name] = entry
        except (NameInvalidError, StateCorruptError) as error:
            damage[name] = error
    return keys, damage


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
        "order": orders(head.contexts),
        "lease": None if head.lease is None else _lease(head.lease),
        **{name: index.get(name) for name in _INDEX},
        "former_owners": former_in(index),
        "shared_with": list(head.shared_with),
        "damaged": None,
    }


_SHOWN = ("run_number", "published", "data_run_number", "due_run_number", "cleaning", "protected", "epoch", "version",
          "watermark", "order", "lease", "shared_with", "former_owners", *_INDEX)  # fmt: skip


def _damaged_row(namespace: str, job: str, error: BookmarkError) -> dict[str, Any]:
    return {"job": job, "namespace": namespace, **dict.fromkeys(_SHOWN), "damaged": redacted(str(error))}


def _lease(lease: Lease) -> dict[str, Any]:
    return {
        "run_id": lease.run_id,
        "attempt": lease.attempt,
        "since": to_text(lease.since),
        "until": to_text(lease.expires_at),
    }
