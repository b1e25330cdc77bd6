"""List the history of a job as rows: every run item, with what became of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.run import RunState, orders, watermarks
from airflow_bookmarks.core.text.count import LEFT_OUT, READ_AGAIN
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.history.rewind import is_number, resolve_run
from airflow_bookmarks.sources.registry import UNNAMED, find_kind
from airflow_bookmarks.store.codec.attribute import run_key_of
from airflow_bookmarks.store.codec.item import payload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Payload, Run
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.core.timeline import Ancestry
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import SideRecord

UNDONE = "UNDONE"

KIND = "kind"  # of a source, among the figures of a context in a side record
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
    """Return the state of a run; UNDONE if it committed and the living line leaves it out."""
    return UNDONE if living.is_undone(run) else run.state.value


def row(run: Run, living: Ancestry) -> dict[str, Any]:
    """Return one run as plain values. The counts of a run that did not commit are None: they were not measured."""
    contexts = run.metrics.get("contexts", {})
    is_measured = "contexts" in run.metrics or run.state.is_committed
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
        "files": total(contexts.values(), "files") if is_measured else None,
        "bytes": total(contexts.values(), "bytes") if is_measured else None,
        "amounts": in_other_units(contexts.values()),
        READ_AGAIN: _sum([figures.get(READ_AGAIN) for figures in contexts.values()]),
        "rows": _sum([figures.get("rows") for figures in contexts.values()]),
        "rows_written": _sum([output.metadata.rows for output in run.outputs.values()]),
        "watermark": watermarks(run.contexts),
        "order": orders(run.contexts),
        "version": run.version,
        "planned_at": run.planned_at,
        "committed_at": run.committed_at,
        "published_at": run.published_at,
        "seconds": dict(run.metrics.get("seconds", {})),
        "contexts": {ctx: dict(figures) for ctx, figures in contexts.items()},
        "outputs": {name: dict(output.stats) for name, output in run.outputs.items()},
        LEFT_OUT: {step: dict(counts) for step, counts in run.metrics.get(LEFT_OUT, {}).items()},
        "error": run.error,
    }


def total(measured: Iterable[Mapping[str, Any]], key: str) -> int | None:
    """Return the sum of one count over several contexts or outputs; None if one of them is not known."""
    return sum_of(figures.get(key) for figures in measured)


def sum_of(counts: Iterable[int | None]) -> int | None:
    """Return the sum of some counts; None if one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


def files_of(store: BookmarkStore, job: str, reference: str) -> list[dict[str, Any]]:
    """Return the files that a run read, or was about to read, by context, with size and time of each.

    `state` is that of the run: also of one that failed or was given up, and UNDONE of one that a reset or rewind left
    out; of a paused or disabled run it is the option.

    Args:
        reference: a run number, a run item (`number.fence`), a run id, or the id of a side record. A number means the
            run of the living history, if there is one; a run id all runs of its execution: a loop of batches has many.

    Raises:
        JobUnknownError, RunUnknownError: no such run.
        OptionError: a context of the run is of a kind that has no files, or that is not known here.
    """
    found = page_of(store, job, reference, offset=0, limit=sys.maxsize)
    for ctx, kind in found.unlisted.items():
        raise OptionError(
            f"context {ctx!r} of run {reference} is of kind {kind!r}, of which no files can be listed: a run reads the "
            "table whole, or its changes. Nothing was changed. 'history' says how much it was, 'show' up to where."
        )
    return found.rows


@dataclass(frozen=True, slots=True)
class FilePage:
    """Some of the files that a run read.

    Attributes:
        rows: The files, as `files_of` returns them.
        total: How many there are.
        unlisted: The contexts that read something else, or of whose input the plan names no file, with their kinds.
    """

    rows: list[dict[str, Any]]
    total: int
    unlisted: dict[str, str]


