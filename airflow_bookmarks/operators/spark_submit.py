"""SparkSubmitOperator with a bookmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.hooks.bookmark import DEFAULT_CONNECTION
from airflow_bookmarks.operators.submission import BookmarkedSubmission, OnClear, OnConflict, check_arguments

if TYPE_CHECKING:
    from airflow.sdk import Context

_ARGUMENTS = (
    "bookmark_from",
    "bookmark_job",
    "bookmark_on_conflict",
    "bookmark_option",
    "bookmark_to",
    "bookmark_upstream",
    "bookmarks_conn_id",
)


class BookmarkSparkSubmitOperator(BookmarkedSubmission, SparkSubmitOperator):
    """Submit a Spark application whose script opens a `BookmarkedJob`: it reads what no earlier run has read.

    Takes everything that SparkSubmitOperator takes, and returns one plain dict: job, run number, epoch, watermarks and
    counts of the run (numbers that other jobs compare are text). With the option `enable` success means: committed and
    published.

    Args:
        bookmark_job: name of the job, the key of its bookmark; default `<dag_id>.<task_id>`, for mapped tasks with the
            map index. (templated)
        bookmark_option: "enable", "pause" or "disable", or Glue's spellings; default: what the connection says, else
            "enable". (templated)
        bookmark_from, bookmark_to: with "pause" only: read again what the runs after FROM up to and including TO have
            read; run numbers or run ids. (templated)
        bookmark_upstream: names of the jobs that the script reads with `.upstream(...)`. (templated)
        bookmark_on_conflict: "fail" (default) when another run holds the job, before Spark starts; or "wait" in the
            driver.
        bookmark_on_clear: what clearing a task does whose run is finished: "replay" (default) reads its stored plan
            again and replaces its output, "skip" succeeds without Spark, "fail" refuses. A retry never replays.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        ship_runtime: send the runtime along with `py_files`; False where the driver's image has the package.
        durable: as in SparkSubmitOperator, but off by default.

    Raises:
        OptionError: an unknown or contradictory argument that holds no template, in the constructor. One that does
            fails the task before Spark starts, without a retry.
        JobBusyError: another run holds the job. NotCommittedError: Spark ended well, and nothing was committed.

    Example:
        BookmarkSparkSubmitOperator(task_id="clean", application="clean_flights.py", bookmark_option="enable")
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        *BookmarkedSubmission.bookmark_template_fields,
    )

    # Each argument by name, and not by **kwargs: Airflow fills from default_args what it finds in this signature.
    def __init__(
        self,
        *,
        bookmark_job: str | None = None,
        bookmark_option: str | None = None,
        bookmark_from: str | int | None = None,
        bookmark_to: str | int | None = None,
        bookmark_upstream: Sequence[str] = (),
        bookmark_on_conflict: OnConflict = "fail",
        bookmark_on_clear: OnClear = "replay",
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        ship_runtime: bool = True,
        durable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        check_arguments(kwargs, _ARGUMENTS)
        # A durable task keeps the id of its Spark job, and a task that is cleared after success finds it finished and
        # submits nothing: "rewind the bookmark, then clear the task" would succeed and do nothing. What a retry may
        # spare, the bookmark itself knows better: whether the earlier try has committed.
        super().__init__(durable=bool(durable), **kwargs)
        self.set_bookmark(
            job=bookmark_job,
            option=bookmark_option,
            from_run=bookmark_from,
            to_run=bookmark_to,
            upstream=bookmark_upstream,
            on_conflict=bookmark_on_conflict,
            on_clear=bookmark_on_clear,
            conn_id=bookmarks_conn_id,
            ship_runtime=ship_runtime,
        )

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]  # the parent returns nothing
        """Submit, and see to it that what was committed is published; return the summary of the run.

        Raises:
            AirflowFailException: what was asked for is wrong (an option, a name, the connection): no retry mends that.
        """
        self._hook = None  # made anew with the conf of this try
        try:
            return self.run_bookmarked(context, super().execute)
        except (OptionError, NameInvalidError) as error:
            raise AirflowFailException(str(error)) from error

    def on_kill(self) -> None:
        """Stop Spark, then fence this try: a driver that outlives spark-submit can't commit any more."""
        try:
            super().on_kill()
        finally:
            self.fence_attempt()

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        bookmarks = self._bookmark_hook
        if bookmarks is None:  # killed before it began
            return hook
        is_cluster = _deploy_mode(hook) == "cluster"
        self.check_place(bookmarks.address, is_cluster=is_cluster)
        if not is_cluster:
            # Its constructor takes thirty arguments, which only the method above knows: hence not a new object.
            hook.__class__ = _SubmitHook
            vars(hook)["submit_environment"] = bookmarks.credentials_environment()
        return hook


class _SubmitHook(SparkSubmitHook):
    """The provider's hook, with more in the environment of the submit process than the worker has.

    Not by its `env_vars`: with YARN and Kubernetes those become `--conf` on the command line, for all to see.
    """

    submit_environment: Mapping[str, str]

    def _build_spark_submit_command(self, application: str) -> list[str]:
        command = super()._build_spark_submit_command(application)
        if self.submit_environment:
            self._env = {**(self._env or {}), **self.submit_environment}
        return command


def _deploy_mode(hook: SparkSubmitHook) -> str:
    mode = hook._connection["deploy_mode"] or hook._conf.get("spark.submit.deployMode") or "client"
    return str(mode)
