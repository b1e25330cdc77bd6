"""Import bookmarks from an exported document into a store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    ProtectedError,
)
from airflow_bookmarks.core.head import busy_error
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.lifecycle.changes.naming import key_of, may_have_landed
from airflow_bookmarks.lifecycle.maintenance.artifacts import artifact_uris
from airflow_bookmarks.lifecycle.maintenance.transfer.document import DocumentPart, read_document
from airflow_bookmarks.lifecycle.maintenance.transfer.landing import Origin
from airflow_bookmarks.lifecycle.protocol.owner import owner_of_kin
from airflow_bookmarks.sources.registry import kind_of, upstream_of
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.transitions import importing as transition
from airflow_bookmarks.store.transitions.naming import check_may_delete

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_IMPORT_OF = "import_of"  # of the index item: the checksum of what was imported
_MOST_DROPPED = 20  # that an event lists


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote: the jobs with their last run, and the number of blobs. `replaced` had a bookmark before.

    `kept` are those that an earlier import of the same document had brought: they are as they were. `dropped` says by
    job what of the document was left out.
    """

    jobs: Mapping[str, int]
    blobs: int
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        made = {"jobs": dict(self.jobs), "blobs": self.blobs, "replaced": list(self.replaced), "kept": list(self.kept)}
        return {**made, "dropped": {job: list(what) for job, what in self.dropped.items()}}


def import_(
    store: BookmarkStore,
    document: Mapping[str, Any],
    *,
    who: str,
    reason: str,
    overwrite: bool = False,
    move: bool = False,
) -> Imported:
    """Import the bookmarks of an exported document into a store.

    Everything is checked before anything is written. Each job is claimed first, by a lease that does not end by itself:
    if this process dies half-way, the job can't run, and importing again finishes it, and leaves alone what is whole.
    Then it has no lease, and a fence above all it ever had.

    What comes from another table or namespace is a copy: the job it was taken from may be alive, and its files are its
    own. So a copy has none of its staging and open runs, and refuses a clean or replay of the runs that it was given.
    Whatever it comes from, only a move brings along what lets the next run change files: staging, and a publish or
    clean that is due. No import brings a request that may still be carried out, and events stand as imported.

    Args:
        document: what `export` returned.
        who, reason: for the audit event of each job; a reason is required.
        overwrite: also replace a bookmark that is there. Its audit events stay.
        move: the store that was exported is gone, or nobody uses it any more: this one takes its place, with its
            staging, open runs, and what is due. Into another namespace it brings nothing that is due, and no staging.

    Raises:
        DocumentError: damaged, or of another format. OptionError: no reason.
        ChangeRefusedError: a job or name is there already; a consumer has read what would be replaced, or more of an
            upstream than that has made; or a publish or clean is due, of a copy or of another namespace, which can't be
            finished here.
        JobBusyError, ProtectedError: of a job that would be replaced. StoreAccessError: this role may not delete, which
            an import half-way has to.
    """
    check_reason("import", reason)
    check_who(who)
    store.check_layout()
    document_jobs, blobs = read_document(document)
    for job, part in document_jobs.items():
        _check_upstreams(store, job, part, document_jobs, blobs)
        _check_names(store, job, part)
    jobs = {j: part for j, part in document_jobs.items() if overwrite or not _is_done(store, j, part)}
    seen = {job: store.snapshot(job).head for job in jobs}
    home = (store.namespace, transition.table_made_at(store))
    is_copy = not move and (document.get("namespace"), document.get("table_made_at")) != home
    origin = Origin(str(document.get("namespace")), store.namespace, is_copy, move)
    for job, part in jobs.items():
        _check_free(store, job, part, seen[job], overwrite)
        origin.check_due(job, part.head)
        origin.check_artifacts(job, part.items)
        _check_artifacts_there(store, job, part)
        check_may_delete(store, job)
    for body in blobs.values():
        store.blobs.put(body)
    dropped: dict[str, tuple[str, ...]] = {}
    for job, part in jobs.items():
        event: AuditEvent = {"kind": "import", **signed(who), "why": reason, "from": str(document.get("namespace"))}
        landing = origin.landing(job, part.items, part.head, part.index)
        if landing.dropped:
            dropped[job] = landing.dropped
            event["dropped"] = list(landing.dropped[:_MOST_DROPPED])
            log.warning("bookmark %s: the import leaves out: %s", job, "; ".join(landing.dropped))
        index = {**landing.index, _IMPORT_OF: part.sha256}
        owner = owner_of_kin(store, job)
        if not transition.write_job(store, job, seen[job], landing.items, index, event, owner):
            raise ChangedMeanwhileError(f"job {job!r} moved while it was imported. Import it again.")
    for job, part in document_jobs.items():  # an earlier import may have ended before it wrote them
        for name in part.aliases:
            transition.write_alias(store, job, name)
    replaced = tuple(job for job, head in seen.items() if head is not None)
    kept = tuple(job for job in document_jobs if job not in jobs)
    return Imported({job: part.head.run_number for job, part in jobs.items()}, len(blobs), replaced, kept, dropped)


