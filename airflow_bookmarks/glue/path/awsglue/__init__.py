"""The package that scripts for AWS Glue import; its names come from `airflow_bookmarks.glue`."""

from typing import Any

from airflow_bookmarks.glue.classic import check_classic
from airflow_bookmarks.glue.inventory import absent
from airflow_bookmarks.glue.watermarks import finder

__all__ = ["DynamicFrame"]

check_classic()
finder.install()  # scripts.helpers.watermarks
absent.install()  # gs_now, gs_derived, ...


def __getattr__(name: str) -> Any:
    if name != "DynamicFrame":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # After the check: on Spark Connect this import would fail with an error that says nothing of it.
    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame

    return DynamicFrame
