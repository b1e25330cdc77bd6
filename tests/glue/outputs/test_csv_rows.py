"""Values in files are the same in a direct write and a staged one, and CSV has no signs that only we know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.outputs.write import write_options
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import SPARK_ERRORS
from tests.glue.outputs.conftest import Script

STAGED_AND_DIRECT = pytest.mark.parametrize("option", ["job-bookmark-enable", "job-bookmark-disable"])


@contextmanager
def run_of(script: Script, option: str) -> Iterator[None]:
    script.begin(option)
    yield
    script.commit()


def write(script: Script, rows: list[Any], schema: str, format: str = "csv", **options: Any) -> None:
    frame = script.frame(rows, schema).toDF().coalesce(1)
    path = {"path": str(script.root / "out"), "partitionKeys": options.pop("partitionKeys", [])}
    write_options(
        script.run,
        frame,
        connection_type="s3",
        connection_options=path,
        format=format,
        format_options=options,
        transformation_ctx="sink",
    )


def text(script: Script) -> str:
    (file,) = [f for f in (script.root / "out").rglob("*-00000-*") if f.is_file() and not f.name.startswith(".")]
    return file.read_bytes().decode()


def consumed(script: Script) -> list[tuple[Any, ...]]:
    """Return what a job behind this one reads."""
    with BookmarkedJob(script.spark, "behind") as job:
        return sorted(map(tuple, job.read("orders").upstream("orders").collect()))


@pytest.mark.seldom
@STAGED_AND_DIRECT
def test_texts_keep_their_spaces_and_quotes(script: Script, option: str) -> None:
    with run_of(script, option):
        write(script, [("  x ", "it's"), ("", None)], "a string, b string", quoteChar="'")

    assert text(script) == "a,b\n  x ,'it''s'\n'',\n"


@pytest.mark.seldom
@STAGED_AND_DIRECT
@pytest.mark.parametrize("format", ["csv", "json"])
def test_times_keep_their_microseconds(script: Script, option: str, format: str) -> None:
    with run_of(script, option):
        write(script, [(datetime(2020, 1, 1, 1, 2, 3, 456789, UTC),)], "t timestamp", format)

    assert ":03.456789" in text(script)


@STAGED_AND_DIRECT
@pytest.mark.parametrize("partition_keys", [[], ["p"]])
def test_null_in_the_only_column_is_a_row_of_empty_text(script: Script, option: str, partition_keys: list[str]) -> None:
    rows = [("x", "p"), (None, "p"), ("", "p"), ('""', "p")]
    with run_of(script, option):
        if partition_keys:
            write(script, rows, "a string, p string", partitionKeys=partition_keys)
        else:
            write(script, [(value,) for value, _ in rows], "a string")

    assert text(script) == 'a\nx\n""\n""\n""""""\n'


@pytest.mark.seldom
def test_consumer_reads_each_row_of_an_only_column(script: Script) -> None:
    with run_of(script, "job-bookmark-enable"):
        write(script, [("x",), (None,), ("",), ('""',)], "a string")

    assert consumed(script) == [("",), ("",), ('""',), ("x",)]


@pytest.mark.seldom
@STAGED_AND_DIRECT
def test_null_in_the_only_column_of_numbers_stays_null(script: Script, option: str) -> None:
    with run_of(script, option):
        write(script, [(1,), (None,)], "a int")

    assert text(script) == 'a\n1\n""\n'
    read = script.spark.read.schema("a int").csv(str(script.root / "out"), header=True).collect()
    assert [row.a for row in read] == [1, None]


# ---- without quotes


@pytest.mark.seldom
@STAGED_AND_DIRECT
def test_without_quotes_values_are_written_as_they_are(script: Script, option: str) -> None:
    rows = [("#1", ' say "hi" ', 1), ("", None, None), ("a,b", "it's \\", -1)]
    with run_of(script, option):
        write(script, rows, "a string, b string, c int", quoteChar=-1, separator="|")

    assert text(script) == 'a|b|c\n#1| say "hi" |1\n||\na,b|it\'s \\|-1\n'


@pytest.mark.seldom
@STAGED_AND_DIRECT
@pytest.mark.parametrize("broken", ["x|y", "x\ny", "x\ry", "|", "\n", "x\0"])
def test_without_quotes_what_would_break_rows_is_an_error(script: Script, option: str, broken: str) -> None:
    script.begin(option)
    with pytest.raises(SPARK_ERRORS, match=r"quoteChar=-1, and a row has .* in the column 'b': "):
        write(
            script,
            [("p", "a", "fine"), ("p", "b", broken)],
            "p string, a string, b string",
            quoteChar=-1,
            separator="|",
            partitionKeys=["p"],
        )

    assert not list((script.root / "out").glob("p=*"))


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_quotes_an_empty_line_is_an_error(script: Script, nothing: str | None) -> None:
    with pytest.raises(SPARK_ERRORS, match="the only column 'a' is null or empty"):
        write(script, [("x",), (nothing,)], "a string", quoteChar=-1)


def test_without_quotes_a_name_that_breaks_the_header_is_an_error(script: Script) -> None:
    with pytest.raises(OptionError, match=r"the name of the column 'a\|b'"):
        write(script, [(1, 2)], "`a|b` int, c int", quoteChar=-1, separator="|")

    write(script, [(1, 2)], "`a|b` int, c int", quoteChar=-1, separator="|", writeHeader=False)
    assert text(script) == "1|2\n"


@pytest.mark.seldom
def test_consumer_reads_rows_without_quotes(script: Script) -> None:
    rows = [("#1", ' say "hi" '), ("b", None)]
    with run_of(script, "job-bookmark-enable"):
        write(script, rows, "a string, b string", quoteChar=-1)

    assert consumed(script) == rows
