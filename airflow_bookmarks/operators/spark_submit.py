"""SparkSubmitOperator with a bookmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_bookmarks.airflow_compat import durable_argument
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.hooks.database import connection_environment
from airflow_bookmarks.operators.task.remote_submission import joined
from airflow_bookmarks.operators.task.submission import BookmarkedSubmission
from airflow_bookmarks.operators.task.submit_arguments import PY_FILES_CONF

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context


# The provider's `execute` returns nothing, ours the summary.
class BookmarkSparkSubmitOperator(BookmarkedSubmission, SparkSubmitOperator):  # type: ignore[misc]
    """Submit a Spark application whose script opens a `BookmarkedJob`: it reads what no earlier run has read.

    Takes everything that SparkSubmitOperator takes and, by name, what `BookmarkedSubmission` lists: `bookmark_job`,
    `bookmark_option`, `bookmark_from`, `bookmark_to`, `bookmark_upstream`, `bookmark_upstream_until`,
    `bookmark_on_conflict`, `bookmark_on_unused`, `bookmark_on_clear`, `skip_when_empty`, `on_empty`, `conf_for`,
    `bookmarks_conn_id`, `ship_runtime`, `glue`. Returns one plain dict: job, run number, epoch, watermarks and counts
    of the run (numbers that other jobs compare are text). With the option `enable` success means: committed and
    published.

    Args:
        bookmark_databases: ids of Airflow connections that the script names as `conn:<id>`. The driver gets their
            logins in its environment, and nowhere else. With deploy mode cluster the driver is on another machine:
            there `spark.bookmarks.access.<id>` in `conf` says where it finds them. (templated)
        durable: as in SparkSubmitOperator, but off by default.

    Raises:
        OptionError: `bookmark_databases` is no list of ids; with deploy mode cluster, when the task runs.

    Example:
        BookmarkSparkSubmitOperator(task_id="clean", application="clean_flights.py", bookmark_option="enable")
    """

    template_fields: Sequence[str] = (
        *SparkSubmitOperator.template_fields,
        *BookmarkedSubmission.bookmark_template_fields,
        "bookmark_databases",
    )

    def __init__(self, *, bookmark_databases: Sequence[str] = (), durable: bool | None = None, **kwargs: Any) -> None:
        if isinstance(bookmark_databases, str) or not all(isinstance(each, str) for each in bookmark_databases):
            raise OptionError(
                f"bookmark_databases={bookmark_databases!r}: expected a list of ids of Airflow connections. Nothing "
                "was read or changed."
            )
        # A durable task keeps the id of its Spark job, and a task that is cleared after success finds it finished and
        # submits nothing: "rewind the bookmark, then clear the task" would succeed and do nothing. What a retry may
        # spare, the bookmark itself knows better: whether the earlier try has committed.
        super().__init__(**durable_argument(SparkSubmitOperator, durable), **kwargs)
        self.bookmark_databases = bookmark_databases

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Submit by the provider's operator."""
        given = self.conf, self.py_files, self.application_args
        self._hook = None  # made anew with the conf of this try
        self.conf = dict(conf)
        if added := self.added_arguments:
            self.application_args = [*(self.application_args or ()), *added]
        if runtime is not None:
            # --py-files hides those of the conf, which would else be there.
            self.py_files = joined(self.py_files or conf.get(PY_FILES_CONF), str(runtime))
        try:
            # Not by super(): what comes next after the bookmark's part is the provider's, whose execute submits.
            return SparkSubmitOperator.execute(self, context)
        finally:
            # A later execution of this object finds the user's values, without the settings of this try.
            self.conf, self.py_files, self.application_args = given

    @property
    def driver_exit_code(self) -> int | None:
        """That of the driver, which spark-submit passes on where the driver runs beside it: not in cluster mode."""
        return self._hook.exit_code if isinstance(self._hook, _SubmitHook) else None

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        task = self._task
        if task is None:  # killed before it began
            return hook
        is_cluster = _deploy_mode(hook) == "cluster"
        task.check_place(is_cluster=is_cluster)
        if not is_cluster:
            logins = connection_environment(self.bookmark_databases)
            return _SubmitHook(hook, {**task.hook.credentials_environment(), **logins})
        if self.bookmark_databases:
            raise OptionError(
                f"bookmark_databases={list(self.bookmark_databases)!r} and the deploy mode is cluster: the driver runs "
                "on another machine, and a login would have to stand on the command line. Nothing was read or changed; "
                "Spark was not started. Leave it out, and let conf say where the driver finds the login: "
                f"spark.bookmarks.access.{self.bookmark_databases[0]}=aws-secret:NAME, file:/PATH or env:NAME."
            )
        return hook


class _SubmitHook(SparkSubmitHook):
    """The provider's hook, with more in the environment of the submit process than the worker has.

    Not by its `env_vars`: with YARN and Kubernetes those become `--conf` on the command line, for all to see.
    """

    def __init__(self, made: SparkSubmitHook, environment: Mapping[str, str]) -> None:
        # The provider's constructor takes thirty arguments, which only its operator knows: what it made is taken over.
        vars(self).update(vars(made))
        self._submit_environment = environment

    @property
    def exit_code(self) -> int | None:
        """That of spark-submit where it has failed, as a shell has it: 137 of one that was killed by signal 9."""
        code = None if self._submit_sp is None else self._submit_sp.returncode
        return (code if code > 0 else 128 - code) if code else None

    def _build_spark_submit_command(self, application: str) -> list[str]:
        command = super()._build_spark_submit_command(application)
        if self._submit_environment:
            self._env = {**(self._env or {}), **self._submit_environment}
        return command


def _deploy_mode(hook: SparkSubmitHook) -> str:
    mode = hook._connection["deploy_mode"] or hook._conf.get("spark.submit.deployMode") or "client"
    return str(mode)
