"""Bookmarks as Glue shows them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.history.rewind import resolve_run
from airflow_bookmarks.sources.registry import has_ledger

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def as_glue_entry(store: BookmarkStore, job: str, run: str | None = None) -> dict[str, Any]:
    """Return a bookmark in the shape of Glue's get-job-bookmark: a JobBookmarkEntry.

    As observed of Glue: `Run` names the next run, `Attempt` counts from 0, `PreviousRunId` is absent in the first
    entry, and `JobBookmark` is JSON in a string, of which every value is a string. Glue has no file ledger: what tells
    read files from unread ones is not part of this shape, so it is to look at, never to import.

    Args:
        run: the entry as it was after this run (number or run id); None: as it is now.

    Raises:
        JobUnknownError: no such bookmark. RunUnknownError: no such run in the living history.
    """
    key = key_of(store, job)
    head = store.head(key)
    last = resolve_run(store, key, head, run) if run is not None else _last_run(store, key, head)
    contexts = head.contexts if run is None or last is None else last.contexts
    entry: dict[str, Any] = {
        "JobName": job,
        "Version": head.version if run is None or last is None else last.version,
        "Run": (0 if last is None else last.key.number) + 1,
        "Attempt": 0 if last is None else last.attempt - 1,
    }
    if last is not None:
        before = _last_run(store, key, head, last.key.number - 1)
        entry |= {} if before is None else {"PreviousRunId": before.run_id}
        entry["RunId"] = last.run_id
    states = {ctx: _glue_state(store, key, state) for ctx, state in contexts.items()}
    return {**entry, "JobBookmark": json.dumps(states, ensure_ascii=False)}


def _last_run(store: BookmarkStore, job: str, head: Head, until: int | None = None) -> Run | None:
    living = store.ancestry(job, head.epoch)
    runs = store.runs(job, until=head.run_number if until is None else until, reverse=True)
    return next(living_runs(runs, living), None)


def _glue_state(store: BookmarkStore, job: str, state: ContextState) -> dict[str, Any]:
    run = store.run(job, state.run)
    mark = state.watermark or ""
    if not has_ledger(state.kind):
        return {"jsonClass": f"{state.kind.capitalize()}JobBookmarkState", "values": {"RUN": str(state.run.number),
                "WATERMARK": mark}}  # fmt: skip
    return {
        "jsonClass": "HadoopDataSourceJobBookmarkState",
        "timestamps": {
            "RUN": str(state.run.number),
            "HIGH_BAND": "0",
            "CURR_LATEST_PARTITION": "0",
            "CURR_LATEST_PARTITIONS": "",
            "CURR_RUN_START_TIME": "" if run is None else _glue_time(run.planned_at),
            "INCLUDE_LIST": "",
            "WATERMARK": mark,
        },
    }


def _glue_time(text: str) -> str:
    time: datetime = from_text(text).astimezone(UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
