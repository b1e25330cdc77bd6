"""What the plan that listed a context last has recorded of it: gaps, the newest partition. Nothing is listed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.gap import shown_gaps
from airflow_bookmarks.core.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

LastPlans = dict[str, "Mapping[str, Any]"]


def last_plans(store: BookmarkStore, job: str, head: Head) -> LastPlans:
    """Return the facts of the plan that listed each context last.

    Of a run item that can't be read nothing is told; `doctor` names it.
    """
    numbers = {head.run_number, *(state.run.number for state in head.contexts.values())}
    found: dict[RunKey, Run] = {}
    for number in sorted(numbers - {0}):
        runs = store.runs_or_damage(job, after=number - 1, until=number)
        found |= {key: run for key, run in runs if isinstance(run, Run) and run.state.is_committed}
    return last_plans_among(head, found)


def last_plans_among(head: Head, runs: Mapping[RunKey, Run]) -> LastPlans:
    """Return the same from the committed runs that are given: the newest one of the present epoch, which listed last,
    else the one that holds the position.
    """
    newest = [run for key, run in runs.items() if key.number == head.run_number and run.epoch == head.epoch]
    told: LastPlans = {}
    for ctx, state in head.contexts.items():
        holder = runs.get(state.run)
        for run in (*newest, *([] if holder is None else [holder])):
            name = ctx if ctx in run.plans else state.planned_as(ctx)
            if name in run.plans:
                told[ctx] = run.plans[name].facts
                break
    return told


def shown(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a plan's facts what belongs to a position: `gaps` and `newest_partition`, where they are told."""
    gaps, newest = shown_gaps(facts), facts.get(NEWEST_PARTITION)
    return {**({} if gaps is None else {"gaps": gaps}), **({} if newest is None else {NEWEST_PARTITION: newest})}
