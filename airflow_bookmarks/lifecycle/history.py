"""The history of a job as rows: every run item, with what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.plan import FilePlan
from airflow_bookmarks.core.run import RunState, watermarks
from airflow_bookmarks.lifecycle.rewind import is_number, resolve_run
from airflow_bookmarks.store.attribute import run_key_of
from airflow_bookmarks.store.item import SIDE_PREFIX, payload_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.line import Ancestry
    from airflow_bookmarks.core.run import Payload, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.table import Attributes

UNDONE = "UNDONE"

_PLAN = "plan:"  # of the attributes of a side record that hold a plan
_COMMITTED = (RunState.COMMITTED, RunState.PUBLISHED)


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
    """Return the files that a run has read, or was about to, by context, with size and time of each.

    `state` is that of the run: also of one that failed or was given up, and UNDONE of one that a reset or rewind left
    out; of a paused or disabled run it is the option.

    Args:
        reference: a run number, a run item (`number.fence`), a run id, or the id of a side record. A number means the
            run of the living history, if there is one; a run id the last run of its execution.

    Raises:
        JobUnknownError, RunUnknownError: no such run.
    """
    state, bodies = _plans_of(store, job, reference)
    rows: list[dict[str, Any]] = []
    for ctx, body in bodies.items():
        plan = FilePlan.decode(store.blobs.get(body))
        rows += [
            {
                "ctx": ctx,
                "path": file.path,
                "bytes": file.size_bytes,
                "modified_at": to_text(file.modified),
                "state": state,
            }
            for file in plan.files
        ]
    return rows


def _plans_of(store: BookmarkStore, job: str, reference: str) -> tuple[str, Mapping[str, Payload]]:
    head = store.look(job).head
    run = None if head is None else _run_of(store, job, head, reference)
    if head is not None and run is not None:
        bodies = {ctx: entry.body for ctx, entry in run.plans.items()}
        return state_of(run, store.ancestry(job, head.epoch)), bodies
    side = _side_of(store, job, reference)
    if side is not None:
        bodies = {name.removeprefix(_PLAN): payload_of(value) for name, value in side.items() if name.startswith(_PLAN)}
        return str(side.get("option")), bodies
    run = resolve_run(store, job, store.head(job), reference)  # which says why there is none
    return run.state.value, {ctx: entry.body for ctx, entry in run.plans.items()}


def _run_of(store: BookmarkStore, job: str, head: Head, reference: str) -> Run | None:
    """Return the run item that is named: that of the living history first, else the newest."""
    key = run_key_of(reference)
    if key is not None:
        return store.run(job, key)
    number = int(reference) if is_number(reference) else None
    if number is None:
        execution = store.execution(job, reference)
        if execution is None:
            return None
        number = execution.last_run or execution.base_run + 1
    living = store.ancestry(job, head.epoch)
    found = [run for run in store.runs(job, after=number - 1, until=number) if _is_meant(run, reference)]
    return max(found, key=lambda run: (state_of(run, living) in _COMMITTED, run.key), default=None)


def _is_meant(run: Run, reference: str) -> bool:
    return is_number(reference) or reference in (run.run_id, run.replayed_by)


def _side_of(store: BookmarkStore, job: str, reference: str) -> Attributes | None:
    """Return the newest side record of a run id, or the one of an id."""
    rows = store.table.query(store.keys(job).partition, prefix=SIDE_PREFIX)
    found = [side for key, side in rows if reference in (side.get("run_id"), key.sk.removeprefix(SIDE_PREFIX))]
    return found[-1] if found else None


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
