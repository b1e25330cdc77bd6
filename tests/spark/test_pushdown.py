"""Promise PERF-8: a bookmarked read keeps Spark's column pruning, pushed filters and partition filters, both ways."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.spark.lake import Lake, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def plan_of(frame: DataFrame) -> str:
    """Return the physical plan as Spark shows it."""
    with redirect_stdout(io.StringIO()) as shown:
        frame.explain("formatted")
    return shown.getvalue()


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_columns_are_pruned_and_filters_pushed(lake: Lake, way: Any) -> None:
    def add(*rows: tuple[str, int, int]) -> None:
        frame = lake.spark.createDataFrame(list(rows), "carrier STRING, delay INT, month INT")
        frame.write.mode("append").partitionBy("month").parquet(lake.path("raw"))

    add(("AA", 1, 1), ("BA", 20, 2))
    with lake.job() as job:
        job.read("flights").parquet(lake.path("raw"))
    add(("CA", 30, 1), ("DA", 40, 2), ("EA", 5, 2))
    with lake.job() as job:
        flights = job.read("flights", read_by=way).parquet(lake.path("raw"))
        late = flights.where((F.col("month") == 2) & (F.col("delay") > 10)).select("delay")
        plan = plan_of(late)
        assert "ReadSchema: struct<delay:int>" in plan
        assert "GreaterThan(delay,10)" in next(line for line in plan.splitlines() if "PushedFilters" in line)
        assert "month" in next(line for line in plan.splitlines() if "PartitionFilters" in line)
        assert "Batched: true" in plan
        assert rows_of(late) == [(40,)]


def test_files_outside_of_the_plan_are_pruned_before_they_are_opened(lake: Lake) -> None:
    for i in range(5):
        lake.put(f"old{i}.txt", "old")
    lake.run()
    lake.put("new.txt", "new")
    with lake.job() as job:
        frame = lake.read(job, read_by="directory")
        assert "file_path" in plan_of(frame)
        assert frame.rdd.getNumPartitions() == 1
        files = frame.select("_metadata.file_name").distinct()
        assert rows_of(files) == [("new.txt",)]
