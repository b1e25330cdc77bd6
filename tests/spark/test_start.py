"""Promises of `start` (RUN-25) and of bounds on the age of files (FILE-12, FILE-13) in a script."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, UnknownRunsError
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, columns_of, lines_of, reader_of, rows_of

FIRST = datetime.fromtimestamp(1_700_000_000, UTC)  # the time of the first file that a lake is given


def test_job_that_starts_now_has_the_columns_of_what_it_does_not_read(lake: Lake) -> None:
    lake.put("day=1/a.json", '{"n": 1}')
    with lake.job(start="now") as job:
        frame = job.read("raw").json(lake.path("raw"))
        assert columns_of(frame) == [("n", "bigint", True), ("day", "int", True)]
        assert frame.count() == 0
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"before_start": 1}
    lake.put("day=2/b.json", '{"n": 2}')
    with lake.job(start="now") as job:
        assert rows_of(job.read("raw").json(lake.path("raw"))) == [(2, 2)]


def test_start_may_be_a_time_and_come_from_the_operator(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.put("b.txt", "b")
    lake.spark.conf.set("spark.bookmarks.start", (FIRST + timedelta(seconds=1)).isoformat())
    assert lake.run("by_setting") == ["b"]
    assert lake.run("by_both", start=FIRST + timedelta(seconds=1)) == ["b"]
    with pytest.raises(OptionError, match=r"start=.*Leave one of them out"):
        lake.job(start=FIRST)
    lake.spark.conf.unset("spark.bookmarks.start")
    with pytest.raises(OptionError, match=r"start='yesterday': expected 'beginning', 'now', or a time"):
        lake.job(start="yesterday")
    assert lake.run("by_none") == ["a", "b"]


def test_late_and_settling_files_are_left_and_counted(lake: Lake) -> None:
    lake.put("late.txt", "late")
    for _ in range(3):
        lake.put("new.txt", "new")
    young = lake.put("young.txt", "young")
    os.utime(young)
    with lake.job() as job:
        frame = lake.read(job, late_after=timedelta(days=20_000), settle=timedelta(days=1))
        assert lines_of(frame) == ["late", "new"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"settling": 1}
    with lake.job("other") as job:
        assert lines_of(lake.read(job, late_after=timedelta(days=1))) == ["late", "new", "young"]
    lake.put("later.txt", "too late")
    with lake.job("other") as job:
        assert lines_of(lake.read(job, late_after=timedelta(days=1))) == []
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"late": 1}


@pytest.mark.parametrize("bound", [{"late_after": timedelta(days=1)}, {"settle": timedelta(minutes=1)}])
def test_bounds_are_refused_for_an_upstream(lake: Lake, bound: dict[str, Any]) -> None:
    lake.put("a.txt", "a")
    lake.copy("up")
    with pytest.raises(OptionError, match=f"{next(iter(bound))}: an option of files"), lake.job("down") as job:
        reader_of(job, "up", **bound).upstream("up")


@pytest.mark.seldom
def test_lost_store_with_create_begins_no_second_time_in_silence(lake: Lake) -> None:
    store = f"sqlite:///{lake.root.parent}/own.db?create=true"
    lake.put("a.txt", "a")

    def copy(mode: str = "append", **options: Any) -> None:
        with BookmarkedJob(lake.spark, "own", store=store) as job:
            job.write(lake.read(job), "out", **options).mode(mode).text(lake.path("own"))

    copy()
    (lake.root.parent / "own.db").unlink()
    with pytest.raises(UnknownRunsError, match="Was the store lost"):
        copy()
    assert lines_of(lake.spark.read.text(lake.path("own"))) == ["a"]
    with pytest.raises(OptionError, match="on_unknown_runs"):
        copy(on_unknown_runs="ignore")
    copy("overwrite")
    assert lines_of(lake.spark.read.text(lake.path("own"))) == ["a"]
