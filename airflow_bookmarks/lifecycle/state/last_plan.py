"""Read what the last plan of a context recorded: gaps, the newest partition, what it left. Lists no folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.ledger.gap import shown_gaps
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.selection.reason import OVER_BOUND, SETTLING
from airflow_bookmarks.core.text.instant import from_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.metadata.plan import PlanMetadata
    from airflow_bookmarks.core.run import PlanEntry, RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

LastPlans = dict[str, "PlanEntry"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run left of a context to later runs, over a bound or settling, when it listed it.

    `run_number` is that of the run. `bytes` and `oldest` are None where they were not recorded, and `oldest` also where
    nothing was left. `skipped` counts by reason all that it left out.
    """

    run_number: int
    looked_at: datetime
    files: int
    bytes: int | None
    oldest: datetime | None
    skipped: Mapping[str, int]

    @classmethod
    def of(cls, run: Run, plan: PlanMetadata) -> Waiting:
        """Read it from what is stored with a plan of the run."""
        files, oldest = sum(plan.skipped.get(reason, 0) for reason in READ_LATER), plan.waiting_oldest_ms
        return cls(
            run.key.number,
            from_text(run.planned_at if plan.looked_at is None else plan.looked_at),
            files,
            plan.waiting_bytes if files else 0,
            None if oldest is None else instant(oldest),
            plan.skipped,
        )


READ_LATER = (OVER_BOUND, SETTLING)  # of the reasons to skip, those that a later run reads


def left_waiting(store: BookmarkStore, job: str, head: Head, ctx: str, recent: Sequence[Run]) -> Waiting | None:
    """Return what the last plan of a context left to later runs; None if no run of the present epoch planned it.

    What a run saw before a reset, rewind or set says nothing of what the next run reads.

    Args:
        recent: the runs that committed last.
    """
    state = head.contexts.get(ctx)
    last = [run for run in recent if run.key.number == head.run_number and run.state.is_committed]
    holder = None if state is None else store.run(job, state.run)
    for run in (*last, *([] if holder is None else [holder])):
        name = ctx if ctx in run.plans or state is None else state.planned_as(ctx)
        if run.epoch == head.epoch and name in run.plans:
            return Waiting.of(run, run.plans[name].metadata)
    return None


def last_plans(store: BookmarkStore, job: str, head: Head) -> LastPlans:
    """Return the plan that listed each context last.

    A run item that can't be read is skipped; `doctor` names it.
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
                told[ctx] = run.plans[name]
                break
    return told


def shown(entry: PlanEntry | None) -> dict[str, Any]:
    """Return what a plan tells of a position: `gaps` and `newest_partition`, where it does."""
    if entry is None:
        return {}
    gaps, newest = shown_gaps(entry.stats), entry.file_metadata.newest_partition
    return {**({} if gaps is None else {"gaps": gaps}), **({} if newest is None else {NEWEST_PARTITION: newest})}
