"""What `upstream()` reads is what was written: the table of docs/reference/round_trips.md is what comes out."""

# ruff: noqa: S608 - the rows of these tests are written as SQL

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.spark.session import SPARK_ERRORS
from tests.spark.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

DOC = Path(__file__).parents[2] / "docs" / "reference" / "round_trips.md"
EXACT, NOT_WRITTEN, NOT_READ, OTHER = "exact", "not written", "not read", "**not exact**"

TEXTS = ["a", "", None, " lead", "trail ", "  ", 'q"q', '"', '""', "back\\", 'back\\"q', "\\", "a,b", ",", "#c", "é"]
TEXTS += ["\t", "null", "NULL", "\\N", "NaN", "'", "-", "<a>&amp;</a>", "]]>", "\u2028", "😀"]
LINES = ["a\nb", "\n", " \n ", "a\n", "\nb"]
RETURNS = ["a\r\nb", "a\rb", "\r"]
CONTROLS = ["\x00x", "\x01", "x\x00"]


def texts(spark: SparkSession, values: list[str | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(values)), "i INT, v STRING")


def values(spark: SparkSession, *rows: str) -> DataFrame:
    return spark.sql(f"SELECT i, v FROM VALUES {', '.join(f'({i}, {row})' for i, row in enumerate(rows))} t(i, v)")


def frames(spark: SparkSession) -> Mapping[str, DataFrame]:
    """Return by kind of column a frame with its odd values."""
    every = [*TEXTS, *LINES, *RETURNS, *CONTROLS]
    return {
        "string": texts(spark, [*TEXTS]),
        "string with line breaks": texts(spark, [*LINES]),
        "string with carriage returns": texts(spark, [*RETURNS]),
        "string with control characters": texts(spark, [*CONTROLS]),
        "one column of strings": spark.createDataFrame(
            [(text,) for text in every if not set(text or "") & {"\r", "\x00", "\x01"}], "v STRING"
        ),
        "a column named `_corrupt_record`": texts(spark, ["x", None]).withColumnRenamed("v", "_corrupt_record"),
        "boolean": values(spark, "true", "false", "NULL"),
        "tinyint, smallint, int, bigint": values(spark, "-128Y", "NULL").selectExpr(
            "i", "v", "CAST(-32768 AS SMALLINT) s", "2147483647 n", "-9223372036854775807L l"
        ),
        "the lowest int": values(spark, "CAST(-2147483648 AS INT)", "NULL"),
        "float, double": spark.createDataFrame(
            [(0.1, 0.1), (float("nan"), float("nan")), (float("inf"), float("-inf")), (-0.0, 1e-310), (None, None)],
            "f FLOAT, v DOUBLE",
        ),
        "decimal": values(spark, "1e-18BD", "12345678901234567890.123456789012345678BD", "0BD", "NULL"),
        "date": values(spark, "DATE'2020-01-01'", "DATE'0001-01-01'", "DATE'9999-12-31'", "NULL"),
        "a date in the gap of October 1582": values(spark, "DATE'1582-10-10'"),
        "timestamp": values(
            spark,
            "TIMESTAMP'2020-01-01 00:00:00.123456'",
            "TIMESTAMP'1800-01-01 00:00:00.000001'",
            "TIMESTAMP'2020-10-25T00:30:00Z'",
            "TIMESTAMP'2020-10-25T01:30:00Z'",
            "TIMESTAMP'9999-12-31 12:59:59.999999'",
            "NULL",
        ),
        "timestamp_ntz": values(spark, "TIMESTAMP_NTZ'2020-01-01 00:00:00.123456'", "NULL"),
        "interval": values(spark, "INTERVAL '1 02:03:04.000005' DAY TO SECOND", "NULL"),
        "binary": values(spark, "X'00FF0A22'", "X''", "NULL"),
        "array": values(
            spark,
            "array('a', NULL, '', 'l\\nb')",
            "array(CAST(NULL AS STRING))",
            "NULL",
            "CAST(array() AS ARRAY<STRING>)",
        ),
        "struct": values(spark, "named_struct('a', 'x', 'b', 1)", "named_struct('a', '', 'b', NULL)", "NULL"),
        "map with text keys": values(spark, "map('a', 'x', 'b', NULL)", "map('', 'y')", "NULL"),
        "map with other keys": values(spark, "map(1, 'x', 2, NULL)", "NULL"),
    }


