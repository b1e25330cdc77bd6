"""Advice: the rules on figures that runs have recorded (OBS-8)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.advice.advice import AdviceCode
from airflow_bookmarks.core.advice.folders import advice_on_files
from airflow_bookmarks.core.advice.reads import FileReads, FilesOfRun, Folder
from airflow_bookmarks.core.advice.tables import KeyedRead, RowsOfRun, advice_on_keys
from airflow_bookmarks.core.selection.partition_time import PartitionTime

FIRST_DAY = date(2013, 1, 1)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def folder(text: str) -> Folder:
    """Return a partition as `dt=2013-01-01/hour=05` names it."""
    pairs = (part.partition("=") for part in text.split("/"))
    return tuple((name, value) for name, _, value in pairs)


def run(number: int, *folders: str, **how: Any) -> FilesOfRun:
    """Return a run that read one file of each folder, and knew those of the runs before."""
    read = {folder(each): 1 for each in folders}
    figures: dict[str, Any] = {"goes_on": number > 1, "listed": number, "known": number - 1, "bytes": 100}
    return FilesOfRun(number, len(read), folders=read, **{**figures, **how})


def reads(*runs: FilesOfRun, **how: Any) -> FileReads:
    return FileReads("raw", runs, **how)


def codes(found: FileReads) -> list[AdviceCode]:
    return [each.code for each in advice_on_files(found)]


# ---- depth


@pytest.mark.parametrize(("depth", "found"), [(1, []), (3, []), (4, [AdviceCode.DEEP_PARTITIONS])])
def test_four_partition_columns_are_deep(depth: int, found: list[AdviceCode]) -> None:
    path = "/".join(f"c{at}=x" for at in range(depth))
    assert codes(reads(run(1, path), run(2, path))) == found


def test_files_without_partitions_get_no_advice() -> None:
    assert codes(reads(FilesOfRun(1, 5, 100, {}, listed=90_000, known=80_000), usual=HOUR)) == []


def test_what_is_not_recorded_is_said_so() -> None:
    (found,) = advice_on_files(reads(run(1, "a=1/b=2/c=3/d=4")))
    assert found.cost == (
        "run 1 listed 1 file, 0 of them known, to read 1 file; how many folders is not recorded. How long that took is "
        "not recorded"
    )
    assert found.figures["plan_seconds"] is None
    assert found.figures["folders_listed"] is None


def test_planning_is_said_to_be_of_all_contexts() -> None:
    (found,) = advice_on_files(reads(run(1, "a=1/b=2/c=3/d=4", plan_s=2.0, whole_s=9.0, contexts=3)))
    assert found.cost.endswith("Planning of all 3 contexts, which lists, took 2.0 s of 9.0 s")


# ---- width against schedule


def hourly(**how: Any) -> FileReads:
    return reads(*(run(number, "dt=2013-01-31") for number in (1, 2, 3)), **{"usual": HOUR, **how})


def test_day_is_coarse_for_an_hourly_job() -> None:
    (found,) = advice_on_files(hourly())
    assert found.code is AdviceCode.COARSE_PARTITIONS
    assert "commits every 1 h" in found.evidence
    assert "covers 1 d: 24 runs" in found.evidence
    # The second run saw the file of the first, the third those of both.
    assert found.cost == (
        "runs 1-3 found 3 new files; in the partition that was then the newest, they listed at least 3 files again "
        "that others of them had read"
    )


@pytest.mark.parametrize(
    "how",
    [
        {"usual": DAY},
        {"usual": timedelta(hours=13)},
        {"usual": None},
        {"keeps_files": False},
    ],
)
def test_partition_is_not_coarse(how: dict[str, Any]) -> None:
    assert codes(hourly(**how)) == []


def test_hour_is_not_coarse_for_an_hourly_job() -> None:
    found = reads(*(run(at, f"year=2013/month=1/day=31/hour={at}") for at in (1, 2, 3)), usual=HOUR)
    assert AdviceCode.COARSE_PARTITIONS not in codes(found)


def test_bytes_that_a_group_reads_again_are_counted() -> None:
    runs = (run(1, "dt=2013-01-31"), run(2, "dt=2013-01-31", bytes_again=100, bytes=300))
    (found,) = advice_on_files(reads(*runs, usual=HOUR))
    assert found.cost.endswith("; they read 100 bytes again, 25% of what they read")
    assert found.figures["bytes_read_again"] == 100


def test_batches_of_one_listing_see_nothing_again() -> None:
    runs = [run(1, "dt=2013-01-31"), *(run(at, "dt=2013-01-31", listed=None, known=None) for at in (2, 3))]
    assert codes(reads(*runs, usual=HOUR)) == []


@pytest.mark.parametrize(
    ("columns", "time"),
    [
        ("year=2013/month=1/day=31", ("year", "month", "day")),
        ("region=eu/year=2013/month=1", ("region", "year", "month")[1:]),
        ("year=2013/region=eu/month=1", ("year",)),
        ("dt=2013-01-31/hour=5", ("dt", "hour")),
        ("ds=20130131", ("ds",)),
        ("arrived=2013-01", ("arrived",)),
        ("customer=20130131", None),
        ("dt=current", None),
        ("region=eu", None),
        ("month=1", None),
    ],
)
def test_columns_that_tell_a_time_are_known_by_name_and_value(columns: str, time: tuple[str, ...] | None) -> None:
    found = reads(run(1, columns)).time
    assert (None if found is None else found.columns) == time


# ---- order


def unordered(*places: int, **how: Any) -> FileReads:
    """Return runs of which each reads one new partition, among many that have nothing new."""
    folders = {"folders_listed": 500, "folders_without_new": 499, "listed": 500, "known": 499}
    runs = [run(at, f"id={place}", **folders) for at, place in enumerate(places, 1)]
    return reads(*runs, **{"types": {"id": "int"}, **how})


def test_descending_values_are_told_from_random_ones() -> None:
    (falling,) = advice_on_files(unordered(9, 8, 7, 6))
    (random,) = advice_on_files(unordered(9, 2, 7, 4))
    assert falling.code is random.code is AdviceCode.UNORDERED_PARTITIONS
    assert "values of id descend" in falling.what
    assert "values of id come in no order" in random.what
    assert "3 of 3 new files in 3 runs lie below" in falling.evidence
    assert "1,497 of them without a new file" in falling.cost


def test_values_are_compared_by_their_type() -> None:
    assert codes(unordered(8, 9, 10, 11)) == [AdviceCode.NO_PARTITION_FILTER]  # as text, 10 lies below 9


def test_value_that_is_no_number_of_a_column_of_numbers_has_a_place_too() -> None:
    found = unordered(1).place(folder("id=--5"))
    assert found is not None
    assert found > (unordered(1).place(folder("id=-5")) or ())


@pytest.mark.parametrize("places", [(9, 8, 7), (9, 10, 11, 5, 12)])
def test_few_runs_and_few_late_files_are_no_habit(places: tuple[int, ...]) -> None:
    assert AdviceCode.UNORDERED_PARTITIONS not in codes(unordered(*places))


def test_random_values_of_few_folders_cost_nothing() -> None:
    runs = [run(at, f"region={name}") for at, name in enumerate(("us", "eu", "asia", "eu"), 1)]
    assert codes(reads(*runs)) == []


def test_column_before_the_date_does_not_make_an_order_random() -> None:
    few = {"folders_listed": 500, "folders_without_new": 499}
    days = [run(at, f"region={'ab'[at % 2]}/dt=2013-01-0{at}", **few) for at in range(1, 7)]
    assert codes(reads(*days)) == [AdviceCode.NO_PARTITION_FILTER]


# ---- filter


def unfiltered(known: int, folders: int, **how: Any) -> FileReads:
    figures = {"listed": known + 1, "known": known, "folders_listed": folders + 1, "folders_without_new": folders}
    runs = [run(at, f"dt=2013-01-0{at}", plan_s=4.1, whole_s=5.5, **figures) for at in range(1, 5)]
    return reads(*runs, **how)


def test_source_without_a_filter_says_what_is_listed_for_it() -> None:
    (found,) = advice_on_files(unfiltered(1000, 10))
    assert found.code is AdviceCode.NO_PARTITION_FILTER
    assert found.cost == (
        "runs 2-4 listed 33 folders, 30 of them without a new file, and 3,003 files, 3,000 of them known, to read 3 "
        "files. Planning, which lists, took 12.3 s of 16.5 s"
    )
    assert "partition_time='dt'" in found.action
    assert codes(unfiltered(200, 100)) == [AdviceCode.NO_PARTITION_FILTER]


@pytest.mark.parametrize(
    "found",
    [
        unfiltered(999, 99),
        unfiltered(5000, 500, partition_filter="year = 2013"),
        unfiltered(5000, 500, partition_time=PartitionTime(("dt",))),
        unfiltered(5000, 500, is_narrowed=True),
    ],
)
def test_source_with_a_filter_or_with_little_to_list_gets_no_advice(found: FileReads) -> None:
    assert codes(found) == []


def test_most_of_a_listing_that_is_new_needs_no_filter() -> None:
    runs = [replace(each, listed=9000, known=4000) for each in unfiltered(5000, 10).runs]
    assert codes(reads(*runs)) == []


# ---- any healthy daily job


@st.composite
def daily_jobs(draw: st.DrawFn) -> FileReads:
    """Draw a job that reads each day the files of that day, of three columns at most, fewer than a page of them."""
    has_filter = draw(st.booleans())
    style = draw(
        st.sampled_from(["dt={d}", "year={d:%Y}/month={d:%m}/day={d:%d}", "region={r}/dt={d}", "ds={d:%Y%m%d}"])
    )
    known, runs = draw(st.integers(0, 90)), list[FilesOfRun]()
    for at in range(draw(st.integers(1, 10))):
        day = FIRST_DAY + at * DAY
        regions = draw(st.sets(st.sampled_from("abc"), min_size=1))
        new = {folder(style.format(d=day, r=region)): draw(st.integers(1, 20)) for region in sorted(regions)}
        if at and draw(st.booleans()):  # one file comes late
            new[folder(style.format(d=day - DAY, r="a"))] = 1
        count, more = sum(new.values()), 0 if has_filter else known
        runs.append(
            FilesOfRun(
                at + 1, count, 100 * count, new, at > 0, count + more, more, len(new) + more // 10, more // 10,
            )
        )  # fmt: skip
        known += count
    usual = DAY + draw(st.integers(-90, 90)) * timedelta(minutes=1)
    line = PartitionTime(("dt",)) if has_filter and "dt=" in style else None
    return reads(*runs, usual=usual, partition_time=line, partition_filter="x" if has_filter and not line else None)


@given(daily_jobs())
def test_healthy_daily_job_gets_no_advice(job: FileReads) -> None:
    assert codes(job) == []


# ---- keys


def rows(number: int, without_key: int = 0, count: int = 3, **read: Any) -> RowsOfRun:
    return RowsOfRun(number, KeyedRead(("at", "id"), **read), count, without_key)


def key_codes(*runs: RowsOfRun) -> list[AdviceCode]:
    return [each.code for each in advice_on_keys("orders", runs)]


def test_keys_that_can_not_be_null_and_are_not_named_get_no_advice() -> None:
    assert key_codes() == []
    assert key_codes(*(rows(at) for at in range(1, 9))) == []


def test_nullable_key_says_what_it_has_left_out() -> None:
    (found,) = advice_on_keys("orders", [rows(1, 2, nullable=("at",)), rows(2, 5, nullable=("at",))])
    assert found.code is AdviceCode.NULLABLE_KEY
    assert found.cost.startswith("run 2 left 5 rows out; runs 1-2 left 5 at most")
    assert found.figures["rows_without_key"] == 5


def test_nullable_key_without_a_null_says_so() -> None:
    (found,) = advice_on_keys("orders", [rows(1, nullable=("at",))])
    assert found.cost.startswith("no row was without a value; run 1 left 0 at most")


def test_key_of_a_query_counts_once_a_row_is_left_out() -> None:
    assert key_codes(rows(1, 1)) == [AdviceCode.NULLABLE_KEY]


def moved(number: int, *ids: str, count: int = 3) -> RowsOfRun:
    """Return a run that read these rows by a time of its own, and knows them after it."""
    found = frozenset({(f"0{number}:00", each) for each in ids})
    return rows(number, count=count, named=found, trail=found, told_by=(1,))


def test_rows_that_come_again_with_another_key_are_counted() -> None:
    runs = [moved(at, "1", "2", "3") for at in range(1, 5)]
    (found,) = advice_on_keys("orders", runs)
    assert found.code is AdviceCode.UPDATED_KEY
    assert found.evidence == "9 of 9 rows of runs 2-4 had been read before, and were updated since"
    assert found.figures == {"runs": 3, "rows_read": 9, "rows_read_again": 9}


def test_new_rows_and_few_updates_are_none() -> None:
    assert key_codes(*(moved(at, f"{at}1", f"{at}2", f"{at}3") for at in range(1, 9))) == []
    assert key_codes(*(moved(at, "1", f"{at}2", f"{at}3") for at in range(1, 9))) == []


def test_two_runs_with_updates_are_no_habit() -> None:
    assert key_codes(*(moved(at, "1", "2", "3") for at in range(1, 4))) == []
