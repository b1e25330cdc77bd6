"""Promises FILE-1 to FILE-6, OPT-2: each format is read once, and options pass through."""

from __future__ import annotations

import os
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_bookmarks.core.errors import OverwrittenError
from tests.spark.lake import Lake, columns_of, lines_of, rows_of
from tests.thorough import mostly_thorough

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

FLIGHTS = "carrier STRING, delay INT"
SELF_DESCRIBING = ("parquet", "orc")


def land(lake: Lake, name: str, source: str, rows: list[tuple[str, int]]) -> None:
    """Add one file of `rows` to the raw folder, in the format `source`."""
    scratch = lake.path("scratch", name)
    frame = lake.spark.createDataFrame(rows, FLIGHTS)
    if source == "text":
        frame = frame.selectExpr("concat(carrier, ' ', delay) AS value")
    frame.coalesce(1).write.format(source).option("header", "true").save(scratch)
    part = next(path for path in (lake.root / "scratch" / name).iterdir() if path.name.startswith("part-"))
    part.rename(lake.root / "raw" / f"{name}.{source}")


@pytest.mark.parametrize("source", mostly_thorough(["csv", "json", "text", "parquet", "orc"], "csv", "parquet"))
def test_second_run_reads_exactly_what_came_since(lake: Lake, source: str) -> None:
    def run() -> list[tuple[Any, ...]]:
        with lake.job() as job:
            reader = job.read("flights").format(source).option("header", True)
            if source in ("csv", "json"):
                reader = reader.schema(FLIGHTS)
            return rows_of(reader.load(lake.path("raw")))

    def expected(*rows: tuple[str, int]) -> list[tuple[Any, ...]]:
        return [(f"{carrier} {delay}",) for carrier, delay in rows] if source == "text" else list(rows)

    land(lake, "a", source, [("AA", 1)])
    land(lake, "b", source, [("BA", 2), ("BA", 3)])
    assert run() == expected(("AA", 1), ("BA", 2), ("BA", 3))
    land(lake, "c", source, [("CA", 4)])
    assert run() == expected(("CA", 4))
    assert run() == []
    assert lake.state() == (3, 3, 3, {"flights": 2})


def test_options_of_the_format_pass_through(lake: Lake) -> None:
    lake.put("a.csv", "carrier;delay", "'A;A';NA", "B;2")
    with lake.job() as job:
        frame = (
            job.read("flights")
            .format("CSV")
            .schema(FLIGHTS)
            .option("header", True)
            .options(sep=";", quote="'", nullValue="NA", comment=None)
            .load(lake.path("raw"))
        )
        assert rows_of(frame) == [("A;A", None), ("B", 2)]


def test_name_of_an_option_is_one_in_any_case_and_the_last_wins(lake: Lake) -> None:
    lake.put("a.csv", "AA,1", "BA,2")
    with lake.job() as job:
        reader = job.read("flights").schema(FLIGHTS).option("header", False).option("HEADER", True)
        assert len(rows_of(reader.option("header", False).csv(lake.path("raw")))) == 2


def test_shortcuts_take_what_sparks_take(lake: Lake) -> None:
    lake.put("a.csv", "AA|1", folder="csv")
    lake.put("a.json", '{"carrier": "AA", "delay": 1}', folder="json")
    lake.put("a.txt", "AA 1", folder="text")
    lake.spark.createDataFrame([("AA", 1)], FLIGHTS).coalesce(1).write.parquet(lake.path("parquet"))
    lake.spark.createDataFrame([("AA", 1)], FLIGHTS).coalesce(1).write.orc(lake.path("orc"))
    with lake.job() as job:
        frames = [
            job.read("csv").csv(lake.path("csv"), FLIGHTS, sep="|", header=None),
            job.read("json").json([lake.path("json")], schema=FLIGHTS),
            job.read("load").load(lake.path("json"), "json", FLIGHTS, multiLine=False),
            job.read("parquet").parquet(lake.path("parquet")),
            job.read("orc").orc(lake.path("orc")),
        ]
        assert [rows_of(frame) for frame in frames] == [[("AA", 1)]] * 5
        assert rows_of(job.read("text").text(lake.path("text"), wholetext=True)) == [("AA 1\n",)]


def test_inferred_schema_is_that_of_the_planned_files(lake: Lake) -> None:
    lake.put("a.json", '{"carrier": "AA", "delay": 1}')
    with lake.job() as job:
        assert columns_of(job.read("flights").json(lake.path("raw"))) == [
            ("carrier", "string", True),
            ("delay", "bigint", True),
        ]


def test_file_with_an_older_time_is_still_read(lake: Lake) -> None:
    lake.put("new.txt", "new")
    lake.run()
    late = lake.put("late.txt", "late")
    os.utime(late, (1_000_000_000, 1_000_000_000))
    assert lake.run() == ["late"]


def test_overwritten_file_is_read_again_whole_or_as_asked(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.run()
    lake.put("a.txt", "a", "b")
    with lake.job(option="pause") as job:
        assert lines_of(lake.read(job, on_overwrite="ignore")) == []
    with pytest.raises(OverwrittenError, match="Nothing was read"), lake.job() as job:
        lake.read(job, on_overwrite="error")
    assert lake.run() == ["a", "b"]


def test_hidden_and_temporary_names_are_not_input_and_are_counted(lake: Lake) -> None:
    lake.put("a.txt", "a")
    for name in ("_SUCCESS", ".a.txt.crc", "_temporary/0/b.txt", "c.txt._COPYING_"):
        lake.put(name, "hidden")
    summary = lake.copy()
    assert (summary["contexts"]["raw"]["files"], summary["contexts"]["raw"]["skipped"]) == (1, {"hidden": 4})
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a"]


def test_hidden_file_that_is_named_is_no_input_either_because_spark_reads_no_row_of_it(lake: Lake) -> None:
    hidden = lake.put("_a.txt", "a")
    with lake.job() as job:
        assert lines_of(job.read("raw").text(str(hidden))) == []
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"hidden": 1}


def test_read_returns_only_when_the_plan_is_stored_so_a_later_file_is_the_next_runs(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job)
        lake.put("b.txt", "b")
        assert lines_of(frame) == ["a"]
    assert lake.run() == ["b"]


def test_session_conf_is_as_before_after_a_read(lake: Lake) -> None:
    key = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    lake.put("a.txt", "a")
    lake.run()
    assert lake.spark.conf.get(key, None) is None
    lake.spark.conf.set(key, "77")
    lake.run()
    assert lake.spark.conf.get(key) == "77"


def test_corrupt_file_is_an_error_also_where_the_session_would_leave_it_out(lake: Lake) -> None:
    lake.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    lake.put("a.parquet", "no parquet at all")
    with pytest.raises((PySparkException, Py4JError), match=r"a\.parquet"), lake.job() as job:
        job.read("raw").schema("a INT").parquet(lake.path("raw")).collect()
    assert lake.head().run_number == 0
