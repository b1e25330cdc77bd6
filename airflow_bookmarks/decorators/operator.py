"""The operator behind `@task.bookmark`. It is apart from the decorator because some Spark providers lack its base."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk.bases.decorator import DecoratedOperator

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.operators.task.submission import BookmarkedSubmission

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context
    from pyspark.sql import SparkSession

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_GIVEN = ("spark", "job")
RETURNED = "returned"  # the key of the XCom with what the function returned; `return_value` is the summary


# The two halves disagree about what `execute` returns; ours returns the summary.
class BookmarkDecoratedOperator(BookmarkedSubmission, DecoratedOperator, PySparkOperator):  # type: ignore[misc]
    """The operator behind `@task.bookmark`; see `decorators.bookmark.bookmark_task`."""

    custom_operator_name = "@task.bookmark"
    template_fields: Sequence[str] = (
        *PySparkOperator.template_fields,
        *BookmarkedSubmission.bookmark_template_fields,
    )
    _spark: SparkSession | None = None

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        conn_id: str | None = None,
        config_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("bookmark_shard") is not None:
            raise OptionError(
                "@task.bookmark makes one run of one bookmark, and bookmark_shard is of several. Nothing was read or "
                "changed. Submit a script that loops over BookmarkedJob(...).shards()."
            )
        if kwargs.get("glue"):
            raise OptionError(
                "glue=True is for scripts, and @task.bookmark calls a function. Nothing was read or changed. Submit "
                "the script by an operator."
            )
        if "ship_runtime" in kwargs:
            raise OptionError("ship_runtime is for a driver elsewhere; @task.bookmark is one itself. Leave it out.")
        # Of the task's own process nothing has to be sent anywhere.
        kwargs["ship_runtime"] = False
        super().__init__(
            kwargs_to_upstream={"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs},
            python_callable=_with_defaults(python_callable),
            op_args=op_args,
            op_kwargs=op_kwargs,
            conn_id=conn_id,
            config_kwargs=config_kwargs,
            **kwargs,
        )

    def user_conf(self) -> Any:
        """Return the conf of the session."""
        return self.config_kwargs

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Open a session by the provider's operator, and call the function within a run."""
        task = self._task
        if task is None:
            raise RuntimeError("submit is called by execute")
        task.check_place(is_cluster=False)
        given = self.config_kwargs, self.python_callable, self.op_kwargs
        self.config_kwargs = {str(key): str(value) for key, value in conf.items()}
        self.python_callable = self._within_run(given[1], task.hook.open_store(), context)
        try:
            return PySparkOperator.execute(self, context)
        finally:
            self._spark = None
            self.config_kwargs, self.python_callable, self.op_kwargs = given

    def on_kill(self) -> None:
        """Interrupt what Spark works on, and fence the try."""
        try:
            self._interrupt()
        finally:
            super().on_kill()

    def _within_run(self, function: Callable[..., Any], store: BookmarkStore, context: Context) -> Callable[..., Any]:
        """Return the function as Airflow calls it: inside the run, with the session and the job that it asks for."""
        wanted = [name for name in _GIVEN if name in inspect.signature(function).parameters]

        @functools.wraps(function)  # its signature says which parts of the context it gets
        def call(*args: Any, **kwargs: Any) -> Any:
            # Not above: the DAG processor, and workers without Spark, import this module.
            from airflow_bookmarks.spark.job import BookmarkedJob

            self._spark = spark = kwargs.pop("spark")
            kwargs.pop("job", None)
            # The store as opened here: its credentials are those of the connection, and are in no conf.
            with BookmarkedJob(spark, store=store) as job:
                given = {"spark": spark, "job": job}
                returned = function(*args, **{**kwargs, **{name: given[name] for name in wanted}})
                if returned is not None:
                    # Before the commit: a value that can't be kept fails the run, and does not get lost behind it.
                    context["ti"].xcom_push(key=RETURNED, value=returned)
            return None

        return call

    def _interrupt(self) -> None:
        spark = self._spark
        if spark is None:
            return
        from airflow_bookmarks.spark.features import interrupt

        interrupt(spark)


def _with_defaults(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function be called without session and job when the DAG file is read: both come when it runs.

    Raises:
        OptionError: they stand before a parameter that the DAG file gives.
    """
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(default=None) if parameter.name in _GIVEN else parameter
        for parameter in signature.parameters.values()
    ]
    try:
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
    except ValueError as error:
        raise OptionError(
            f"@task.bookmark: {function.__name__}{signature} has `spark` or `job`, which the task gives, before what "
            "the DAG file gives. Nothing was read or changed. Put them last."
        ) from error
    return function
