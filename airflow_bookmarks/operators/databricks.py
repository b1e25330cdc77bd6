"""DatabricksSubmitRunOperator with a bookmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator

from airflow_bookmarks.airflow_compat import durable_argument
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission, require_waiting

if TYPE_CHECKING:
    from airflow.sdk import Context

_SCRIPT = "spark_python_task"
_PYTHON_TASKS = ("spark_python_task", "notebook_task", "python_wheel_task")


# The provider's `execute` returns nothing, ours the summary.
class BookmarkDatabricksSubmitRunOperator(RemoteSubmission, DatabricksSubmitRunOperator):
    """Submit a one-time run to Databricks, on a cluster of its own, whose script opens a `BookmarkedJob`.

    Takes everything that DatabricksSubmitRunOperator takes and, by name, what `BookmarkedSubmission` and
    `RemoteSubmission` list. The settings become `spark_conf` of the new cluster: Databricks accepts Spark conf only
    with a new cluster, so an existing cluster and serverless compute are refused. Returns the summary of the
    run.

    Args:
        runtime_uri: a wheel, which becomes a library of the run. Databricks accepts no zip, and installs what a wheel
            depends on: an init script with `pip install --no-deps` and `ship_runtime=False` is lighter. (templated)
        durable: as in DatabricksSubmitRunOperator, but off by default: the bookmark knows whether an earlier try has
            committed.

    Example:
        BookmarkDatabricksSubmitRunOperator(
            task_id="clean",
            new_cluster={"spark_version": "17.3.x-scala2.13", "node_type_id": "m5.xlarge", "num_workers": 2},
            spark_python_task={"python_file": "dbfs:/code/clean_flights.py"},
            ship_runtime=False,
        )
    """

    template_fields: Sequence[str] = (
        *DatabricksSubmitRunOperator.template_fields,
        *RemoteSubmission.bookmark_template_fields,
    )
    operator_extra_links = (*DatabricksSubmitRunOperator.operator_extra_links, BookmarkLink())  # type: ignore[assignment]
    has_s3_of_its_own = True
    runtime_suffixes: ClassVar[tuple[str, ...]] = (".whl",)

    def __init__(self, *, durable: bool | None = None, **kwargs: Any) -> None:
        super().__init__(**durable_argument(DatabricksSubmitRunOperator, durable), **kwargs)

    def user_conf(self) -> Any:
        """Return `spark_conf` of the new cluster."""
        part = self._part()
        return None if part is None else (part.get("new_cluster") or {}).get("spark_conf")

    def script_arguments(self) -> Any:
        """Return the parameters of the Python task."""
        part = self._part()
        return None if part is None else (part.get(_SCRIPT) or {}).get("parameters")

    def check_request(self) -> None:
        """Make sure that it is one Python task on a cluster of its own, and that its end is waited for."""
        require_waiting("wait_for_termination", self.wait_for_termination, is_waiting=self.wait_for_termination)
        part = self._part()
        if part is None:
            return
        if not isinstance(part.get("new_cluster"), Mapping):
            raise OptionError(
                "Databricks takes Spark conf, with which a job's settings travel, only with a new_cluster, and there "
                "is none: an existing cluster, or serverless compute. Nothing was read or changed; Spark was not "
                "started. Give new_cluster."
            )
        if not any(kind in part for kind in _PYTHON_TASKS):
            raise OptionError(
                f"none of {', '.join(_PYTHON_TASKS)} is given, and bookmarks are for scripts in Python. Nothing was "
                "read or changed; Spark was not started."
            )
        if self.glue and (_SCRIPT not in part or self.ship_runtime):
            raise OptionError(
                f"glue=True takes a {_SCRIPT} and ship_runtime=False on Databricks: a notebook has no arguments, and a "
                "wheel does not bring awsglue. Nothing was read or changed; Spark was not started. Install the package "
                "by an init script that puts `python -m airflow_bookmarks.glue path` into PYTHONPATH."
            )

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Submit the run by the provider's operator."""
        part = self._part()
        if part is None:
            raise OptionError(
                "json is text: expected a dict, or named arguments. Nothing was read or changed; Spark was not started."
            )
        cluster = {**part["new_cluster"], "spark_conf": {**(part["new_cluster"].get("spark_conf") or {}), **conf}}
        libraries = [*(part.get("libraries") or ()), *([{"whl": runtime_uri}] if runtime_uri is not None else ())]
        ours: dict[str, Any] = {"new_cluster": cluster, **({"libraries": libraries} if libraries else {})}
        if added := self.added_arguments:
            script = part[_SCRIPT]
            ours[_SCRIPT] = {**script, "parameters": [*(script.get("parameters") or ()), *added]}
        if self._tasks() is not None:
            ours = {"tasks": [{**part, **ours}]}
        # By name, because named parameters take precedence over those in `json`, if the provider keeps the two apart.
        if not hasattr(self, "tasks"):
            ours = {"json": {**(self.json or {}), **ours}}
        given = {name: getattr(self, name) for name in ours}
        self._set(ours)
        try:
            return DatabricksSubmitRunOperator.execute(self, context)
        finally:
            self._set(given)

    def _part(self) -> Mapping[str, Any] | None:
        """Return the part of the request that has task and cluster; None for text that is not rendered yet."""
        if isinstance(self.json, str):
            return None
        tasks = self._tasks()
        if tasks is None:
            named = {name: getattr(self, name, None) for name in ("new_cluster", "libraries", *_PYTHON_TASKS[:2])}
            return {**(self.json or {}), **{name: value for name, value in named.items() if value is not None}}
        if len(tasks) != 1 or not isinstance(tasks[0], Mapping):
            raise OptionError(
                f"tasks has {len(tasks)} tasks, and a job's settings go to exactly one. Nothing was read or changed; "
                "Spark was not started. Use one operator per task."
            )
        return tasks[0]

    def _tasks(self) -> list[Any] | None:
        # The provider of Airflow 3.2 keeps no argument by its name: all of them are in `json`.
        tasks: list[Any] | None = getattr(self, "tasks", None)
        return tasks if tasks is not None else (self.json or {}).get("tasks")

    def _set(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            setattr(self, name, value)
