"""Add up summaries: of the runs of one execution, in batches, or of the virtual shards of one task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.selection.reason import BEFORE_START, MISSING, OTHER_SHARDS, QUARANTINED
from airflow_bookmarks.core.text.count import READ_AGAIN, REMOVED_KEYS, replaced_in_all
from airflow_bookmarks.lifecycle.state.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Reasons that each batch counts for itself. Each batch repeats the other reasons, so the last one counts.
_OF_ONE_BATCH = (BEFORE_START, MISSING)
_COUNTS = ("rows", "files", "bytes")


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
        left_out=_left_out(made),
    )


def joined_shards(job: str, made: Sequence[Summary]) -> Summary:
    """Return the sums over virtual shards under the name of their job; run numbers and watermarks are those of shards.

    Args:
        job: the name of the sharded job.
        made: what one task did for each of its shards, at least one.
    """
    return Summary(
        job=job,
        namespace=made[0].namespace,
        run_id=made[0].run_id,
        option=made[0].option,
        is_empty=all(summary.is_empty for summary in made),
        is_published=all(summary.is_published for summary in made),
        contexts=_by_name([summary.contexts for summary in made], _sharded_context),
        outputs=_by_name([summary.outputs for summary in made], _written),
        seconds=_seconds(made),
        left_out=_left_out(made),
    )


def _sharded_context(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    skipped: dict[str, int] = {}
    for each in figures:
        for reason, count in (each.get("skipped") or {}).items():
            if reason != OTHER_SHARDS:
                skipped[reason] = skipped.get(reason, 0) + count
    listed = [each["listed"] for each in figures if each.get("listed") is not None]
    return {
        **_sums(figures, (*_COUNTS, "known", READ_AGAIN)),
        "listed": max(listed, default=None),  # the shards share one listing
        "skipped": skipped,
        **next(({"gaps": each["gaps"]} for each in reversed(figures) if "gaps" in each), {}),
        "watermark_from": None,
        "watermark_to": None,
    }


def _by_name(
    parts: Sequence[Mapping[str, Mapping[str, Any]]],
    merge: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge([part[name] for part in parts if name in part]) for name in names}


def _sums(figures: Sequence[Mapping[str, Any]], counts: Sequence[str] = _COUNTS) -> dict[str, Any]:
    """Return the sum of each count; None where one of them is not known."""
    columns = {key: [each.get(key) for each in figures] for key in counts}
    return {key: None if None in numbers else sum(numbers) for key, numbers in columns.items()}


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
    return {**figures[-1], **_written(figures)}


def _written(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of an output: what was written, replaced, removed and discarded."""
    removed = [each[REMOVED_KEYS] for each in figures if REMOVED_KEYS in each]
    taken_away = {REMOVED_KEYS: sum(removed)} if removed else {}
    return {**_sums(figures), **_discarded(figures), **replaced_in_all(figures), **taken_away}


def _context(figures: Sequence[Mapping[str, Any]], summed: Sequence[str]) -> dict[str, Any]:
    merged = {**figures[-1], **_sums(figures, (*_COUNTS, READ_AGAIN)), "known": figures[0].get("known")}
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


def _left_out(made: Sequence[Summary]) -> dict[str, dict[str, int]]:
    sums: dict[str, dict[str, int]] = {}
    for summary in made:
        for step, counts in summary.left_out.items():
            known = sums.setdefault(step, {})
            for reason, count in counts.items():
                known[reason] = known.get(reason, 0) + count
    return sums


def _seconds(made: Sequence[Summary]) -> dict[str, str]:
    steps = dict.fromkeys(step for summary in made for step in summary.seconds)
    return {step: f"{sum(float(summary.seconds.get(step, 0)) for summary in made):.3f}" for step in steps}
