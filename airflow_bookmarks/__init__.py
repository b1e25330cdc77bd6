"""Bookmarks for Spark jobs that Airflow runs: each input read once, state in DynamoDB.

Airflow imports this module while it reads its own configuration, and the Spark driver imports it from a zip. So it
loads nothing by itself: a name is imported when it is first used.

Example:
    from airflow_bookmarks import BookmarkedJob, open_store
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 - a driver gets the package as a zip, which asks for no Python
    raise ImportError(
        f"airflow_bookmarks needs Python 3.11 or later, and this is {sys.version.partition(' ')[0]} ({sys.executable})."
        " Nothing was read or changed. Name another Python for the driver: spark.pyspark.python, or on YARN "
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON."
    )

from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.shard import ranges, shard_names, shards
    from airflow_bookmarks.hooks.bookmark import BookmarkHook
    from airflow_bookmarks.operators.params import bookmark_arguments, bookmark_params
    from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
    from airflow_bookmarks.sensors.bookmark import BookmarkSensor
    from airflow_bookmarks.spark.job import BookmarkedJob
    from airflow_bookmarks.store.bookmark_store import open_store

__all__ = [
    "BookmarkHook",
    "BookmarkSensor",
    "BookmarkSparkSubmitOperator",
    "BookmarkedJob",
    "__version__",
    "bookmark_arguments",
    "bookmark_params",
    "open_store",
    "ranges",
    "shard_names",
    "shards",
]

_MODULE_OF = {
    "BookmarkHook": "airflow_bookmarks.hooks.bookmark",
    "BookmarkSensor": "airflow_bookmarks.sensors.bookmark",
    "BookmarkSparkSubmitOperator": "airflow_bookmarks.operators.spark_submit",
    "BookmarkedJob": "airflow_bookmarks.spark.job",
    "bookmark_arguments": "airflow_bookmarks.operators.params",
    "bookmark_params": "airflow_bookmarks.operators.params",
    "open_store": "airflow_bookmarks.store.bookmark_store",
    "ranges": "airflow_bookmarks.core.rules.shard",
    "shard_names": "airflow_bookmarks.core.rules.shard",
    "shards": "airflow_bookmarks.core.rules.shard",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