def rows(frame: DataFrame) -> list[str]:
    """Return rows as text that tells any value from another, also those that Python has no value for."""
    kinds = dict(frame.dtypes)
    exact = {"timestamp": "unix_micros(`{0}`)", "date": "CAST(`{0}` AS STRING)"}
    read = frame.selectExpr(*[exact.get(kinds[name], "`{0}`").format(name) for name in frame.columns])
    return sorted(repr(tuple(row)) for row in read.collect())


def outcome(lake: Lake, name: str, kind: str, frame: DataFrame) -> str:
    """Return what becomes of a frame that one job writes and the job behind it reads."""
    output = re.sub("[^a-z]+", "-", f"{name} {kind}").strip("-")
    try:
        with lake.job(output) as job:
            job.write(frame.coalesce(1), "out", when_empty="publish").format(name).save(lake.path(output))
    except SPARK_ERRORS:
        return NOT_WRITTEN
    try:
        with lake.job(f"{output}.behind") as job:
            read = rows(job.read("raw").upstream(output))
    except SPARK_ERRORS:
        return NOT_READ
    return EXACT if read == rows(frame) else OTHER


def table() -> dict[str, dict[str, str]]:
    """Return by column of the documented table what it says of each kind."""
    text = DOC.read_text().partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    names, *said = [[cell.strip() for cell in line] for line in lines]
    return {name: {line[0]: line[at] for line in said} for at, name in enumerate(names) if at}


@pytest.mark.parametrize("name", ["csv", "json", "xml", "parquet", "orc"])
def test_upstream_reads_what_was_written_as_the_table_says(lake: Lake, name: str) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # where a clock hour comes twice
    found = {kind: outcome(lake, name, kind, frame) for kind, frame in frames(lake.spark).items()}
    assert found == table()[name], "\n".join(f"{kind}: {said}" for kind, said in found.items())