def page_of(store: BookmarkStore, job: str, reference: str, *, offset: int, limit: int) -> FilePage:
    """Return `limit` of the files that a run read, from `offset` on; see `files_of` for which run is meant.

    The plan of many files is stored in parts: parts outside the requested page are not unpacked.

    Raises:
        JobUnknownError, RunUnknownError: no such run.
    """
    rows: list[dict[str, Any]] = []
    total, unlisted = 0, dict[str, str]()
    for state, bodies in _plans_of(store, job, reference):
        for ctx, (name, body) in bodies.items():
            kind = find_kind(name)
            page = None
            if kind is not None:
                page = kind.page(store.blobs.get(body), max(0, offset - total), limit - len(rows))
            if page is None:
                unlisted[ctx] = name
                continue
            count, files = page
            rows += [_file_row(ctx, state, file) for file in files]
            total += count
    return FilePage(rows, total, unlisted)


def _file_row(ctx: str, state: str, file: FileInfo) -> dict[str, Any]:
    return {
        "ctx": ctx,
        "path": file.path,
        "bytes": file.size_bytes,
        "modified_at": to_text(file.modified),
        "state": state,
    }


def _plans_of(store: BookmarkStore, job: str, reference: str) -> list[tuple[str, Mapping[str, tuple[str, Payload]]]]:
    head = store.snapshot(job).head
    runs = [] if head is None else _runs_of(store, job, head, reference)
    if head is not None and runs:
        living = store.ancestry(job, head.epoch)
        return [(state_of(run, living), _bodies(run)) for run in runs]
    side = _side_of(store, job, reference)
    if side is not None:
        kinds = kinds_of(side)
        contexts = [name.removeprefix(_PLAN) for name in side if name.startswith(_PLAN)]
        bodies = {ctx: (kinds.get(ctx, UNNAMED), payload_of(side[f"{_PLAN}{ctx}"])) for ctx in contexts}
        return [(str(side.get("option")), bodies)]
    run = resolve_run(store, job, store.head(job), reference)  # which says why there is none
    return [(run.state.value, _bodies(run))]


def kinds_of(side: SideRecord) -> dict[str, str]:
    """Return the kinds of the sources that a pause or disable run has read, by context; none of an earlier version."""
    contexts = side.get("contexts")
    figures = contexts.items() if isinstance(contexts, dict) else ()
    return {ctx: str(each[KIND]) for ctx, each in figures if isinstance(each, dict) and KIND in each}


def _bodies(run: Run) -> dict[str, tuple[str, Payload]]:
    return {ctx: (entry.kind, entry.body) for ctx, entry in run.plans.items()}


def _runs_of(store: BookmarkStore, job: str, head: Head, reference: str) -> list[Run]:
    """Return the named run items, one for each number: that of the living history first, else the newest."""
    key = run_key_of(reference)
    if key is not None:
        found = store.run(job, key)
        return [] if found is None else [found]
    if is_number(reference):
        first = last = int(reference)
    else:
        execution = store.execution(job, reference)
        if execution is None:
            return []
        last = execution.last_run or execution.base_run + 1
        first = execution.first_run or last
    living = store.ancestry(job, head.epoch)
    chosen: dict[int, Run] = {}
    for run in store.runs(job, after=first - 1, until=last):
        if _is_meant(run, reference):
            runs = [run, *([chosen[run.key.number]] if run.key.number in chosen else [])]
            chosen[run.key.number] = max(runs, key=lambda one: (state_of(one, living) in _COMMITTED, one.key))
    return list(chosen.values())


def _is_meant(run: Run, reference: str) -> bool:
    return is_number(reference) or reference in (run.run_id, run.replayed_by)


def _side_of(store: BookmarkStore, job: str, reference: str) -> SideRecord | None:
    """Return the newest side record of a run id, or the one with an id."""
    found = [side for key, side in store.side_items(job) if reference in (side.get("run_id"), key)]
    return found[-1] if found else None


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
