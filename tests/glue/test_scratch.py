"""Rows that a run fixes for its own use disappear with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.job import Job
from airflow_bookmarks.glue.run import current_run

pytestmark = pytest.mark.spark


def test_rows_lie_below_the_temporary_folder_until_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    job = Job(spark)
    job.init("nightly orders", {"TempDir": str(tmp_path / "temp")})
    path = current_run(spark).staging_path("relationalize root")
    spark.range(3).write.parquet(path)
    assert path.startswith(str(tmp_path / "temp"))

    job.commit()

    assert list((tmp_path / "temp").rglob("*.parquet")) == []


def test_without_a_temporary_folder_this_machine_keeps_them(spark: SparkSession) -> None:
    run = current_run(spark)
    path = run.staging_path("rows")
    spark.range(3).write.parquet(path)
    assert spark.read.parquet(path).count() == 3

    run.release()

    assert not Path(path).parent.exists()
