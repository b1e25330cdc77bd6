"""Promises of sequences in names, of gaps and of touched files, in a script."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_bookmarks.core.errors import OptionError, UnmatchedError
from tests.spark.lake import Lake, lines_of

PARTS = r"part-(?P<seq>\d+)"


def test_script_reads_by_the_sequence_of_names_and_shows_how_far_it_is(lake: Lake) -> None:
    for number in (10, 9, 12):
        lake.put(f"part-{number}.txt", str(number))
    with lake.job() as job:
        assert lines_of(lake.read(job, sequence=PARTS)) == ["10", "12", "9"]
    assert job.watermark("raw") == "12"
    lake.put("part-3.txt", "3")
    with lake.job() as job:
        assert lines_of(lake.read(job, sequence=PARTS)) == ["3"]
    assert job.summary is not None
    figures = job.summary["contexts"]["raw"]
    assert (figures["watermark_from"], figures["watermark_to"]) == ("12", "12")
    assert figures["gaps"] == {
        "unit": "number", "of": PARTS, "missing": 6, "first": "3", "last": "12", "ranges": ["4..8", "11"],
        "more_ranges": 0, "lost": 0,
    }  # fmt: skip


def test_pause_shows_gaps_and_moves_no_watermark(lake: Lake) -> None:
    lake.put("part-1.txt", "1")
    with lake.job() as job:
        lake.read(job, sequence=PARTS)
    lake.put("part-3.txt", "3")
    with lake.job(option="pause") as job:
        assert lines_of(lake.read(job, sequence=PARTS)) == ["3"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["gaps"]["ranges"] == ["2"]
    assert lake.head().contexts["raw"].watermark == "1"


def test_bounded_batches_take_the_lowest_numbers_first(lake: Lake) -> None:
    for number in (10, 9, 100, 8):
        lake.put(f"part-{number}.txt", str(number))
    read: list[list[str]] = []
    for _ in range(2):
        with lake.job() as job:
            read.append(lines_of(lake.read(job, sequence=PARTS, max_files=2)))
    assert read == [["8", "9"], ["10", "100"]]


def test_name_that_does_not_match_fails_the_script_and_nothing_moves(lake: Lake) -> None:
    lake.put("part-1.txt", "1")
    lake.run()
    before = lake.state()
    lake.put("other.txt", "x")
    with pytest.raises(UnmatchedError, match=r"1 file\(s\).*other\.txt"), lake.job() as job:
        lake.read(job, sequence=PARTS)
    assert lake.state() == before
    with lake.job() as job:
        assert lines_of(lake.read(job, sequence=PARTS, on_unmatched="skip")) == []
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"unmatched": 1}


def test_missing_days_of_a_partition_column_are_told_where_asked(lake: Lake) -> None:
    for day in ("2013-01-30", "2013-02-01"):
        lake.put(f"day={day}/a.txt", day)
    with lake.job() as job:
        lake.read(job, gaps=True)
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["gaps"]["ranges"] == ["2013-01-31"]


def test_what_can_not_be_is_refused_before_anything_is_read(lake: Lake) -> None:
    lake.put("part-1.txt", "1")
    lake.run("up")
    with lake.job() as job:
        with pytest.raises(OptionError, match="one named group"):
            lake.read(job, sequence=r"part-(\d+)")
        with pytest.raises(OptionError, match="no etags"):
            lake.read(job, on_touch="ignore", late_after=timedelta(days=1))
        with pytest.raises(OptionError, match="sequence: an option of files"):
            job.read("up").files(sequence=PARTS).upstream("up")
        assert lines_of(lake.read(job, on_touch="reprocess")) == ["1"]
