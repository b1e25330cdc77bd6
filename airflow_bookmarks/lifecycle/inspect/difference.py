"""Compare two runs of a job, or a job in two stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import RunUnknownError
from airflow_bookmarks.lifecycle.history.rewind import is_number
from airflow_bookmarks.lifecycle.history.state_values import shown_state, state_difference
from airflow_bookmarks.lifecycle.inspect.runs import row
from airflow_bookmarks.lifecycle.state.positions import stored_position
from airflow_bookmarks.sources.registry import files_in, find_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.run import ContextState, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_MEASURED = ("epoch", "revision", "state", "files", "bytes", "rows", "rows_written", "is_empty", "seconds")
_NUMBERS = ("version", "epoch", "run_number", "published", "data_run_number", "changes", "protected")


def find_run(store: BookmarkStore, job: str, reference: str) -> Run:
    """Return the committed run that a run number or run id names, undone or not.

    Raises:
        JobUnknownError: no such bookmark. RunUnknownError: no such run, or it was collected.
    """
    store.head(job)
    number: int | None = int(reference) if is_number(reference) else None
    if number is None:
        execution = store.execution(job, reference)
        number = None if execution is None else execution.last_run
    run = store.committed_run(job, number) if number else None
    if run is None:
        raise RunUnknownError(
            f"job {job!r} has no committed run {reference!r}, or it was collected. Nothing was read or changed. "
            f"'airflow-bookmarks history {job}' lists them."
        )
    return run


def diff(store: BookmarkStore, job: str, run_a: str, run_b: str) -> dict[str, Any]:
    """Compare run B with run A: what each read, where each context stood after it, what each wrote, and which values of
    `job.state` differ after them.

    Args:
        run_a, run_b: run numbers or run ids; undone runs too.

    Raises:
        JobUnknownError, RunUnknownError.
    """
    a, b = find_run(store, job, str(run_a)), find_run(store, job, str(run_b))
    living = store.ancestry(job, store.head(job).epoch)
    rows = row(a, living), row(b, living)
    return {
        "job": job,
        "runs": _pair(a.key.number, b.key.number),
        "run_ids": _pair(a.run_id, b.run_id),
        "measured": {name: _pair(rows[0][name], rows[1][name]) for name in _MEASURED if rows[0][name] != rows[1][name]},
        "contexts": {ctx: _context_diff(store, a, b, ctx) for ctx in sorted({*a.plans, *b.plans})},
        "outputs": {
            name: _pair(_output(a, name), _output(b, name))
            for name in sorted({*a.outputs, *b.outputs})
            if _output(a, name) != _output(b, name)
        },
        "state": state_difference(shown_state(store, job, a.contexts), shown_state(store, job, b.contexts), ("a", "b")),
    }


def diff_stores(store_a: BookmarkStore, store_b: BookmarkStore, job: str) -> dict[str, Any]:
    """Compare a job in store B with the same job in store A (another environment); equal parts are left out.

    `position` is the hash of what is stored. Equal hashes mean equal positions; the hashes of file positions may differ
    even if the same files were read, in other runs. A copy (export, import) has the same hash.

    Raises:
        JobUnknownError: one of the stores has no such bookmark. StateCorruptError: a position is gone.
    """
    a, b = store_a.head(job), store_b.head(job)
    contexts = {ctx: _state_diff(store_a, store_b, job, ctx, a.contexts.get(ctx), b.contexts.get(ctx))
                for ctx in sorted({*a.contexts, *b.contexts})}  # fmt: skip
    return {
        "job": job,
        "stores": _pair(_place(store_a), _place(store_b)),
        "numbers": {n: _pair(getattr(a, n), getattr(b, n)) for n in _NUMBERS if getattr(a, n) != getattr(b, n)},
        "contexts": {ctx: found for ctx, found in contexts.items() if found},
        "state": state_difference(
            shown_state(store_a, job, a.contexts), shown_state(store_b, job, b.contexts), ("a", "b")
        ),
        "is_same": not any(contexts.values()),
    }


# ---- parts


def _pair(a: Any, b: Any) -> dict[str, Any]:
    return {"a": a, "b": b}


def _planned(store: BookmarkStore, run: Run, ctx: str) -> dict[str, Any] | None:
    """Return the planned files of a context by path; None where it did not read files, or its kind is not known."""
    entry = run.plans.get(ctx)
    if entry is None:
        return {}
    files = files_in(entry.kind, store.blobs.get(entry.body))
    return None if files is None else {file.path: file for file in files}


def _context_diff(store: BookmarkStore, a: Run, b: Run, ctx: str) -> dict[str, Any]:
    return {
        **_files_diff(_planned(store, a, ctx), _planned(store, b, ctx)),
        "watermark": _pair(_mark(a.contexts.get(ctx)), _mark(b.contexts.get(ctx))),
    }


def _files_diff(of_a: Mapping[str, Any] | None, of_b: Mapping[str, Any] | None) -> dict[str, Any]:
    """Compare planned files; all is None where one side's are not known."""
    if of_a is None or of_b is None:
        return dict.fromkeys(("only_in_a", "only_in_b", "other_version", "in_both"))
    both = of_a.keys() & of_b.keys()
    return {
        "only_in_a": sorted(of_a.keys() - both),
        "only_in_b": sorted(of_b.keys() - both),
        "other_version": sorted(path for path in both if of_a[path].version != of_b[path].version),
        "in_both": len(both),
    }


def _mark(state: ContextState | None) -> str | None:
    return None if state is None else state.watermark


def _output(run: Run, name: str) -> Mapping[str, Any] | None:
    output = run.outputs.get(name)
    return None if output is None else {"sink": output.sink, "target": output.target, **output.stats}


def _state_diff(
    store_a: BookmarkStore,
    store_b: BookmarkStore,
    job: str,
    ctx: str,
    a: ContextState | None,
    b: ContextState | None,
) -> dict[str, Any]:
    facts_a, facts_b = _state_figures(store_a, job, ctx, a), _state_figures(store_b, job, ctx, b)
    return {name: _pair(facts_a.get(name), facts_b.get(name)) for name in sorted({*facts_a, *facts_b})
            if facts_a.get(name) != facts_b.get(name)}  # fmt: skip


def _state_figures(store: BookmarkStore, job: str, ctx: str, state: ContextState | None) -> dict[str, Any]:
    payload = stored_position(store, job, ctx, state)
    if state is None or payload is None:
        return {}
    figures: dict[str, Any] = {
        "kind": state.kind,
        "source": state.fingerprint,
        "watermark": state.watermark,
        "position": payload.sha256,
    }
    kind = find_kind(state.kind)
    ledger = None if kind is None else kind.ledger(store.blobs.get(payload), store.blobs.get_named)
    if ledger is not None:
        figures["files"] = len(ledger)
    return figures


def _place(store: BookmarkStore) -> dict[str, str]:
    return {"namespace": store.namespace, **store.describe()}
