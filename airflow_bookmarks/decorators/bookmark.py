"""`@task.bookmark`: a function that works with Spark in the task's own process, with a bookmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.decorator import task_decorator_factory

from airflow_bookmarks.airflow_compat import has_pyspark_operator
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow.sdk.bases.decorator import TaskDecorator


def bookmark_task(
    python_callable: Callable[..., Any] | None = None, multiple_outputs: bool | None = None, **kwargs: Any
) -> TaskDecorator:
    """Make a task of a function that reads and writes with Spark, in the task's own process, within a bookmarked run.

    The function gets `spark`, the session, and `job`, an open `BookmarkedJob`, if it has parameters of these names. The
    run is committed and published when it returns; an exception commits nothing. The task returns the summary of the
    run, as the operators do; what the function returns is the XCom `returned`.

    Args:
        conn_id: an Airflow connection of the type `spark_connect` (the session is remote) or `spark` (its master);
            default: a local master. (templated)
        config_kwargs: Spark conf of the session. (templated)
        kwargs: the arguments of `BookmarkedSubmission` (`bookmark_job`, `bookmark_option`, ...) and those of any task.

    Example:
        @task.bookmark(conn_id="spark_connect_default", bookmark_job="flights.clean")
        def clean(spark, job):
            flights = job.read("flights").schema(FLIGHTS).csv("s3a://lake/raw/flights")
            job.write(flights.where("delay > 15"), "late").parquet("s3a://lake/late")
    """
    if not has_pyspark_operator():
        raise OptionError(
            "@task.bookmark needs the PySparkOperator of the Spark provider, which the installed one does not have. "
            "Nothing was read or changed. Install apache-airflow-providers-apache-spark 5.5 or later, or submit a "
            "script with BookmarkSparkSubmitOperator."
        )
    from airflow_bookmarks.decorators.operator import RETURNED, BookmarkDecoratedOperator

    if multiple_outputs:
        raise OptionError(
            "multiple_outputs=True: the task returns the summary of its run. Nothing was read or changed. Leave it "
            f"out; what the function returns is the XCom {RETURNED!r}."
        )
    return task_decorator_factory(
        python_callable=python_callable,
        # Set explicitly, not left to the annotation of the function: the task always returns the summary.
        multiple_outputs=False,
        decorated_operator_class=BookmarkDecoratedOperator,
        **kwargs,
    )
