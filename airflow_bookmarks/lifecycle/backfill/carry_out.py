"""Carry out the plan of a backfill: each job by a transaction of its own, in the order of the data.

    refuse before anything is changed -> change one job after the other, each with its own event -> stop at the first
    that is refused meanwhile, and say which went back

Between two of them a run may begin. One of a job that has not gone back yet finds its upstream rewound, and decides by
its `on_rewind`; one of a job that has gone back reads again what it is to read again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    BackfillStoppedError,
    BookmarkError,
    ChangeRefusedError,
)
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.lifecycle.backfill.plan import plan_again
from airflow_bookmarks.lifecycle.changes.change import ChangeOutcome, apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.lifecycle.backfill.plan import BackfillPlan
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BackfillOutcome:
    """What a backfill did: the outcome of each job that went back, in order, and the DAGs to trigger now."""

    jobs: Mapping[str, ChangeOutcome]
    unchanged: tuple[str, ...]
    dag_runs: tuple[tuple[str | None, tuple[str, ...]], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for XCom, CLI and notes."""
        done = {job: each.as_dict() for job, each in self.jobs.items()}
        names = ("change", "to_run", "undone_run_count", "files_to_clean", "outputs_to_clean", "epoch", "version")
        return {
            "jobs": len(done),
            "unchanged": list(self.unchanged),
            "undone_run_count": sum(each["undone_run_count"] for each in done.values()),
            "files_to_clean": sum(each["files_to_clean"] for each in done.values()),
            "outputs_to_clean": sum(each["outputs_to_clean"] for each in done.values()),
            "dag_runs": [{"dag_id": dag_id, "jobs": list(jobs)} for dag_id, jobs in self.dag_runs],
            "undo_in_order": list(self.jobs)[::-1],
            "by_job": {job: {name: each[name] for name in names} for job, each in done.items()},
        }


def carry_out(store: BookmarkStore, plan: BackfillPlan, *, reason: str, who: str) -> BackfillOutcome:
    """Take the jobs of a plan back, each at the version that was looked at.

    Args:
        store: the store.
        plan: as `plan_backfill` has made it.
        reason, who: for the audit event of each job.

    Raises:
        OptionError: no reason. ChangeRefusedError: the plan says of a job that it can't go back. ChangedMeanwhileError:
            one of the jobs has changed since. Nothing was changed then.
        BackfillStoppedError: some went back, and another was refused meanwhile.
    """
    check_reason("a backfill", reason)
    check_who(who)
    _check(store, plan)
    made: dict[str, ChangeOutcome] = {}
    wanted = [step for step in plan.steps if not step.stands]
    for step in wanted:
        version = plan.versions[step.job]
        try:
            made[step.job] = apply(
                store,
                step.job,
                step.change,
                reason=reason,
                who=who,
                force=plan.request.force,
                expected_version=version,
            )
        except BookmarkError as error:
            left = [each.job for each in wanted if each.job not in made]
            raise BackfillStoppedError(step.job, tuple(made), left, error) from error
        log.info("bookmark %s: %s, job %d of %d of a backfill", step.job, step.change.kind, len(made), len(wanted))
    unchanged = tuple(step.job for step in plan.steps if step.stands)
    return BackfillOutcome(made, unchanged, plan.dag_runs)


def _check(store: BookmarkStore, plan: BackfillPlan) -> None:
    """Refuse a plan before anything is changed."""
    if plan.refused:
        why = " ".join(plan.refused.values())
        raise ChangeRefusedError(
            f"{len(plan.refused)} of {len(plan.steps)} jobs can't go back, so none did. Nothing was changed. Leave out "
            f"a job (--leave), keep what it published (--keep), or see to it first. {why}"
        )
    # Another reader may have come since, which has no version in this plan.
    plan_again(store, plan.request).check_versions(plan.versions)
