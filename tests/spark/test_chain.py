"""Promises DEP-4 and DEP-15 with Spark: a job reads what another one published, once, as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import (
    OptionError,
    SchemaChangedError,
    SchemaUnknownError,
    SourceChangedError,
    SourceError,
    SourceMissingError,
    UpstreamRewoundError,
)
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.changes.naming import rename
from tests.spark.lake import Lake, columns_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FLIGHTS = "carrier STRING, delay INT, month STRING, day DATE"


def publish(lake: Lake, rows: list[tuple[str, int, str, str]], target: str = "parquet", **options: Any) -> None:
    """Make one run of the upstream `clean`, which writes `rows`."""
    lake.put(f"{len(list((lake.root / 'raw').iterdir()))}.txt", "new")
    with lake.job("clean") as job:
        lake.read(job)
        frame = lake.spark.createDataFrame(rows, "carrier STRING, delay INT, month STRING, day STRING")
        frame = frame.withColumn("day", frame.day.cast("date"))
        writer = job.write(frame, "flights").format(target).partitionBy("month", "day").options(**options)
        writer.save(lake.path("clean"))


def consume(lake: Lake, name: str = "report", **kwargs: Any) -> list[tuple[Any, ...]]:
    with lake.job(name, **kwargs) as job:
        return short(job.read("flights").upstream("clean"))


def short(frame: DataFrame) -> list[tuple[Any, ...]]:
    return rows_of(frame.select("carrier", "delay", "month", frame.day.cast("string")))


FIRST = ("AA", 1, "01", "2013-01-31")
SECOND = ("BA", 2, "02", "2013-02-01")
THIRD = ("CA", 3, "a/b", "2013-02-02")


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("parquet", {}),
        ("csv", {"header": True, "sep": ";", "compression": "gzip"}),
        pytest.param("csv", {}, marks=pytest.mark.thorough),
        pytest.param("json", {}, marks=pytest.mark.thorough),
    ],
)
def test_consumer_reads_each_published_run_once_with_the_written_types(
    lake: Lake, target: str, options: dict[str, Any]
) -> None:
    publish(lake, [FIRST], target, **options)
    assert consume(lake) == [FIRST]
    publish(lake, [SECOND], target, **options)
    publish(lake, [THIRD], target, **options)
    assert consume(lake) == [SECOND, THIRD]
    with lake.job("report") as job:
        empty = job.read("flights").upstream("clean")
        assert (columns_of(empty), empty.count()) == (
            [("carrier", "string", True), ("delay", "int", True), ("month", "string", True), ("day", "date", True)],
            0,
        )
    with lake.job("other") as job:
        assert columns_of(job.read("flights").upstream("clean")) == columns_of(empty)


@pytest.mark.seldom
def test_user_schema_that_names_no_partition_column_gets_them_as_written(lake: Lake) -> None:
    publish(lake, [FIRST], "csv")
    with lake.job("report") as job:
        frame = job.read("flights").schema("name STRING, delay BIGINT").upstream("clean")
        assert [(n, t) for n, t, _ in columns_of(frame)] == [
            ("name", "string"),
            ("delay", "bigint"),
            ("month", "string"),
            ("day", "date"),
        ]
        assert frame.count() == 1


def test_file_that_lies_in_the_target_and_was_not_published_is_not_read(lake: Lake) -> None:
    publish(lake, [FIRST], "csv")
    lake.put("month=01/day=2013-01-31/foreign.csv", "ZZ,9", folder="clean")
    assert consume(lake) == [FIRST]


def test_three_jobs_in_a_row_read_each_row_once(lake: Lake) -> None:
    for rows in ([FIRST], [SECOND, THIRD]):
        publish(lake, rows)
        with lake.job("middle") as job:
            job.write(job.read("flights").upstream("clean"), "same").partitionBy("day").orc(lake.path("middle"))
        with lake.job("last") as job:
            frame = job.read("flights").upstream("middle")
            job.write(frame.select("carrier", "delay", "month", "day"), "same").json(lake.path("last"))
    final = lake.spark.read.schema(FLIGHTS).json(lake.path("last"))
    assert short(final) == [FIRST, SECOND, THIRD]


def test_several_outputs_must_be_told_apart(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job("clean") as job:
        frame = lake.read(job)
        job.write(frame, "good").text(lake.path("good"))
        job.write(frame.selectExpr("length(value) AS n"), "bad").parquet(lake.path("bad"))
    with pytest.raises(OptionError, match=r"several outputs: \['bad', 'good'\].*output="), lake.job("report") as job:
        job.read("x").upstream("clean")
    with pytest.raises(OptionError, match="ever wrote an output 'ugly'"), lake.job("report") as job:
        job.read("x").upstream("clean", output="ugly")
    with lake.job("report") as job:
        assert rows_of(job.read("good").upstream("clean", output="good")) == [("a",)]
        assert rows_of(job.read("bad").upstream("clean", output="bad")) == [(1,)]


@pytest.mark.seldom
def test_paused_consumer_reads_the_same_twice_and_a_window_of_runs_again(lake: Lake) -> None:
    for row in (FIRST, SECOND, THIRD):
        publish(lake, [row])
        if row is not THIRD:
            assert consume(lake) == [row]
    assert consume(lake, option="pause") == [THIRD]
    assert consume(lake, option="pause") == [THIRD]
    assert consume(lake, option="pause", from_run=0, to_run=2) == [FIRST, SECOND]
    assert consume(lake, option="pause", from_run=1, to_run=1) == []
    assert consume(lake, option="disable") == [FIRST, SECOND, THIRD]
    assert consume(lake) == [THIRD]


def test_upstream_that_never_ran_or_never_wrote_is_an_error(lake: Lake) -> None:
    with pytest.raises(SourceMissingError, match=r"upstream 'clean'.*no such bookmark yet"):
        consume(lake)
    with lake.job("clean"):
        pass
    with pytest.raises(SchemaUnknownError, match=r"published no output yet.*\.schema"):
        consume(lake)
    with lake.job("report") as job:
        assert job.read("flights").schema("a INT").upstream("clean").collect() == []


def test_published_file_that_somebody_removed_is_an_error(lake: Lake) -> None:
    publish(lake, [FIRST])
    (lake.root / "clean" / lake.visible("clean")[0]).unlink()
    with pytest.raises(SourceChangedError, match=r"are gone.*Nothing was read"):
        consume(lake)
    assert lake.head("report").run_number == 0


def test_upstream_that_was_rewound_stops_the_consumer_or_takes_it_along(lake: Lake) -> None:
    for row in (FIRST, SECOND):
        publish(lake, [row])
        consume(lake)
    rewind(lake.store, "clean", 1, reason="a test", who="tests")
    with pytest.raises(UpstreamRewoundError, match=r"REWOUND.*went back to run 1"):
        consume(lake)
    publish(lake, [THIRD])
    with lake.job("report") as job:
        assert short(job.read("flights").upstream("clean", on_rewind="rewind")) == [THIRD]


@pytest.mark.seldom
def test_append_target_of_a_consumer_that_goes_back_along_has_each_row_once(lake: Lake) -> None:
    for row in (FIRST, SECOND):
        publish(lake, [row])
        report(lake)
    rewind(lake.store, "clean", 1, reason="a test", who="tests", clean=True)
    publish(lake, [THIRD])
    report(lake, on_rewind="rewind")
    assert short(lake.spark.read.parquet(lake.path("report"))) == [FIRST, THIRD]


def report(lake: Lake, **options: Any) -> None:
    """Append what the consumer has not read to a target of its own."""
    with lake.job("report") as job:
        job.write(job.read("flights").upstream("clean", **options), "report").parquet(lake.path("report"))


def test_upstream_that_the_operator_does_not_declare_is_an_error(lake: Lake) -> None:
    publish(lake, [FIRST])
    lake.spark.conf.set("spark.bookmarks.upstream", "raw, other")
    with pytest.raises(OptionError, match=r"declares bookmark_upstream=\['raw', 'other'\].*Add it there"):
        consume(lake)


def test_upstream_that_is_declared_and_not_read_is_told(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.spark.conf.set("spark.bookmarks.upstream", "clean")
    with lake.job("report"):
        pass
    assert "bookmark report: declared upstream jobs ['clean'] were not read by this run" in caplog.messages


@pytest.mark.seldom
def test_upstream_is_read_up_to_the_run_that_the_operator_names(lake: Lake) -> None:
    for rows in ([FIRST], [SECOND], [THIRD]):
        publish(lake, rows)
    lake.spark.conf.set("spark.bookmarks.upstream_until", '{"clean": 2}')
    assert consume(lake) == [FIRST, SECOND]
    lake.spark.conf.unset("spark.bookmarks.upstream_until")
    assert consume(lake) == [THIRD]


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["clean", "lake.clean"], ids=["by_key", "by_new_name"])
def test_renamed_upstream_is_read_up_to_a_run_under_each_of_its_names(
    lake: Lake, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for rows in ([FIRST], [SECOND], [THIRD]):
        publish(lake, rows)
    rename(lake.store, "clean", "lake.clean", reason="a test", who="ada")
    lake.spark.conf.set("spark.bookmarks.upstream", "clean")
    with lake.job("report") as job:
        assert short(job.read("flights").upstream(name, until={"job": name, "run_number": "2"})) == [FIRST, SECOND]
    assert "were not read by this run" not in caplog.text


@pytest.mark.seldom
def test_bound_that_script_and_operator_say_differently_is_an_error(lake: Lake) -> None:
    publish(lake, [FIRST])
    publish(lake, [SECOND])
    lake.spark.conf.set("spark.bookmarks.upstream_until", '{"clean": 2}')
    with pytest.raises(OptionError, match="Say it in one place"), lake.job("report") as job:
        job.read("flights").upstream("clean", until=1)


def test_bound_on_an_upstream_that_is_not_read_is_told(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.spark.conf.set("spark.bookmarks.upstream_until", '{"clean": 2}')
    with lake.job("report"):
        pass
    assert "bookmark report: declared upstream jobs ['clean'] were not read by this run" in caplog.messages


@pytest.mark.seldom
def test_overwritten_files_are_not_read_and_are_counted(lake: Lake) -> None:
    def overwrite(*rows: tuple[str, str]) -> None:
        lake.put(f"{len(list((lake.root / 'raw').iterdir()))}.txt", "new")
        with lake.job("clean") as job:
            lake.read(job)
            frame = lake.spark.createDataFrame(list(rows), "a STRING, p STRING").coalesce(1)
            writer = job.write(frame, "out").mode("overwrite").partitionBy("p")
            writer.option("partitionOverwriteMode", "dynamic").parquet(lake.path("clean"))

    overwrite(("one", "x"), ("one", "y"))
    overwrite(("two", "x"))
    with lake.job("report") as job:
        assert rows_of(job.read("flights").upstream("clean")) == [("one", "y"), ("two", "x")]
    assert job.summary is not None
    assert job.summary["contexts"]["flights"]["skipped"] == {"replaced": 1}


# ---- runs that were not written alike


def publish_json(lake: Lake, row: dict[str, Any], *columns: str, by: str | None = None) -> None:
    """Make one run of the upstream `up`, which writes these columns of a row (default: all)."""
    lake.put(f"{row['id']}.json", json.dumps(row))
    with lake.job("up") as job:
        frame = job.read("raw").json(lake.path("raw"))
        writer = job.write(frame.select(*columns) if columns else frame, "out")
        (writer if by is None else writer.partitionBy(by)).parquet(lake.path("up"))


def consume_all(
    lake: Lake, name: str = "down", upstream: dict[str, Any] | None = None, **kwargs: Any
) -> tuple[list[str], list[tuple[Any, ...]]]:
    with lake.job(name) as job:
        frame = job.read("up", **kwargs).upstream("up", **(upstream or {}))
        return frame.columns, rows_of(frame)


@pytest.mark.parametrize(("first", "then"), [(None, "month"), ("month", None)])
def test_upstream_that_changes_its_partitions_is_read_in_two_runs(lake: Lake, first: Any, then: Any) -> None:
    publish_json(lake, {"id": 1, "month": 1}, by=first)
    publish_json(lake, {"id": 2, "month": 2}, by=then)
    assert [consume_all(lake) for _ in range(2)] == [(["id", "month"], [(1, 1)]), (["id", "month"], [(2, 2)])]


@pytest.mark.seldom
def test_column_that_only_older_runs_have_is_read_and_then_on_schema_change_decides(lake: Lake) -> None:
    publish_json(lake, {"id": 1, "tail": "x"})
    publish_json(lake, {"id": 2, "tail": "y"}, "id")
    assert consume_all(lake) == (["id", "tail"], [(1, "x")])
    with pytest.raises(SchemaChangedError, match="removed tail: string -> not there"):
        consume_all(lake)
    assert consume_all(lake, on_schema_change="accept") == (["id"], [(2,)])
    assert consume_all(lake, "other", on_schema_change="reset") == (["id"], [(1,), (2,)])


@pytest.mark.seldom
def test_start_from_the_beginning_that_can_not_go_to_the_end_is_an_error(lake: Lake) -> None:
    publish_json(lake, {"id": 1, "month": 1, "tail": "x"})
    assert consume_all(lake)[1] == [(1, 1, "x")]
    publish_json(lake, {"id": 2, "month": 2, "tail": "y"}, "id", "month", by="month")
    before = lake.state("down")
    with pytest.raises(SourceError, match=r"can't be done in one run.*Nothing was committed.*'accept'"):
        consume_all(lake, on_schema_change="reset")
    assert lake.state("down") == before
    assert consume_all(lake, on_schema_change="accept") == (["id", "month"], [(2, 2)])
