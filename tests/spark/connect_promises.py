"""The main promises on Spark Connect. `test_connect.py` runs them in a process of their own: a session there and a
classic one do not go together. By hand: `SPARK_TESTS_SESSION=connect pytest tests/spark/connect_promises.py`.
"""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import MisuseError, OptionError, SchemaUnknownError, SourceChangedError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import LISTING_KEY, Lake, columns_of, lines_of, rows_of


@pytest.mark.often
def test_second_run_reads_exactly_what_came_since(lake: Lake) -> None:
    lake.put("m=01/a b.txt", "a")
    lake.put("m=01/[é].txt", "b")
    with lake.job() as job:
        job.write(lake.read(job), "out").partitionBy("m").parquet(lake.path("copy"))
        assert lake.visible() == []
    assert rows_of(lake.spark.read.parquet(lake.path("copy"))) == [("a", 1), ("b", 1)]
    lake.put("m=02/c.txt", "c")
    with lake.job() as job:
        assert rows_of(lake.read(job)) == [("c", 2)]
    assert lake.run() == []


def test_settings_come_by_argument_and_by_config(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.run()
    lake.put("b.txt", "b")
    assert lake.run(option="pause") == ["b"]
    assert lake.run(option="disable") == ["a", "b"]
    lake.spark.conf.set("spark.bookmarks.option", "pause")
    try:
        assert lake.run() == ["b"]
        with pytest.raises(OptionError, match="Leave one of them out"):
            lake.job(option="enable")
        lake.spark.conf.set("spark.bookmarks.optoin", "pause")
        with pytest.raises(OptionError, match="unknown setting"):
            lake.job()
    finally:
        lake.spark.conf.unset("spark.bookmarks.option")
        lake.spark.conf.unset("spark.bookmarks.optoin")
    assert lake.run() == ["b"]


def test_no_name_says_that_settings_come_by_argument(lake: Lake) -> None:
    with pytest.raises(OptionError, match="On Spark Connect settings come by argument"):
        BookmarkedJob(lake.spark, store=lake.store)


def test_frame_is_the_plan_at_each_action_though_files_come(lake: Lake) -> None:
    lake.put("a.json", '{"a": 1}')
    with lake.job() as job:
        frame = job.read("raw").json(lake.path("raw"))
        lake.put("b.json", '{"a": 2, "b": "x"}')
        assert rows_of(frame) == [(1,)]
        lake.put("c.json", '{"a": 3}')
        assert rows_of(frame.where("a > 0")) == [(1,)]
    with lake.job() as job:
        assert rows_of(job.read("raw").json(lake.path("raw"))) == [(2, "x"), (3, None)]


def test_folder_is_not_read_as_one(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=r"lists a folder anew at each action.*Leave read_by out"), lake.job() as job:
        lake.read(job, read_by="directory")


def test_empty_increment_has_the_columns_of_a_full_one(lake: Lake) -> None:
    schema = "day STRING, n STRUCT<a: ARRAY<DECIMAL(20, 3)>, m: MAP<STRING, DATE>>, t TIMESTAMP, raw BINARY NOT NULL"
    lake.put("day=01/a.json", '{"n": {"a": [1.5]}}')
    seen: list[Any] = []
    for _ in range(2):
        with lake.job() as job:
            frame = job.read("raw").schema(schema).json(lake.path("raw"))
            seen.append((columns_of(frame), frame.count()))
    assert seen[0][0] == seen[1][0]
    assert [count for _, count in seen] == [1, 0]
    with pytest.raises(SchemaUnknownError), lake.job("other") as job:
        (lake.root / "none").mkdir()
        job.read("raw").json(lake.path("none"))


@pytest.mark.often
def test_chain_of_two_jobs_reads_each_row_once(lake: Lake) -> None:
    for i, word in enumerate(("a/b", "c", "a/b")):
        lake.put(f"{i}.txt", f"line {i}")
        with lake.job("clean") as job:
            frame = lake.read(job).withColumn("word", F.lit(word))
            job.write(frame, "out").partitionBy("word").save(lake.path("clean"))
            assert lines_of(lake.spark.read.schema("value STRING").parquet(lake.path("clean"))) == [
                f"line {n}" for n in range(i)
            ]
        with lake.job("report") as job:
            assert rows_of(job.read("clean").upstream("clean")) == [(f"line {i}", word)]
    with lake.job("report") as job:
        assert rows_of(job.read("clean").upstream("clean")) == []


@pytest.mark.needs("observations")
def test_rows_are_counted_where_an_action_needed_the_frame(lake: Lake) -> None:
    lake.put("a.txt", "a", "b", "c")
    with lake.job() as job:
        used = job.read("used", count_rows=True).text(lake.path("raw"))
        job.read("unused", count_rows=True).text(lake.path("raw"))
        filtered = job.read("filtered", count_rows=True).text(lake.path("raw"))
        job.write(used.where("value > 'a'"), "two").text(lake.path("two"))
        job.write(filtered.where("false"), "none").text(lake.path("none"))
    assert job.summary is not None
    assert {ctx: figures["rows"] for ctx, figures in job.summary["contexts"].items()} == {
        "used": 3,
        "unused": None,
        "filtered": None,
    }
    assert {name: figures["rows"] for name, figures in job.summary["outputs"].items()} == {"two": 2, "none": 0}


@pytest.mark.needs("observations")
def test_what_a_managed_write_read_is_known_whatever_was_looked_at_before(lake: Lake) -> None:
    lake.put("a.txt", *["1"] * 50, "2")
    lake.put("b.txt", *["1"] * 50, folder="part")
    with lake.job() as job:
        raw = (
            job.read("raw", watermark_column="value")
            .files(on_published="delete")
            .schema("value INT")
            .csv(lake.path("raw"))
        )
        part = job.read("part", watermark_column="value").files(on_published="delete").schema("value INT")
        assert not raw.isEmpty()
        job.write(raw.where("value = 1"), "out").parquet(lake.path("out"))
        job.write(part.csv(lake.path("part")).limit(1), "one").parquet(lake.path("one"))
    assert lake.head().contexts["raw"].watermark == "2"
    assert lake.head().contexts["part"].watermark is None
    assert not list((lake.root / "raw").iterdir())
    assert list((lake.root / "part").iterdir())


def test_context_without_an_output_is_named(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.put("a.txt", "a")
    with lake.job("first") as job:
        job.write(lake.read(job), "out").text(lake.path("first"))
        job.read("other").text(lake.path("raw"))
    assert "no output of this run is known to be made from context 'other'" in caplog.text


@pytest.mark.needs("observations")
def test_context_that_no_action_has_read_may_be_an_error(lake: Lake) -> None:
    lake.put("a.txt", "a")
    job = lake.job("second", on_unused="error").begin()
    lake.read(job)
    with pytest.raises(MisuseError, match="no action of this script has read context 'raw'"):
        job.commit()
    job.abort("it was refused")


def test_many_files_are_listed_by_few_tasks_while_the_run_lasts(lake: Lake) -> None:
    for i in range(40):
        lake.put(f"{i:02}.txt", str(i))
    before = lake.spark.conf.get(LISTING_KEY)
    with lake.job() as job:
        frame = lake.read(job)
        assert lake.spark.conf.get(LISTING_KEY) == "8"
        assert frame.count() == 40
    assert lake.spark.conf.get(LISTING_KEY) == before
    job = lake.job().begin()
    job.abort("a test")
    assert lake.spark.conf.get(LISTING_KEY) == before


def test_exception_commits_nothing(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(ZeroDivisionError), lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        raise ZeroDivisionError("a test")
    assert (lake.head().run_number, lake.visible()) == (0, [])
    assert lake.run() == ["a"]


def test_file_overwritten_under_the_run_stops_it(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(SourceChangedError, match="Run it again"), lake.job() as job:
        lines_of(lake.read(job))
        lake.put("a.txt", "a", "b")
    assert lake.run() == ["a", "b"]


@pytest.mark.often
def test_overwrite_and_dynamic_overwrite_replace(lake: Lake, tmp_path: Path) -> None:
    for version, days in ((1, "xy"), (2, "yz")):
        for day in days:
            lake.put(f"{version}{day}.txt", day)
        with lake.job() as job:
            frame = lake.read(job).select(F.lit(version).alias("version"), F.col("value").alias("day"))
            for name, how in (("all", "static"), ("part", "dynamic")):
                writer = job.write(frame, name).mode("overwrite").partitionBy("day")
                writer.option("partitionOverwriteMode", how).save(lake.path(name))
    read = lake.spark.read.schema("version INT, day STRING")
    assert rows_of(read.parquet(lake.path("all"))) == [(2, "y"), (2, "z")]
    assert rows_of(read.parquet(lake.path("part"))) == [(1, "x"), (2, "y"), (2, "z")]
