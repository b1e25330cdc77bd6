"""Promises FILE-10, FILE-22 on S3: folders that can't hold anything are not asked for, by requests counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from tests.files.s3.s3_ground import settings_for
from tests.files.s3.s3_stand_in import CutOff, Pass, Refuse, StandIn, stand_in

ROOT = "s3a://lake/raw"
HOUR = timedelta(hours=1)
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.fixture
def s3() -> Iterator[StandIn]:
    with stand_in() as served:
        yield served


@pytest.fixture
def files(s3: StandIn) -> S3FileSystem:
    return S3FileSystem(settings_for(s3.url))


def source(files: S3FileSystem, now: datetime = FIRST_DAY, **options: Any) -> FileSource:
    return FileSource(files, [ROOT], FileOptions(**options), clock=lambda: now)


def below(paths: Iterable[str]) -> list[str]:
    return sorted(path.removeprefix(f"{ROOT}/") for path in paths)


# ---- the listing


def test_pruned_folder_is_not_asked_for(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(["raw/a.csv", "raw/k=1/a.csv", "raw/k=2/j=1/a.csv", "raw/k=2/j=2/a.csv", "raw/_tmp/a.csv"])
    asked: list[str] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return folder not in ("k=1", "k=2/j=1")

    listed = files.list(ROOT, enters=enters)

    assert below(listed.files.paths) == ["a.csv", "k=2/j=2/a.csv"]
    assert (listed.pruned, listed.skipped) == (2, {"hidden": 1})
    assert sorted(asked) == ["k=1", "k=2", "k=2/j=1", "k=2/j=2"]
    assert [asked["prefix"] for _, asked in s3.seen] == ["raw/", "raw/k=2/", "raw/k=2/j=2/"]


def test_folder_by_folder_is_the_whole_listing_where_nothing_is_pruned(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/k={k}/j={j}/part-{i:05d}.csv" for k in range(3) for j in range(2) for i in range(2500))
    s3.hold(["raw/top.csv", "raw//odd.csv", "raw/k=1/", "raw/old/deep/x.csv", "raw/.hid/a/b.csv", "raw/é=1/ü ,+%.csv"])
    seen: list[int] = []

    at_once = files.list(ROOT)
    by_folder = files.list(ROOT, enters=lambda folder: True, saw=seen.append)

    assert sorted(by_folder.files.paths) == sorted(at_once.files.paths)
    assert (by_folder.skipped, by_folder.pruned) == (at_once.skipped, 0)
    assert sum(seen) >= len(by_folder.files)


def test_more_folders_than_a_page_holds_are_all_entered(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/day={i:05d}/a.csv" for i in range(2300))
    s3.hold(f"raw/{i:05d}.csv" for i in range(1200))

    listed = files.list(ROOT, enters=lambda folder: folder.endswith("7"))

    assert len(listed.files) == 1200 + 230
    assert listed.pruned == 2300 - 230
    assert len(s3.seen) == 4 + 230  # 3,500 entries, and the folders that were entered


def test_key_is_listed_once_though_a_page_ends_in_a_folder_whose_name_it_follows(
    s3: StandIn, files: S3FileSystem
) -> None:
    s3.hold(f"raw/a{i:04d}" for i in range(999))
    s3.hold(["raw/b/x", "raw/b0", "raw/b0z"])  # "0" follows "/"

    listed = files.list(ROOT, recursive=True, enters=lambda folder: True)

    assert sorted(listed.files.paths) == [f"s3a://lake/{key}" for key in s3.keys]


class WholeYears:
    """Enters some years, and all that is in them."""

    def __call__(self, folder: str) -> bool:
        return folder >= "year=2012"

    def is_whole(self, folder: str) -> bool:
        return folder.startswith("year=")


def test_folder_of_which_nothing_is_pruned_takes_one_request_for_each_thousand_keys(
    s3: StandIn, files: S3FileSystem
) -> None:
    s3.hold(f"raw/year={y}/month={m:02d}/{i}.csv" for y in range(2003, 2014) for m in range(1, 13) for i in range(50))

    listed = files.list(ROOT, enters=WholeYears())

    assert len(listed.files) == 2 * 600
    assert s3.methods == ["GET"] * 3


def test_large_folder_of_which_nothing_is_pruned_is_read_in_parallel_and_whole(
    s3: StandIn, files: S3FileSystem
) -> None:
    s3.hold(f"raw/year=2013/part-{i:06d}.csv" for i in range(25_000))
    s3.hold(f"raw/year=2014/part-{i:06d}.csv" for i in range(900))

    listed = files.list(ROOT, enters=WholeYears())

    assert sorted(listed.files.paths) == [f"s3a://lake/{key}" for key in s3.keys]
    assert len(set(listed.files.paths)) == 25_900
    assert len(s3.methods) <= 60


@pytest.mark.parametrize("fault", [Refuse(503, "SlowDown"), CutOff()], ids=["throttled", "connection lost"])
def test_fault_that_passes_costs_no_folder(s3: StandIn, files: S3FileSystem, fault: Refuse | CutOff) -> None:
    s3.hold(f"raw/k={k}/a.csv" for k in range(5))
    s3.befall(fault, Pass(), fault)

    assert len(files.list(ROOT, enters=lambda folder: folder != "k=0").files) == 4


# ---- a predicate


def test_predicate_asks_only_for_the_levels_above_and_what_it_lets_in(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/year={y}/month={m}/{i}.csv" for y in range(2003, 2014) for m in range(1, 13) for i in range(20))

    plan = source(files, partition_filter="year = 2013 and month >= 9").plan(PlanInput())

    assert len(plan) == 4 * 20
    assert plan.partitions is not None
    assert plan.partitions.pruned == 10 + 8
    assert s3.methods == ["GET"] * (1 + 1 + 4)  # the years, the months of one, and four months


def test_predicate_on_the_first_level_lists_a_year_at_once(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/year={y}/month={m}/{i}.csv" for y in range(2003, 2014) for m in range(1, 13) for i in range(20))

    plan = source(files, partition_filter="year = 2013").plan(
        PlanInput(partition_types={"year": "int", "month": "int"})
    )

    assert len(plan) == 240
    assert s3.methods == ["GET"] * 2


# ---- the time of partitions


def hours(days: int) -> Iterator[str]:
    for hour in range(days * 24):
        time = FIRST_DAY + hour * HOUR
        yield f"raw/year={time.year}/month={time.month}/day={time.day}/hour={time.hour}/a.csv"


def read_until(newest: datetime) -> PlanInput:
    """Return what is found after a run that has read up to this partition."""
    return PlanInput(stats={NEWEST_PARTITION: newest.replace(tzinfo=None).isoformat()})


def requests_of_a_day(s3: StandIn, files: S3FileSystem, days: int) -> int:
    """Return how many requests a run makes on the day after so many."""
    s3.keys.clear()
    s3.hold(hours(days))
    s3.seen.clear()
    by_time = source(
        files, FIRST_DAY + days * 24 * HOUR, partition_time="year,month,day,hour", late_after=timedelta(hours=6)
    )

    newest = FIRST_DAY + (days * 24 - 1) * HOUR
    plan = by_time.plan(read_until(newest - HOUR))

    assert len(plan) == 8
    assert plan.stats()[NEWEST_PARTITION] == newest.replace(tzinfo=None).isoformat()
    return len(s3.seen)


def test_requests_stay_flat_over_a_thousand_past_days(s3: StandIn, files: S3FileSystem) -> None:
    few = [requests_of_a_day(s3, files, days) for days in (10, 100)]
    many = requests_of_a_day(s3, files, 1000)

    # Four levels to list down to the hours, and the hours above the line.
    assert max(*few, many) <= 4 + 8
    assert many <= max(few) + 1


def test_month_nine_is_before_month_ten(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/year=2013/month={month}/a.csv" for month in range(1, 13))

    plan = source(
        files, datetime(2013, 12, 5, tzinfo=UTC), partition_time="year,month", late_after=timedelta(days=60)
    ).plan(read_until(datetime(2013, 12, 1, tzinfo=UTC)))

    assert below(plan.files.paths) == [
        "year=2013/month=10/a.csv",
        "year=2013/month=11/a.csv",
        "year=2013/month=12/a.csv",
    ]


def test_line_does_not_go_back_when_the_newest_partitions_are_gone(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(1, 11))
    by_time = source(files, datetime(2013, 1, 31, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    plan = by_time.plan(PlanInput(stats={NEWEST_PARTITION: "2013-01-12T00:00:00"}))

    assert below(plan.files.paths) == ["dt=2013-01-10/a.csv"]
    assert plan.stats()[NEWEST_PARTITION] == "2013-01-12T00:00:00"


def test_partition_that_is_dated_in_the_future_does_not_move_the_line(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold([*(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(1, 11)), "raw/dt=2113-01-01/a.csv"])
    by_time = source(files, datetime(2013, 1, 10, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    plan = by_time.plan(read_until(datetime(2013, 1, 10, tzinfo=UTC)))

    assert below(plan.files.paths)[0] == "dt=2013-01-08/a.csv"
    assert below(plan.files.paths)[-1] == "dt=2113-01-01/a.csv"
    assert plan.stats()[NEWEST_PARTITION] == "2013-01-10T00:00:00"


def test_line_that_a_clock_ahead_has_left_is_taken_back(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(1, 11))
    by_time = source(files, datetime(2013, 1, 10, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    plan = by_time.plan(PlanInput(stats={NEWEST_PARTITION: "2113-01-01T00:00:00"}))

    assert below(plan.files.paths)[0] == "dt=2013-01-01/a.csv"
    assert plan.stats()[NEWEST_PARTITION] == "2013-01-10T00:00:00"


def test_partitions_that_came_during_an_outage_are_listed_however_many(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(1, 31))
    by_time = source(files, datetime(2013, 1, 31, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    plan = by_time.plan(read_until(datetime(2013, 1, 10, tzinfo=UTC)))

    assert below(plan.files.paths) == [f"dt=2013-01-{day:02d}/a.csv" for day in range(8, 31)]


def test_first_run_lists_all_partitions(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(1, 31))
    by_time = source(files, datetime(2013, 1, 31, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    assert len(by_time.plan(PlanInput())) == 30


def test_folder_in_which_a_file_waits_behind_a_bound_is_listed_when_its_turn_comes(
    s3: StandIn, files: S3FileSystem
) -> None:
    s3.hold([*(f"raw/dt=2013-01-{day:02d}/a.csv" for day in range(5, 11)), "raw/dt=2013-01-30/a.csv"])
    now, by_two = datetime(2013, 1, 31, tzinfo=UTC), Bound(max_files=2)
    by_time = source(files, now, partition_time="dt", late_after=timedelta(days=2), bound=by_two)

    found, read = PlanInput(), []
    while True:
        plan = by_time.plan(found)
        if not len(plan):
            break
        read.append([path[3:13] for path in below(plan.files.paths)])
        position = by_time.advance(plan)
        assert position is not None
        found = PlanInput(position.body, stats=plan.stats())

    days = ["2013-01-05", "2013-01-06", "2013-01-07", "2013-01-08", "2013-01-09", "2013-01-10", "2013-01-30"]
    assert read == [days[0:2], days[2:4], days[4:6], days[6:]]
    assert found.stats[NEWEST_PARTITION] == "2013-01-30T00:00:00"


def test_folder_in_which_a_file_settles_is_listed_until_it_is_read(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(["raw/dt=2013-01-30/a.csv"], "2013-01-30T00:00:00.000Z")
    s3.hold(["raw/dt=2013-01-05/young.csv"], "2013-01-31T00:00:00.000Z")
    options: dict[str, Any] = {"partition_time": "dt", "late_after": timedelta(days=2), "settle": HOUR}

    plan = source(files, datetime(2013, 1, 31, tzinfo=UTC), **options).plan(PlanInput())
    after = source(files, datetime(2013, 1, 31, 2, tzinfo=UTC), **options).plan(PlanInput(stats=plan.stats()))

    assert below(plan.files.paths) == ["dt=2013-01-30/a.csv"]
    assert "dt=2013-01-05/young.csv" in below(after.files.paths)


def test_partition_without_a_time_is_listed(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/dt={day}/a.csv" for day in ("2013-01-01", "2013-01-10", "__HIVE_DEFAULT_PARTITION__"))
    by_time = source(files, datetime(2013, 1, 10, tzinfo=UTC), partition_time="dt", late_after=timedelta(days=2))

    plan = by_time.plan(read_until(datetime(2013, 1, 10, tzinfo=UTC)))

    assert below(plan.files.paths) == ["dt=2013-01-10/a.csv", "dt=__HIVE_DEFAULT_PARTITION__/a.csv"]


def test_second_look_asks_only_for_the_folders_of_planned_files(s3: StandIn, files: S3FileSystem) -> None:
    s3.hold(f"raw/year={y}/{i:05d}.csv" for y in range(2003, 2014) for i in range(1500))
    by_year = source(files, partition_filter="year = 2013")
    plan = by_year.plan(PlanInput())
    s3.seen.clear()

    assert by_year.recheck(plan).missing == ()

    assert s3.methods == ["GET"] * 3
