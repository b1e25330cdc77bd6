"""What an execution of several runs has done in all: the batches of a loop, under the number of the last of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.reason import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.summary import Summary
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def batches_until(store: BookmarkStore, job: str, last: Run, first_run: int | None) -> list[Run]:
    """Return the runs of the loop that made `last`, oldest first: itself, and the batches right before it.

    Each but the last of an execution says that it is not the last. `first_run` is the first one that the execution ever
    made, maybe before its task was cleared.
    """
    runs = [last]
    if first_run is None or first_run >= last.key.number:
        return runs
    for run in store.runs(job, after=first_run - 1, until=last.key.number - 1, reverse=True):
        if not run.state.is_committed:
            continue
        is_before = run.key.number == runs[-1].key.number - 1 and run.epoch == last.epoch
        if run.run_id != last.run_id or run.is_last or not is_before:
            break
        runs.append(run)
    return runs[::-1]


def joined(made: Sequence[Summary]) -> Summary:
    """Return the sums over runs of one execution, in their order; where it stands is what the last one says."""
    if len(made) == 1:
        return made[0]
    return replace(
        made[-1],
        first_run_number=made[0].run_number,
        is_empty=all(summary.is_empty for summary in made),
        contexts=_by_name([summary.contexts for summary in made], _context),
        outputs=_by_name([summary.outputs for summary in made], _sums),
        seconds=_seconds(made),
    )


def _by_name(
    parts: Sequence[Mapping[str, Mapping[str, Any]]],
    merge: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge([part[name] for part in parts if name in part]) for name in names}


def _sums(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the last one says, with the sum of each count; None where one of them is not known."""
    columns = {key: [each.get(key) for each in facts] for key in ("rows", "files", "bytes")}
    return {**facts[-1], **{key: None if None in numbers else sum(numbers) for key, numbers in columns.items()}}


def _context(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged = {**_sums(facts), "known": facts[0].get("known")}
    # What a rule leaves out it leaves out of each batch; what changed or went, each batch has found for itself.
    missing = sum((each.get("skipped") or {}).get(MISSING, 0) for each in facts)
    merged["skipped"] = {**(facts[-1].get("skipped") or {}), **({MISSING: missing} if missing else {})}
    if "watermark_from" in facts[0]:
        merged["watermark_from"] = facts[0]["watermark_from"]
    windows = [each["upstream"] for each in facts if "upstream" in each]
    if windows:
        merged["upstream"] = {
            **windows[-1],
            "after": windows[0]["after"],
            "runs": [number for window in windows for number in window["runs"]],
            "replaced": sum(window["replaced"] for window in windows),
        }
    return merged


def _seconds(made: Sequence[Summary]) -> dict[str, str]:
    steps = dict.fromkeys(step for summary in made for step in summary.seconds)
    return {step: f"{sum(float(summary.seconds.get(step, 0)) for summary in made):.3f}" for step in steps}
