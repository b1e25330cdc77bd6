"""Sum up an execution of several runs: the batches of a loop, under the number of the last of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.selection.reason import BEFORE_START, MISSING, QUARANTINED
from airflow_bookmarks.core.text.count import READ_AGAIN, replaced_in_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


# Reasons that each batch counts for itself. Each batch repeats the other reasons, so the last one counts.
_OF_ONE_BATCH = (BEFORE_START, MISSING)
_COUNTS = ("rows", "files", "bytes")


def batches_until(store: BookmarkStore, job: str, last: Run, first_run: int | None) -> list[Run]:
    """Return the runs of the loop that made `last`, oldest first: itself, and the batches of the execution before it.

    Each but the last of an execution says that it is not the last. `first_run` is the first one that the execution ever
    made, maybe before its task was cleared. Runs of others may lie between its tries; what was undone since does not
    count. Of files in quarantine each run but the first is given those alone that it found itself.
    """
    runs, living = [last], None
    if first_run is None or first_run >= last.key.number:
        return runs
    for run in store.runs(job, after=first_run - 1, until=last.key.number - 1, reverse=True):
        if not run.state.is_committed:
            continue
        if run.run_id != last.run_id:
            continue  # another execution, between two tries of this one
        if run.is_last:
            break  # an earlier series of tries
        living = living or store.ancestry(job, last.epoch)
        if living.has(run):
            runs.append(run)
    first, *later = runs[::-1]
    return [first, *map(_with_own_quarantine, later)]


def _with_own_quarantine(run: Run) -> Run:
    """Return a run that counts only the files which it put in quarantine itself."""
    contexts = {}
    for ctx, figures in run.metrics.get("contexts", {}).items():
        skipped = {reason: count for reason, count in (figures.get("skipped") or {}).items() if reason != QUARANTINED}
        own = figures.get("quarantined", 0)
        contexts[ctx] = {**figures, "skipped": {**skipped, QUARANTINED: own} if own else skipped}
    return replace(run, metrics={**run.metrics, "contexts": contexts})


def joined(made: Sequence[Summary]) -> Summary:
    """Return the sums over runs of one execution, in their order; where it stands is what the last one says."""
    if len(made) == 1:
        return made[0]
    # Runs that leave the bookmark alone record no quarantine, so it is unknown which of theirs were there before.
    reasons = _OF_ONE_BATCH if made[0].run_number is None else (*_OF_ONE_BATCH, QUARANTINED)
    return replace(
        made[-1],
        first_run_number=made[0].run_number,
        is_empty=all(summary.is_empty for summary in made),
        contexts=_by_name([summary.contexts for summary in made], partial(_context, summed=reasons)),
        outputs=_by_name([summary.outputs for summary in made], _output),
        seconds=_seconds(made),
    )


def _by_name(
    parts: Sequence[Mapping[str, Mapping[str, Any]]],
    merge: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge([part[name] for part in parts if name in part]) for name in names}


def _sums(figures: Sequence[Mapping[str, Any]], counts: Sequence[str] = _COUNTS) -> dict[str, Any]:
    """Return what the last one says, with the sum of each count; None where one of them is not known."""
    columns = {key: [each.get(key) for each in figures] for key in counts}
    sums: dict[str, Any] = {key: None if None in numbers else sum(numbers) for key, numbers in columns.items()}
    return {**figures[-1], **sums, **_discarded(figures)}


def _discarded(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several runs have discarded of an output; nothing where none did."""
    found = [each for each in figures if each.get("discarded")]
    if not found:
        return {}
    known = [each["discarded_rows"] for each in found if each.get("discarded_rows") is not None]
    return {
        "discarded": True,
        "discarded_rows": sum(known) if len(known) == len(found) else None,
        "discarded_files": sum(each["discarded_files"] for each in found),
    }


def _output(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {**_sums(figures), **replaced_in_all(figures)}


def _context(figures: Sequence[Mapping[str, Any]], summed: Sequence[str]) -> dict[str, Any]:
    merged = {**_sums(figures, (*_COUNTS, READ_AGAIN)), "known": figures[0].get("known")}
    left = [each.get("skipped") or {} for each in figures]
    sums = {reason: sum(each.get(reason, 0) for each in left) for reason in summed}
    merged["skipped"] = {**left[-1], **{reason: count for reason, count in sums.items() if count}}
    # Only the batch for which the folders were listed tells of partitions: as the execution found them.
    merged |= next(({"partitions": each["partitions"]} for each in figures if "partitions" in each), {})
    changes = [each["schema_change"] for each in figures if each.get("schema_change")]
    if changes:
        merged["schema_change"] = _changes(changes)
    if "watermark_from" in figures[0]:
        merged["watermark_from"] = figures[0]["watermark_from"]
    windows = [each["upstream"] for each in figures if "upstream" in each]
    if windows:
        merged["upstream"] = {
            **windows[-1],
            "after": windows[0]["after"],
            "runs": [number for window in windows for number in window["runs"]],
            "replaced": sum(window["replaced"] for window in windows),
        }
    return merged


def _changes(changes: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Return all schema changes by kind, each once: a batch compares with the one before it."""
    kinds = dict.fromkeys(kind for change in changes for kind in change)
    return {kind: list(dict.fromkeys(said for each in changes for said in each.get(kind, ()))) for kind in kinds}


def _seconds(made: Sequence[Summary]) -> dict[str, str]:
    steps = dict.fromkeys(step for summary in made for step in summary.seconds)
    return {step: f"{sum(float(summary.seconds.get(step, 0)) for summary in made):.3f}" for step in steps}
