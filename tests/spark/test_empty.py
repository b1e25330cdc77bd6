"""Promise FILE-11: an empty increment has the columns of the source and no rows."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from airflow_bookmarks.core.errors import SchemaUnknownError
from airflow_bookmarks.spark.readers.files import Way
from tests.spark.lake import Lake, columns_of
from tests.thorough import mostly_thorough

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("source", "schema"),
    [
        ("csv", "month STRING, carrier STRING NOT NULL, delay INT"),
        ("csv", "delay INT"),
        ("json", None),
        ("json", "nested STRUCT<a: ARRAY<STRUCT<b: DECIMAL(20, 3)>>, m: MAP<STRING, DATE>>, t TIMESTAMP"),
        ("text", None),
        ("text", "line STRING"),
    ],
)
def test_empty_increment_has_the_columns_of_a_full_one(lake: Lake, source: str, schema: str | None) -> None:
    lake.put("month=01/day=2013-01-01/a", '{"carrier": "AA"}')

    def columns() -> tuple[Any, int]:
        with lake.job() as job:
            reader = job.read("raw").format(source)
            frame = (reader if schema is None else reader.schema(schema)).load(lake.path("raw"))
            return columns_of(frame), frame.count()

    full, rows = columns()
    assert (rows, {"month", "day"} < {name for name, _, _ in full}) == (1, True)
    assert columns() == (full, 0)


@pytest.mark.parametrize("source", mostly_thorough(["csv", "json", "orc", "parquet", "text"], "csv", "parquet"))
def test_hidden_columns_resolve_in_an_empty_increment(lake: Lake, source: str) -> None:
    lake.spark.createDataFrame([("a",)], "value STRING").write.format(source).save(lake.path("raw", "k=1"))
    names, seen = [], []
    for _ in range(2):
        with lake.job() as job:
            frame = job.read("raw").format(source).load(lake.path("raw"))
            seen.append(columns_of(frame))
            names.append([row[0] for row in frame.select("_metadata.file_name").collect()])
    assert [len(each) for each in names] == [1, 0]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("way", ["paths", "directory"])
def test_hidden_columns_resolve_over_several_roots(lake: Lake, way: Way) -> None:
    roots = [lake.path("one"), lake.path("two")]
    for number, name in enumerate(("one", "two", "two"), start=1):
        lake.put(f"{number}.txt", f"{number}", folder=name)
    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).text(roots)
        assert columns_of(frame) == [("value", "string", True)]
        found = frame.select("value", "_metadata.file_name").collect()
    assert sorted(map(tuple, found)) == [("1", "1.txt"), ("2", "2.txt"), ("3", "3.txt")]


def test_hidden_columns_of_several_partitioned_folders_are_refused_by_spark(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in ("one/k=1", "two/k=2"):
        lake.put("a.txt", "a", folder=folder)
    caplog.set_level(logging.INFO, "airflow_bookmarks")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"), lake.job() as job:
        job.read("raw").text([lake.path("one"), lake.path("two")]).select("_metadata.file_name").collect()
    assert "context 'raw': 2 partitioned folders are united, and Spark has no hidden column _metadata" in caplog.text
    with lake.job() as job:
        assert job.read("raw").text([lake.path("one"), lake.path("two")]).count() == 2


@pytest.mark.parametrize("new", [["one/k=3"], []])
def test_hidden_columns_of_several_partitioned_folders_resolve_where_one_has_news_or_none(
    lake: Lake, new: list[str]
) -> None:
    roots = [lake.path("one"), lake.path("two")]
    for folder in ("one/k=1", "two/k=2"):
        lake.put("a.txt", "a", folder=folder)
    with lake.job() as job:
        assert job.read("raw").text(roots).count() == 2
    for folder in new:
        lake.put("b.txt", "b", folder=folder)
    with lake.job() as job:
        names = job.read("raw").text(roots).select("_metadata.file_name").collect()
    assert [row[0] for row in names] == ["b.txt"] * len(new)


def test_schema_of_the_last_run_with_data_outlives_empty_runs(lake: Lake) -> None:
    lake.spark.createDataFrame([(1, "x")], "a INT, b STRING").write.parquet(lake.path("raw", "k=1"))
    seen = []
    for _ in range(3):
        with lake.job() as job:
            frame = job.read("raw").parquet(lake.path("raw"))
            seen.append(columns_of(frame))
    assert seen[0] == seen[1] == seen[2]
    assert lake.head().contexts["raw"].run.number == 1


def test_paused_windows_without_files_have_columns_too(lake: Lake) -> None:
    lake.put("k=1/a.json", '{"a": 1}')
    with lake.job() as job:
        full = columns_of(job.read("raw").json(lake.path("raw")))
    with lake.job(option="pause", from_run=1, to_run=1) as job:
        frame = job.read("raw").json(lake.path("raw"))
        assert (columns_of(frame), frame.count()) == (full, 0)


def test_text_has_its_column_before_anything_is_there(lake: Lake) -> None:
    assert lake.run() == []


@pytest.mark.parametrize("option", ["enable", "pause", "disable"])
def test_no_schema_known_is_an_error_that_asks_for_one(lake: Lake, option: str) -> None:
    with pytest.raises(SchemaUnknownError, match=r"no schema is known.*Nothing was.*\.schema"):  # noqa: SIM117
        with lake.job(option=option) as job:
            job.read("raw").json(lake.path("raw"))


@pytest.mark.parametrize("source", ["csv", "json"])
def test_files_without_content_take_the_columns_of_earlier_runs(lake: Lake, source: str) -> None:
    lake.put("a")
    with pytest.raises(SchemaUnknownError, match=r"no content.*\.schema"), lake.job() as job:
        job.read("raw").format(source).load(lake.path("raw"))
    with lake.job() as job:
        frame = job.read("raw").format(source).schema("a INT").load(lake.path("raw"))
        assert frame.collect() == []
    lake.put("b")
    with lake.job() as job:
        frame = job.read("raw").format(source).load(lake.path("raw"))
        assert (columns_of(frame), frame.collect()) == ([("a", "int", True)], [])