def _check_upstreams(
    store: BookmarkStore, job: str, part: DocumentPart, jobs: Mapping[str, DocumentPart], blobs: Mapping[str, bytes]
) -> None:
    """Make sure that no upstream stands before what a job has read of it: what it makes next would count as read."""
    for ctx, state in part.head.contexts.items():
        read, upstream = _consumed_in(store, job, part, ctx, blobs), upstream_of(state)
        if read is None or upstream is None:
            continue
        head = jobs[upstream].head if upstream in jobs else store.snapshot(upstream).head
        if head is not None and read > head.run_number:
            raise ChangeRefusedError(
                f"job {job!r} has read its upstream {upstream!r} up to run {read}, and "
                f"{'the document' if upstream in jobs else 'this store'} has that at run {head.run_number}: the next "
                f"runs of {upstream!r} would count as read. Nothing was imported. Export both again; if that can't be "
                f"done, take {job!r} out of the 'jobs' of the document, and let it begin anew."
            )


def _consumed_in(
    store: BookmarkStore, job: str, part: DocumentPart, ctx: str, blobs: Mapping[str, bytes]
) -> int | None:
    """Return up to which run of an upstream a context of a document has read; None if it reads none."""
    state = part.head.contexts[ctx]
    attributes = part.items.get(store.keys(job).run(state.run).sk)
    if upstream_of(state) is None or attributes is None or state.set_in is not None:
        return None
    payload = item.run_of(state.run, attributes).positions.get(ctx)
    body = None if payload is None else blobs.get(payload.sha256) if payload.inline is None else payload.inline
    at = None if body is None else kind_of(state.kind).consumed(body)
    return None if at is None else at.run_number


def _check_artifacts_there(store: BookmarkStore, job: str, part: DocumentPart) -> None:
    head = next(attributes for sk, attributes in part.items.items() if sk == store.keys(job).head.sk)
    missing = store.artifacts.missing(job, artifact_uris(head)) if any(artifact_uris(head)) else []
    if missing:
        raise ChangeRefusedError(
            f"job {job!r}: {len(missing)} folder(s) that belong to its position are gone since it was exported, the "
            f"first: {missing[0]!r}. Nothing was imported. Restore them from a backup first, or begin anew."
        )


def _check_names(store: BookmarkStore, job: str, part: DocumentPart) -> None:
    for name in part.aliases:
        if key_of(store, name) not in (job, name) or store.snapshot(name).head is not None:
            raise ChangeRefusedError(f"{name!r}, a name of job {job!r}, is another job here. Nothing was imported.")
    if key_of(store, job) != job:
        raise ChangeRefusedError(f"{job!r} is another name of job {key_of(store, job)!r} here. Nothing was imported.")


def _check_free(store: BookmarkStore, job: str, part: DocumentPart, head: Head | None, overwrite: bool) -> None:
    if head is None or transition.is_claimed(head):
        return
    if not overwrite:
        raise ChangeRefusedError(
            f"there is a job {job!r} in namespace {store.namespace!r} (run {head.run_number}). Nothing was imported. "
            "Export the jobs that you want by name, or let it be replaced with overwrite (--overwrite)."
        )
    if head.protected:
        raise ProtectedError(f"job {job!r} is protected and can't be replaced. Nothing was imported.")
    if head.holder(store.now()) is not None:
        raise busy_error(job, head)
    landed = may_have_landed(store, job, head)
    if landed is not None:
        run, targets = landed
        raise ChangeRefusedError(
            f"job {job!r}: its run {run.key} was left open, and its rows may be in {targets} already: the job, once "
            "replaced, would write them again. Nothing was imported. Let its next run begin, which settles that one; "
            "then import."
        )
    _check_consumers(store, job, part)


def _check_consumers(store: BookmarkStore, job: str, part: DocumentPart) -> None:
    """Refuse to replace what a consumer has read by what it has not: the difference would go unnoticed."""
    for edge in store.edges(job):
        given = part.items.get(f"{item.EDGE_PREFIX}{edge.consumer}")
        if given is None or (given["run_number"], given["epoch"]) != (edge.run_number, edge.epoch):
            raise ChangeRefusedError(
                f"job {job!r}: consumer {edge.consumer!r} has read it up to run {edge.run_number}, epoch {edge.epoch}, "
                "and the document does not know of that. Nothing was imported. Rewind instead of importing; or "
                "import into another namespace."
            )


def _is_done(store: BookmarkStore, job: str, part: DocumentPart) -> bool:
    """Whether an earlier import of the same document has brought the job, and ended with it."""
    head = store.snapshot(job).head
    entry = store.index_entry(job) or {}
    return head is not None and not transition.is_claimed(head) and entry.get(_IMPORT_OF) == part.sha256
