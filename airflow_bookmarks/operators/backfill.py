"""The operator that takes jobs back with everything downstream of them; the rules are those of the command line."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.cli.backfill import plan_in_lines
from airflow_bookmarks.cli.output.values import WARNING
from airflow_bookmarks.core.errors import (
    JobUnknownError,
    NameInvalidError,
    OptionError,
    RunUnknownError,
)
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.rules.audit import check_reason
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.backfill.carry_out import carry_out
from airflow_bookmarks.lifecycle.backfill.plan import BackfillPlan, plan_backfill, roots_at
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.changes.series import ChangeSeries, change_of

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

# What a retry can't mend. A job that is held, or a store that does not answer, are left to Airflow's retries.
_FINAL = (JobUnknownError, NameInvalidError, OptionError, RunUnknownError)


class BookmarkBackfillOperator(BaseOperator):
    """Take jobs back with everything downstream of them, each by its own transaction, upstream first.

    A try that follows one which was stopped goes on with the jobs that are left: those that went back already stay as
    they are by now, even where they have run since.

    Args:
        job: name of a job, or names of several that go back to one point. (templated)
        to: the last run to keep: a run number, a run id, a time with a zone (the last run that had committed by then;
            for several jobs this) or `watermark:VALUE`. Default: back to before the first run. (templated)
        reason: why; recorded with the author and the time in each job. (templated)
        clean: also remove what the undone runs published, of all jobs; their next runs do it, and it can't be undone.
        downstream: take what reads the jobs along, at any distance. Default True.
        leave: readers that stay as they are, and with them what reads only those. (templated)
        keep: jobs whose output stays in spite of `clean`. (templated)
        force: take jobs back that a run holds; that run is fenced. Default: the task fails, and its retry tries again.
        dry_run: change nothing and return the plan.
        cost_per_hour: what an hour of a run costs, in any currency: the plan, in the log too, says what the runs after
            it cost.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.

    Returns:
        A plain dict: `by_job` what was done to each job, `dag_runs` the DAGs to trigger now, in order.

    Raises:
        AirflowFailException: a retry can't help: a wrong argument, or an unknown job or run.
        ChangeRefusedError: a job can't go back now; nothing was changed. BackfillStoppedError: some went back; the
            retry goes on.

    Example:
        BookmarkBackfillOperator(task_id="again", job="flights.clean", to="{{ params.day }}", reason="bad delivery")
    """

    template_fields: Sequence[str] = ("job", "to", "reason", "leave", "keep")
    operator_extra_links: Collection[BaseOperatorLink] = (BookmarkLink(),)
    ui_color = "#e8f0e4"

    def __init__(
        self,
        *,
        job: str | Sequence[str],
        reason: str,
        to: str | int | None = None,
        clean: bool = False,
        downstream: bool = True,
        leave: Sequence[str] = (),
        keep: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        cost_per_hour: float | None = None,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.to = to
        self.reason = reason
        self.clean = clean
        self.downstream = downstream
        self.leave = leave
        self.keep = keep
        self.force = force
        self.is_dry_run = dry_run
        self.cost_per_hour = cost_per_hour
        self.bookmarks_conn_id = bookmarks_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the plan, and carry it out; see the class."""
        hook = BookmarkHook(self.bookmarks_conn_id)
        try:
            return self._execute(hook, context)
        except _FINAL as error:
            raise AirflowFailException(str(error)) from error

    def _execute(self, hook: BookmarkHook, context: Context) -> dict[str, Any]:
        check_reason("a backfill", self.reason)
        store, series = hook.get_conn(), ChangeSeries.of(context, self.retries or 0)
        plan = self._plan(store, ())
        done = [step.job for step in plan.steps if change_of(store, step.job, series) is not None]
        if done:  # by a try before this one
            plan = self._plan(store, done)
        told = plan.as_dict(cost_per_hour=self.cost_per_hour, shown=hidden if hook.hides_state else dict)
        for line in plan_in_lines(told):
            log.log(logging.WARNING if line.startswith(WARNING) else logging.INFO, "backfill: %s", line)
        if self.is_dry_run:
            return told
        return carry_out(store, plan, reason=self.reason, who=series.mark).as_dict()

    def _plan(self, store: BookmarkStore, done: Collection[str]) -> BackfillPlan:
        names = [self.job] if isinstance(self.job, str) else list(self.job)
        roots = roots_at(
            store,
            [check_name("job", name) for name in names],
            None if self.to is None else str(self.to),
            clean=self.clean,
        )
        return plan_backfill(
            store,
            roots,
            downstream=self.downstream,
            leave=self.leave,
            keep=self.keep,
            force=self.force,
            done=done,
        )
