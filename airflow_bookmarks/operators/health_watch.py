"""The operator that watches the health of all jobs: it notifies of each change once, and sends gauges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.notifications.callback import Callback, call, callbacks_of
from airflow_bookmarks.notifications.health import OK, Health, News, health_message, news
from airflow_bookmarks.notifications.notification_log import WATCHED, NotificationRecord

if TYPE_CHECKING:
    from airflow_bookmarks.lifecycle.health.listed import JobHealth


class BookmarkHealthWatchOperator(BaseOperator):
    """Look at the health of all jobs of a connection, and call notifiers for each job whose health has changed.

    Run it every few minutes, in a DAG of its own with `max_active_runs=1`. A problem is reported once, however long it
    lasts, and its end once. What was reported is kept in one Airflow Variable. It costs one query for the index of the
    jobs and one request for each hundred; no folder is listed.

    Each look also sends gauges by Airflow's metrics: how many jobs are in each state, and the state and lag of each.

    The called notifiers find `bookmark` in their template context, as those of `BookmarkNotifier` with `on=["health"]`.
    If one raises, the task fails with its error; a retry reports what is left.

    Args:
        notify: a notifier of Airflow, or several, which count as one.
        recovery: whether to also report the end of a problem.
        name: distinguishes several watches of one connection.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.

    Returns:
        `jobs`: how many there are; `states`: how many are in each state; `told`: the jobs that were reported.

    Raises:
        OptionError: `notify` is empty.

    Example:
        BookmarkHealthWatchOperator(task_id="watch", notify=SlackNotifier(text="{{ bookmark.message }}"))
    """

    def __init__(
        self,
        *,
        notify: Callback | Sequence[Callback],
        recovery: bool = True,
        name: str = "default",
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.callbacks = callbacks_of(notify)
        self.recovery = recovery
        self.name = check_name("notifier", name)
        self.bookmarks_conn_id = bookmarks_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Look at all jobs, send the gauges, and report what has changed since the last look."""
        from airflow_bookmarks.lifecycle.health.listed import health_of_all
        from airflow_bookmarks.operators.task import metrics

        store = BookmarkHook(self.bookmarks_conn_id).get_conn()
        jobs = health_of_all(store)
        metrics.measure_health(jobs, store.namespace)
        told = self._tell(jobs, context)
        return {"jobs": len(jobs), "states": dict(Counter(job.state for job in jobs)), "told": told}

    def _tell(self, jobs: Sequence[JobHealth], context: Context) -> list[str]:
        record = NotificationRecord(self.name, self.bookmarks_conn_id, WATCHED)
        before = record.read()
        known = {job.job: before[job.job] for job in jobs if job.job in before}
        if known != before:  # some were deleted, or renamed: nobody is waiting for their end
            record.write(known)
        told = []
        for one in changes(known, jobs):
            if self.recovery or not one.is_recovery:
                call(self.callbacks, one, context)
                told.append(one.standing.job)
            # After the call: what could not be sent is sent the next time.
            known = noted(known, one)
            record.write(known)
        return told


def changes(told: Mapping[str, str], jobs: Sequence[JobHealth]) -> list[News]:
    """Return what has changed since the last report, the worst first; `told` is the reported trouble of each job.

    Example:
        >>> from airflow_bookmarks.lifecycle.health.listed import JobHealth
        >>> late = JobHealth("flights", "LATE", 3, True, "silent for 2 d")
        >>> [one.before for one in changes({}, [late])], changes({"flights": "LATE"}, [late])
        (['OK'], [])
    """
    found: list[News] = []
    for job in jobs:
        state = job.state if job.is_trouble else OK
        message = health_message(job.job, job.state, job.reason, job.since if job.is_trouble else None)
        standing = Health(job.job, "health", None, state, message)
        found += news({standing.key: told[job.job]} if job.job in told else {}, [standing])
    return found


def noted(told: Mapping[str, str], one: News) -> dict[str, str]:
    """Return what was reported of each job, after one more report."""
    rest = {job: state for job, state in told.items() if job != one.standing.job}
    return rest if one.is_recovery else {**rest, one.standing.job: str(one.standing.state)}
