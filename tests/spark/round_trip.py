"""What becomes of the values that one job writes and the job behind it reads, and the table that says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.spark.features import SPARK_ERRORS
from tests.spark.lake import Lake

DOC = Path(__file__).parents[2] / "docs" / "reference" / "round_trips.md"
XML = pytest.param("xml", marks=pytest.mark.needs("xml"))
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


def expected_of(lake: Lake, name: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return what the table says of a format, but for what this Spark refuses to write without a bookmark as well."""
    not_written = [kind for kind, said in found.items() if said == NOT_WRITTEN]
    return table()[name] | {kind: NOT_WRITTEN for kind in not_written if _is_refused(lake, name, kind)}


def _is_refused(lake: Lake, name: str, kind: str) -> bool:
    try:
        frames(lake.spark)[kind].write.format(name).save(lake.path("refused", name, kind))
    except SPARK_ERRORS:
        return True
    return False


def table() -> dict[str, dict[str, str]]:
    """Return by column of the documented table what it says of each kind."""
    text = DOC.read_text().partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    names, *said = [[cell.strip() for cell in line] for line in lines]
    return {name: {line[0]: line[at] for line in said} for at, name in enumerate(names) if at}
