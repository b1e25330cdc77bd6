"""Show the bookmark of a job as plain values: where it stands, who works on it, who reads from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import NameInvalidError, StateCorruptError
from airflow_bookmarks.core.head import Head
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
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.head import Lease
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


@dataclass(frozen=True, slots=True)
class ListedJobs:
    """The jobs of a namespace, each looked at once.

    `entries` are those of the index, by key; `heads` those of the jobs that have one which can be read; `damaged` says
    why the others can't be; `deleted` are those of the heads that belong to a deleted job; `other_names` the names
    given by renames, by key.
    """

    entries: Mapping[str, IndexEntry]
    heads: Mapping[str, Head]
    damaged: Mapping[str, BookmarkError]
    deleted: frozenset[str]
    other_names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, store: BookmarkStore) -> ListedJobs:
        """Read the index and the heads: one query, and one request for each hundred jobs."""
        names = readable_names(store)
        keys, found = names.keys, store.heads_or_damage(list(names.keys))
        heads = {job: head for job, head in found.items() if isinstance(head, Head)}
        damaged = dict(names.damage)
        damaged |= {job: why for job, why in found.items() if not isinstance(why, Head)}
        # One without a run number in the index has never run.
        damaged |= {job: _gone(job) for job in keys.keys() - found.keys() if RUN_NUMBER in keys[job]}
        deleted = frozenset(job for job, head in heads.items() if is_deleted(keys[job], head))
        return cls(keys, heads, damaged, deleted, names.others)


def bookmarks(store: BookmarkStore, listed: ListedJobs | None = None) -> list[dict[str, Any]]:
    """Return all jobs of the namespace by name: their numbers and watermarks. Deleted ones are left out, and
    names that a rename gave.

    A job that can't be read says why under `damaged`, and nothing else; of the others `damaged` is None.

    Args:
        store: the store.
        listed: the jobs, where they were looked at before; None: they are looked at now.
    """
    listed = listed or ListedJobs.of(store)
    rows = {job: _damaged_row(store.namespace, job, why) for job, why in listed.damaged.items()}
    for job in listed.heads.keys() - listed.deleted:
        rows[job] = _row(store.namespace, job, listed.heads[job], listed.entries[job])
    return [rows[job] for job in sorted(rows)]


def _gone(job: str) -> StateCorruptError:
    return StateCorruptError(
        f"the head of job {job!r} is gone, and it had one. Restore the table from a backup or an export."
    )


def readable_keys(store: BookmarkStore) -> tuple[dict[str, IndexEntry], dict[str, BookmarkError]]:
    """Return the index entries of all jobs by key, and the reason for each entry that can't be read, by name.

    Neither contains names that came from a rename.
    """
    found = readable_names(store)
    return found.keys, found.damage


@dataclass(frozen=True, slots=True)
class IndexNames:
    """The names in the index: entries by key, the names that renames gave by key, and what can't be read by name."""

    keys: dict[str, IndexEntry]
    others: dict[str, list[str]]
    damage: dict[str, BookmarkError]


def readable_names(store: BookmarkStore) -> IndexNames:
    """Read the names of all jobs: one query."""
    found = IndexNames({}, {}, {})
    for name, entry in store.jobs():
        try:
            check_name("job", name)
            key = alias_of(entry, name)
        except (NameInvalidError, StateCorruptError) as error:
            found.damage[name] = error
        else:
            if key is None:
                found.keys[name] = entry
            else:
                found.others.setdefault(key, []).append(name)
    return found


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
