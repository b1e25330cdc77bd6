"""The history of a job as rows: every run item, with what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.core.run import watermarks
from airflow_bookmarks.lifecycle.rewind import resolve_run

if TYPE_CHECKING:
    from airflow_bookmarks.core.line import Ancestry
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

UNDONE = "UNDONE"


def history(
    store: BookmarkStore, job: str, *, limit: int | None = None, with_open: bool = False
) -> list[dict[str, Any]]:
    """Return the committed runs of a job, oldest first (with `limit`: the newest so many), as plain values.

    A run that a reset or rewind left out has the state UNDONE. `with_open` adds runs that did not commit.

    Raises:
        JobUnknownError: no such bookmark.
    """
    head = store.head(job)
    living = store.ancestry(job, head.epoch)
    rows: list[dict[str, Any]] = []
    for run in store.runs(job, reverse=True):
        if run.state.is_committed or with_open:
            rows.append(row(run, living))
        if limit is not None and len(rows) >= limit:
            break
    return rows[::-1]


def state_of(run: Run, living: Ancestry) -> str:
    """Return where a run stands; UNDONE if it committed and the living line leaves it out."""
    is_undone = run.state.is_committed and not living.is_living(run.key.number, run.epoch)
    return UNDONE if is_undone else run.state.value


def row(run: Run, living: Ancestry) -> dict[str, Any]:
    """Return one run as plain values."""
    contexts = run.metrics.get("contexts", {})
    return {
        "number": run.key.number,
        "fence": run.key.fence,
        "epoch": run.epoch,
        "revision": run.revision,
        "state": state_of(run, living),
        "run_id": run.run_id,
        "attempt": run.attempt,
        "option": run.option,
        "is_empty": run.is_empty,
        "files": sum(facts.get("files", 0) for facts in contexts.values()),
        "bytes": sum(facts.get("bytes", 0) for facts in contexts.values()),
        "rows": _sum([facts.get("rows") for facts in contexts.values()]),
        "rows_written": _sum([output.facts.get("rows") for output in run.outputs.values()]),
        "watermark": watermarks(run.contexts),
        "version": run.version,
        "planned_at": run.planned_at,
        "committed_at": run.committed_at,
        "published_at": run.published_at,
        "seconds": dict(run.metrics.get("seconds", {})),
        "contexts": {ctx: dict(facts) for ctx, facts in contexts.items()},
        "outputs": {name: dict(output.facts) for name, output in run.outputs.items()},
        "error": run.error,
    }


def files_of(store: BookmarkStore, job: str, reference: str) -> list[dict[str, Any]]:
    """Return the files that a run has read, by context, with size and time of each.

    Raises:
        JobUnknownError, RunUnknownError: no such run in the living history.
    """
    run = resolve_run(store, job, store.head(job), reference)
    rows: list[dict[str, Any]] = []
    for ctx, entry in run.plans.items():
        plan = FilePlan.decode(store.blobs.get(entry.body))
        rows += [
            {"ctx": ctx, "path": file.path, "bytes": file.size_bytes, "modified_at": to_text(file.modified)}
            for file in plan.files
        ]
    return rows


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