def test_text_is_exact_as_far_as_the_table_says(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    column = "v STRING"
    ours: dict[str, list[str | None]] = {
        "string": [text for text in TEXTS if text is not None],
        "string with line breaks": [*LINES],
        "string with carriage returns": [*RETURNS],
        "string with control characters": [*CONTROLS],
        "one column of strings": [None, "a"],
    }
    alone = {kind: lake.spark.createDataFrame([(text,) for text in each], column) for kind, each in ours.items()}
    with caplog.at_level(logging.WARNING, "airflow_bookmarks"):
        found = {kind: outcome(lake, "text", kind, each) for kind, each in {**frames(lake.spark), **alone}.items()}
    assert found == table()["text"]
    assert "as text, column 'v': NULL is read as empty text, and a line break in a value ends the row" in caplog.text


def test_nine_rows_of_csv_are_nine_rows_behind(lake: Lake) -> None:
    written = texts(lake.spark, ["a", "", None, " b ", "c\nd", 'e"f', "g\\", "h,i", "\r\n"])
    with lake.job("first") as job:
        writer = job.write(written, "out", when_empty="publish").option("header", True)
        writer.csv(lake.path("first"))
    with lake.job("second") as job:
        assert rows(job.read("raw").upstream("first")) == rows(written)
    plain = lake.spark.read.csv(lake.path("first"), header=True, multiLine=True, escape='"')
    assert (plain.columns, plain.count()) == (["i", "v"], 9)


@pytest.mark.parametrize(
    "options",
    [
        {"sep": "\t", "quote": "'"},
        {"nullValue": "-"},
        {"encoding": "UTF-16", "header": True},
        {"escape": "\\", "quoteAll": True},
        {"delimiter": ";", "dateFormat": "dd.MM.yyyy", "TIMESTAMPFORMAT": "yyyy-MM-dd HH:mm:ss.SSSSSSX"},
    ],
)
def test_options_of_the_user_are_obeyed_by_writer_and_reader(lake: Lake, options: dict[str, Any]) -> None:
    rows_of = "(1, 'a b', DATE'2020-01-02', TIMESTAMP'2020-01-02T03:04:05.123456Z'), (2, ' c''d\te\n', NULL, NULL)"
    written = lake.spark.sql(f"SELECT * FROM VALUES {rows_of} t(i, v, d, t)")
    with lake.job("first") as job:
        job.write(written, "out", when_empty="publish").options(**options).csv(lake.path("first"))
    with lake.job("second") as job:
        assert rows(job.read("raw").upstream("first")) == rows(written)
    entry = lake.store.committed_run("first", 1)
    assert entry is not None
    kept = {key.lower(): value for key, value in entry.outputs["out"].facts["options"].items()}
    said = {key.lower(): str(value).lower() if value is True else value for key, value in options.items()}
    assert {key: kept[key] for key in said if key != "quoteall"} == {k: v for k, v in said.items() if k != "quoteall"}


def test_losses_are_warned_of_when_they_are_written(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    all_of_them = frames(lake.spark)
    with caplog.at_level(logging.WARNING, "airflow_bookmarks"):
        outcome(lake, "csv", "binary", all_of_them["binary"])
        outcome(lake, "json", "keys", all_of_them["map with other keys"])
        outcome(lake, "xml", "array", all_of_them["array"])
        outcome(lake, "parquet", "array", all_of_them["array"])
    said = [record.getMessage() for record in caplog.records if ", column " in record.getMessage()]
    assert [message.partition("'v': ")[2] for message in said] == [
        "binary is written as text",
        "a map is read only if its keys are text",
        "an array loses what is NULL in it, and is NULL where it is empty",
    ]


def test_output_of_an_earlier_version_is_read_as_it_was(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no options on record, and its CSV files are those of Spark's defaults."""
    module = "airflow_bookmarks.spark.sinks.round_trip"
    with monkeypatch.context() as patched:
        for name in ("_WRITTEN", "_READ"):
            patched.setattr(f"{module}.{name}", {})
        patched.setattr(f"{module}._writing", lambda *_: {})
        with lake.job("first") as job:
            job.write(texts(lake.spark, ['q"q', "back\\", "x"]), "out", when_empty="publish").csv(lake.path("first"))
    with lake.job("first") as job:
        job.write(texts(lake.spark, ['new"', "new\\", "n\nn"]), "out", when_empty="publish").csv(lake.path("first"))
    read: list[str] = []
    for _ in range(2):  # a layout at a time
        with lake.job("second") as job:
            read += [row.v for row in job.read("raw").upstream("first").collect()]
    assert sorted(read) == sorted(['q"q', "back\\", "x", 'new"', "new\\", "n\nn"])


def test_csv_under_another_quote_comes_back_and_without_one_is_warned_of(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    every = [*TEXTS, *LINES]
    for name, quote in (("single", "'"), ("none", "")):
        with lake.job(name) as job:
            job.write(texts(lake.spark, every), "out").option("quote", quote).csv(lake.path(name))
    with lake.job("behind") as job:
        read = {row.i: row.v for row in job.read("raw").upstream("single").collect()}
    assert read == dict(enumerate(every))
    said = [record.getMessage() for record in caplog.records if ", option " in record.getMessage()]
    assert len(said) == 1
    assert "output 'out' as csv, option quote: nothing is quoted" in said[0]


def test_empty_text_in_a_partition_column_comes_back_as_null(lake: Lake) -> None:
    with lake.job("first") as job:
        job.write(texts(lake.spark, ["a", ""]), "out", when_empty="publish").partitionBy("v").parquet(
            lake.path("first")
        )
    with lake.job("second") as job:
        assert rows(job.read("raw").upstream("first")) == ["(0, 'a')", "(1, None)"]
