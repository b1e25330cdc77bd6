"""Tasks: requests of the page about a job that may need to read files. Plain values in and out, no Airflow.

They run in the API server, which reads no file; and in a child process (`scan.child`) if that is refused and the
deployment allows it, or if more is stored than the API server unpacks at a time.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, ExportRefusedError, LookRefusedError, TooLargeHereError
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.backfill.carry_out import carry_out
from airflow_bookmarks.lifecycle.backfill.plan import plan_backfill, roots_at
from airflow_bookmarks.lifecycle.changes.approval import approve, find_request, request
from airflow_bookmarks.lifecycle.changes.change import Change, apply
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.changes.sharded_change import KINDS, change_shards, preview_shards, stands
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.history.rewind import is_number
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import page_of
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_AROUND_AN_ANSWER = 1024  # bytes that a child adds to what it answers, at most
_EXAMPLES = 10  # files that are named of each reason to leave some out


def _pending(store: BookmarkStore, job: str) -> dict[str, Any]:
    return pending(store, job).as_dict(with_skipped=True, examples=_EXAMPLES)


def _lag(store: BookmarkStore, job: str) -> list[dict[str, Any]]:
    return [each.as_dict() for each in lag(store, job)]


def _files(store: BookmarkStore, job: str, number: int, offset: int, limit: int) -> dict[str, Any]:
    found = page_of(store, job, str(number), offset=offset, limit=limit)
    return {"files": found.rows, "total": found.total, "unlisted": found.unlisted}


def _quarantined(store: BookmarkStore, job: str, offset: int, limit: int) -> dict[str, Any]:
    found = quarantined_files(store, job)
    return {"files": found[offset : offset + limit], "total": len(found)}


def _export(store: BookmarkStore, job: str, jobs: Sequence[str], most: int) -> dict[str, Any]:
    document = export(store, jobs)
    size = len(json.dumps(document)) + _AROUND_AN_ANSWER
    if size > most:
        named = " ".join(jobs[:3]) + (" ..." if len(jobs) > 3 else "")
        raise ExportRefusedError(
            f"job {job!r}: what is stored of it takes {size:,} bytes as a document, and the API server hands out "
            f"{most:,} at most. Nothing was handed out or changed. The command line has no such limit: "
            f"airflow-bookmarks export {named} --file PATH."
        )
    return document


def _preview(store: BookmarkStore, job: str, change: Mapping[str, Any]) -> dict[str, Any]:
    head = store.head(job)
    wanted = _to_run(store, job, head, _change_of(change))
    seen = preview(store, job, wanted)
    is_whole = wanted.kind in KINDS and wanted.contexts is None
    return {**seen.as_dict(), "stands": is_whole and stands(store, job, head, wanted, seen)}


def _to_run(store: BookmarkStore, job: str, head: Head, change: Change) -> Change:
    """Return a rewind to the number of the run that its point names in the history of the job; else the change."""
    if change.to_run is None or is_number(change.to_run):
        return change
    return replace(change, to_run=str(resolve_point(store, job, head, change.to_run).key.number))


def _change(
    store: BookmarkStore, job: str, change: Mapping[str, Any], terms: Mapping[str, Any], typed_name: str
) -> dict[str, Any]:
    wanted = _change_of(change)
    given = {**terms, "who": Identity(**terms["who"]).signature}
    if wanted.kind == "delete":
        return delete(store, job, typed_name=typed_name, clean=wanted.clean, **given).as_dict()
    # Rights were checked on this bookmark: if it is the whole of a sharded job, its shards are left alone.
    return apply(store, job, wanted, **given).as_dict()


def _preview_shards(store: BookmarkStore, job: str, shards: Sequence[str], change: Mapping[str, Any]) -> dict[str, Any]:
    return preview_shards(store, job, shards, _change_of(change)).as_dict()


def _change_shards(
    store: BookmarkStore, job: str, shards: Sequence[str], change: Mapping[str, Any], terms: Mapping[str, Any]
) -> dict[str, Any]:
    given = {**terms, "who": Identity(**terms["who"]).signature}
    # Those on which rights were asked, and no others.
    return change_shards(store, job, shards, _change_of(change), **given).as_dict()


def _plan_backfill(
    store: BookmarkStore, job: str, to: str | None, clean: bool, leave: Sequence[str], keep: Sequence[str], force: bool
) -> dict[str, Any]:
    roots = roots_at(store, [job], to, clean=clean)
    return plan_backfill(store, roots, leave=leave, keep=keep, force=force).as_dict()


def _backfill(
    store: BookmarkStore,
    job: str,
    how: Mapping[str, Any],
    expected_versions: Mapping[str, int],
    reason: str,
    who: Mapping[str, Any],
) -> dict[str, Any]:
    roots = roots_at(store, [job], how["to"], clean=how["clean"])
    plan = plan_backfill(store, roots, leave=how["leave"], keep=how["keep"], force=how["force"])
    plan.check_versions(expected_versions)  # and so those on which rights were asked, and no others
    return carry_out(store, plan, reason=reason, who=Identity(**who).signature).as_dict()


def _request(
    store: BookmarkStore,
    job: str,
    change: Mapping[str, Any],
    reason: str,
    who: Mapping[str, Any],
    expected_version: int | None,
) -> str:
    wanted = _change_of(change)
    return request(store, job, wanted, reason=reason, who=Identity(**who), expected_version=expected_version).id


def _approve(store: BookmarkStore, job: str, request_id: str, who: Mapping[str, Any], force: bool) -> dict[str, Any]:
    _check_look(store, job, request_id)
    return approve(store, job, request_id, who=Identity(**who), force=force)


def _check_look(store: BookmarkStore, job: str, request_id: str) -> None:
    """Refuse what this process can't carry out without reading files, before it is approved.

    Raises:
        LookRefusedError: the change takes such a look. TooLargeHereError. RequestUnknownError.
    """
    body = find_request(store, job, request_id).change
    try:
        body.switch(HistorySnapshot(store, job, store.head(job)), {})
    except (LookRefusedError, TooLargeHereError):
        raise
    except BookmarkError:
        return  # the approval itself reports anything else that is wrong with it


def _change_of(fields: Mapping[str, Any]) -> Change:
    contexts = fields["contexts"]
    return Change(**{**fields, "contexts": None if contexts is None else tuple(contexts)})


TASKS: Mapping[str, Callable[..., Any]] = {
    "pending": _pending,
    "lag": _lag,
    "files": _files,
    "quarantined": _quarantined,
    "export": _export,
    "preview": _preview,
    "change": _change,
    "preview_shards": _preview_shards,
    "change_shards": _change_shards,
    "plan_backfill": _plan_backfill,
    "backfill": _backfill,
    "request": _request,
    "approve": _approve,
}
