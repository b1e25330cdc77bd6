"""Promises of `job.state` in a script (RUN-19)."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import MisuseError
from tests.spark.lake import Lake, lines_of


@pytest.mark.seldom
def test_cursor_is_kept_with_the_rows_that_were_fetched_up_to_it(lake: Lake) -> None:
    for number in range(3):
        with lake.job() as job:
            cursor = job.state("cursor")
            assert cursor.get(0) == number
            job.write(lake.spark.createDataFrame([(str(number),)], "value STRING"), "out").text(lake.path("copy"))
            cursor.set(number + 1)
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["0", "1", "2"]
    assert job.summary is not None
    assert job.summary["contexts"] == {}
    with pytest.raises(MisuseError, match="this run is over"):
        cursor.set(9)


def test_exception_and_pause_leave_the_state(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        lake.read(job)
        job.state("cursor").set("first")
    with pytest.raises(ZeroDivisionError), lake.job() as job:
        job.state("cursor").set("second")
        raise ZeroDivisionError("a test")
    with lake.job(option="pause") as job:
        assert job.state("cursor").get() == "first"
        job.state("cursor").set("third")
    with lake.job() as job:
        assert job.state("cursor").get() == "first"


def test_state_before_begin_says_how_to_begin(lake: Lake) -> None:
    with pytest.raises(MisuseError, match="has not begun"):
        lake.job().state("cursor")
