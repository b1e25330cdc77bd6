"""A script of Glue that writes: its run, its frames, and what readers see of its targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.job import Job
from airflow_bookmarks.glue.run import GlueRun, current_run


class Script:
    """A script in the making: `begin` is its Job.init, `commit` its Job.commit."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root, self.context = spark, root, GlueContext(spark)
        self._job = Job(self.context)

    @property
    def run(self) -> GlueRun:
        return current_run(self.spark)

    def begin(self, option: str = "job-bookmark-enable", **arguments: Any) -> GlueRun:
        self._job.init("orders", {"job_bookmark_option": option, **arguments})
        return self.run

    def commit(self) -> None:
        self._job.commit()

    def frame(self, rows: list[Any], schema: Any) -> DynamicFrame:
        return DynamicFrame.fromDF(self.spark.createDataFrame(rows, schema), self.context, "frame")

    def seen(self, path: Path | str, format: str = "parquet", **options: Any) -> list[tuple[Any, ...]]:
        """Return what a reader of a folder sees; nothing if it has no files."""
        files = [f for f in Path(path).rglob("*") if f.is_file() and not f.name.startswith((".", "_"))]
        if not [f for f in files if "_bookmarks" not in f.parts]:
            return []
        return sorted(tuple(row) for row in self.spark.read.format(format).options(**options).load(str(path)).collect())


@pytest.fixture
def script(spark: SparkSession, store: object, tmp_path: Path) -> Script:
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?namespace=test")
    return Script(spark, tmp_path)
