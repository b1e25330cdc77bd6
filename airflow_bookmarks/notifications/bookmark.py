"""The notifier: calls other notifiers once for each change in a job's health."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from airflow.sdk import BaseNotifier, Context

from airflow_bookmarks.core.errors import JobUnknownError, OptionError
from airflow_bookmarks.core.job import airflow_job_name, check_name
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.notifications.callback import Callback, call, callbacks_of
from airflow_bookmarks.notifications.health import OK, Subject, news, standings
from airflow_bookmarks.notifications.notification_log import NotificationRecord

if TYPE_CHECKING:
    from airflow_bookmarks.notifications.health import Health, News
    from airflow_bookmarks.operators.task.task_config import TaskConfig
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class BookmarkNotifier(BaseNotifier):
    """Check the health of a job, and call other notifiers if it has changed since the last notification.

    Use it for both `on_failure_callback` and `on_success_callback`: a problem is reported once, however often the task
    fails with it, and its end once. To learn of lag, put it on a task that runs often.

    The called notifiers find `bookmark` in their template context: job, subject, about (the source or upstream, else
    None), state, before (the last reported state), message, is_recovery. One that raises is called again next time.

    Args:
        on: what to report: "health" (the one state of the job, as the page shows it: FAILED, STUCK, LATE and so on),
            "lag" (LAGGING, STALLED, STOPPED), "expectation" (a failed `job.expect`), "upstream" (it was rewound or
            replayed below what the job has read).
        notify: a notifier, or several, which count as one.
        job: name of a job, or several; default: the job of the task, or the virtual shards of its share. Each shard of
            a sharded job is a job of its own here. Required for a callback of a DAG. (templated)
        recovery: whether to also report the end of a problem.
        name: distinguishes several notifiers for one job.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.

    Raises:
        OptionError: `on` is empty or unknown, or `notify` is empty.

    Example:
        told = BookmarkNotifier(on=["expectation", "upstream"], notify=SlackNotifier(text="{{ bookmark.message }}"))
        BookmarkSparkSubmitOperator(..., on_failure_callback=told, on_success_callback=told)
    """

    def __init__(
        self,
        *,
        on: Sequence[Subject],
        notify: Callback | Sequence[Callback],
        job: str | Sequence[str] | None = None,
        recovery: bool = True,
        name: str = "default",
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
    ) -> None:
        super().__init__()
        self.on = tuple(on)
        self.callbacks = callbacks_of(notify)
        self.job = job
        self.recovery = recovery
        self.name = check_name("notifier", name)
        self.bookmarks_conn_id = bookmarks_conn_id
        unknown = [subject for subject in self.on if subject not in get_args(Subject)]
        if unknown or not self.on or isinstance(on, str):
            raise OptionError(f"on={on!r}: expected some of {', '.join(map(repr, get_args(Subject)))}, as a list.")

    def notify(self, context: Context) -> None:
        """Check the jobs, and report what has changed."""
        store = BookmarkHook(self.bookmarks_conn_id).get_conn()
        for job in self._bookmarks(store, context):
            try:
                self._tell(store, job, context)
            except JobUnknownError as error:
                self.log.info("bookmark notifier: %s There is nothing to tell.", error)

    def _bookmarks(self, store: BookmarkStore, context: Context) -> list[str]:
        """Return the keys of the jobs to look at; a sharded one is looked at by its virtual shards."""
        # Rendered here and not as a template field: those are overwritten in place, and one notifier serves many tasks.
        given = self.render_template(self.job, context)
        if given is None:
            return [key_of(store, check_name("job", job)) for job in _own(context)]
        keys = [key_of(store, check_name("job", job)) for job in ([given] if isinstance(given, str) else given)]
        return [bookmark for key in keys for bookmark in (shards_of(store, key) or [key])]

    def _tell(self, store: BookmarkStore, job: str, context: Context) -> None:
        told = NotificationRecord(self.name, job)
        before = told.read()
        now = standings(store, job, self.on)
        known = self._known(before, now)
        if known != before:
            told.write(known)
        for one in news(known, now):
            if self.recovery or not one.is_recovery:
                call(self.callbacks, one, context)
            # After the call: what could not be sent is sent the next time.
            known = _noted(known, one)
            told.write(known)

    def _known(self, before: dict[str, str], now: Sequence[Health]) -> dict[str, str]:
        """Return what was reported, without entries of sources that the job no longer reads."""
        keys = {standing.key for standing in now}
        return {key: state for key, state in before.items() if key in keys or key.split(" ")[0] not in self.on}


def _noted(known: dict[str, str], one: News) -> dict[str, str]:
    rest = {key: state for key, state in known.items() if key != one.standing.key}
    return rest if one.standing.state in (OK, None) else {**rest, one.standing.key: one.standing.state}


def _own(context: Context) -> list[str]:
    """Return the bookmarks of the task: that of its job, or those of the virtual shards of its share."""
    ti, task = context["ti"], cast("Any", context.get("task"))
    map_index = -1 if ti.map_index is None else ti.map_index
    if not hasattr(task, "task_config"):
        return [airflow_job_name(ti.dag_id, ti.task_id, map_index)]
    task_config: TaskConfig = task.task_config()
    return task_config.bookmarks_of(task_config.job_of(ti.dag_id, ti.task_id, map_index))
