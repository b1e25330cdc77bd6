"""Gaps of a job's contexts, as its runs recorded them: nothing is listed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.gap import shown_gaps
from airflow_bookmarks.core.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def gaps_of(store: BookmarkStore, job: str, head: Head) -> dict[str, dict[str, Any]]:
    """Return what is missing in each context that looks for gaps, as `core.gap.shown_gaps` has it.

    Of a run item that can't be read nothing is told; `doctor` names it.
    """
    numbers = {head.run_number, *(state.run.number for state in head.contexts.values())}
    found: dict[RunKey, Run] = {}
    for number in sorted(numbers - {0}):
        runs = store.runs_or_damage(job, after=number - 1, until=number)
        found |= {key: run for key, run in runs if isinstance(run, Run) and run.state.is_committed}
    return recorded_gaps(head, found)


def recorded_gaps(head: Head, runs: Mapping[RunKey, Run]) -> dict[str, dict[str, Any]]:
    """Return the same from the committed runs that are given: the newest one of the present epoch, which listed last,
    else the one that holds the position.
    """
    newest = [run for key, run in runs.items() if key.number == head.run_number and run.epoch == head.epoch]
    told: dict[str, dict[str, Any]] = {}
    for ctx, state in head.contexts.items():
        holder = runs.get(state.run)
        for run in (*newest, *([] if holder is None else [holder])):
            if ctx in run.plans:
                gaps = shown_gaps(run.plans[ctx].facts)
                told |= {} if gaps is None else {ctx: gaps}
                break
    return told
