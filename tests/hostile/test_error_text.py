"""Texts of errors (SEC-8): they may hold what a file says, so none is searched in more time than its length."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.spark.readers.corrupt import _cause, _first_named, is_of_the_way

LONG = 1_000_000  # its square is out of reach
BLANKS = [" ", "\t", "\n", "\u2003"]


@pytest.mark.parametrize("blank", BLANKS)
def test_cause_is_found_in_a_text_of_blanks(blank: str) -> None:
    text = f"it failed\n{blank * LONG}at noon\n  at org.Spark.read(Spark.java:1)\nCaused by: Other"
    assert cause_of(ValueError(text)).endswith("Caused by: Other")


@pytest.mark.parametrize("blank", BLANKS)
def test_file_that_spark_names_is_found_in_a_text_of_blanks(blank: str) -> None:
    blanks = blank * LONG
    text = (
        f"while reading file {blanks}/lake/a.csv{blanks}x{blanks}\nwhile reading file file:///lake/b.csv.  SQLSTATE: 1"
    )
    assert _first_named(text, ["/lake/b.csv"]) == "/lake/b.csv"


@pytest.mark.parametrize("blank", BLANKS)
def test_innermost_cause_is_found_in_a_text_of_blanks(blank: str) -> None:
    blanks = blank * LONG
    assert _cause(f"at first\n{blanks}x{blanks}\n Caused by: java.io.EOFException: no end") == "EOFException: no end"


def test_way_to_a_file_is_told_from_its_content_in_a_text_of_half_names() -> None:
    assert not is_of_the_way("AWS" * LONG)
    assert is_of_the_way(f"{'AWS' * LONG} com.amazonaws.AWSBadRequestException")
