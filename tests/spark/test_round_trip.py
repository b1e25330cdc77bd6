"""What `upstream()` reads is what was written: the table of docs/reference/round_trips.md is what comes out."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.spark.lake import Lake
from tests.spark.round_trip import (
    CONTROLS,
    LINES,
    RETURNS,
    TEXTS,
    XML,
    expected_of,
    frames,
    outcome,
    rows,
    table,
    texts,
)

# Seldom: each kind of value in each format, of which spark/test_formats.py and test_sinks.py have some.
pytestmark = [pytest.mark.seldom, pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    "name",
    [
        "csv",
        pytest.param("xml", marks=[*XML.marks, pytest.mark.thorough]),
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("json", "parquet", "orc")),
    ],
)
def test_upstream_reads_what_was_written_as_the_table_says(lake: Lake, name: str) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # where a clock hour comes twice
    found = {kind: outcome(lake, name, kind, frame) for kind, frame in frames(lake.spark).items()}
    assert found == expected_of(lake, name, found), "\n".join(f"{kind}: {said}" for kind, said in found.items())


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
    kept = {key.lower(): value for key, value in entry.outputs["out"].stats["options"].items()}
    said = {key.lower(): str(value).lower() if value is True else value for key, value in options.items()}
    assert {key: kept[key] for key in said if key != "quoteall"} == {k: v for k, v in said.items() if k != "quoteall"}


def test_null_that_is_written_as_empty_text_is_read_as_that(lake: Lake) -> None:
    with lake.job("first") as job:
        job.write(texts(lake.spark, [None, "", '""']), "out").option("nullValue", '""').csv(lake.path("first"))
    with lake.job("second") as job:
        assert rows(job.read("raw").upstream("first")) == ["(0, '')", "(1, '')", "(2, '\"\"')"]


def test_losses_are_warned_of_when_they_are_written(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    all_of_them = frames(lake.spark)
    with caplog.at_level(logging.WARNING, "airflow_bookmarks"):
        outcome(lake, "csv", "binary", all_of_them["binary"])
        outcome(lake, "json", "keys", all_of_them["map with other keys"])
        outcome(lake, "parquet", "array", all_of_them["array"])
    said = [record.getMessage() for record in caplog.records if ", column " in record.getMessage()]
    assert [message.partition("'v': ")[2] for message in said] == [
        "binary is written as text",
        "a map is read only if its keys are text",
    ]


@pytest.mark.needs("xml")
def test_losses_of_xml_are_warned_of_when_they_are_written(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "airflow_bookmarks"):
        outcome(lake, "xml", "array", frames(lake.spark)["array"])
    assert "'v': an array loses what is NULL in it, and is NULL where it is empty" in caplog.text


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
