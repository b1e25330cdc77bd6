"""Promise PERF-8: a bookmarked read keeps Spark's column pruning, pushed filters and partition filters, both ways."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, reader_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def plan_of(frame: DataFrame) -> str:
    """Return the physical plan as Spark shows it."""
    with redirect_stdout(io.StringIO()) as shown:
        frame.explain("formatted")
    return shown.getvalue()


def line_of(plan: str, name: str) -> str:
    """Return what the plan says of one property of its scan."""
    return next(line for line in plan.splitlines() if line.startswith(name))


SCHEMA = "carrier STRING, delay INT, gate STRUCT<terminal: INT, number: STRING>, month INT"


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("source", "schema", "way"),
    [
        ("parquet", None, "paths"),
        pytest.param("parquet", None, "directory", marks=pytest.mark.thorough),
        pytest.param("parquet", SCHEMA, "paths", marks=pytest.mark.thorough),
        ("parquet", SCHEMA, "directory"),
        ("orc", None, "paths"),
        pytest.param("orc", None, "directory", marks=pytest.mark.thorough),
    ],
)
def test_columns_are_pruned_and_filters_pushed(lake: Lake, source: str, schema: str | None, way: Any) -> None:
    def add(*rows: tuple[str, int, int]) -> None:
        full = [(carrier, delay, (delay, carrier), month) for carrier, delay, month in rows]
        frame = lake.spark.createDataFrame(full, SCHEMA)
        frame.write.mode("append").partitionBy("month").format(source).save(lake.path("raw"))

    def read(job: BookmarkedJob, **kwargs: Any) -> DataFrame:
        reader = reader_of(job, "flights", **kwargs).format(source)
        return (reader if schema is None else reader.schema(schema)).load(lake.path("raw"))

    lake.spark.conf.set("spark.sql.codegen.wholeStage", True)  # what reads by batches is compiled
    add(("AA", 1, 1), ("BA", 20, 2))
    with lake.job() as job:
        read(job)
    add(("CA", 30, 1), ("DA", 40, 2), ("EA", 5, 2))
    with lake.job() as job:
        flights = read(job, read_by=way)
        late = flights.where((F.col("month") == 2) & (F.col("delay") > 10)).select("delay", "gate.terminal")
        plan = plan_of(late)
        assert line_of(plan, "ReadSchema") == "ReadSchema: struct<delay:int,gate:struct<terminal:int>>"
        assert "GreaterThan(delay,10)" in line_of(plan, "PushedFilters")
        assert "month" in line_of(plan, "PartitionFilters")
        assert ("file_path" in plan) == (way == "directory")
        assert "Batched: true" in plan
        assert rows_of(late) == [(40, 40)]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_csv_parses_only_the_columns_that_are_asked_for(lake: Lake, way: Any) -> None:
    lake.put("a.csv", "AA,1,x")
    lake.run()
    lake.put("b.csv", "BA,20,y")
    with lake.job("other") as job:
        reader = job.read("raw").files(read_by=way).schema("carrier STRING, delay INT, note STRING")
        late = reader.csv(lake.path("raw")).where("delay > 10").select("carrier")
        plan = plan_of(late)
        assert line_of(plan, "ReadSchema") == "ReadSchema: struct<carrier:string,delay:int>"
        assert "GreaterThan(delay,10)" in line_of(plan, "PushedFilters")
        assert rows_of(late) == [("BA",)]


@pytest.mark.needs("listing once")
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
