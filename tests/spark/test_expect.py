"""Promises of `job.expect` in a script (RUN-13)."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import ExpectationError, OptionError
from airflow_bookmarks.lifecycle.inspect.runs import history
from tests.spark.lake import Lake


def test_failed_expectation_publishes_nothing_and_says_so_in_the_history(lake: Lake) -> None:
    lake.put("a.txt", "a", "")
    failed = r"expectation failed: no empty lines\. Nothing was committed"
    with pytest.raises(ExpectationError, match=failed), lake.job() as job:
        lines = lake.read(job)
        job.write(lines, "out").text(lake.path("copy"))
        job.expect(lambda: lines.count() == 2, "two lines")
        job.expect(lines.where("value = ''").isEmpty(), "no empty lines")
    (row,) = history(lake.store, "copy", with_open=True)
    assert "no empty lines" in row["error"]
    assert (lake.visible(), lake.head().run_number) == ([], 0)
    assert lake.run() == ["", "a"]


def test_expectation_that_the_script_catches_still_blocks_the_commit(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(ExpectationError, match="at the end of the block"), lake.job() as job:
        lake.read(job)
        with suppress(ExpectationError):
            job.expect(False, "raised at the end of the block")
    assert lake.head().run_number == 0


def test_column_and_frame_are_refused_because_they_are_neither_true_nor_false(lake: Lake) -> None:
    lake.put("a.txt", "a")
    frame = lake.spark.read.text(lake.path("raw"))
    conditions: list[Any] = [F.col("value") == "a", frame, lambda: frame.where("value = 'a'")]
    refused = r"of Spark, which is not true or false before an action.*isEmpty"
    for condition in conditions:
        with pytest.raises(OptionError, match=refused), lake.job() as job:
            job.expect(condition, "all lines are a")
