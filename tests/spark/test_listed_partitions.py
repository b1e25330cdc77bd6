"""Partitions as a catalog lists them: read wherever they lie, with the values that the catalog says."""

from __future__ import annotations

import shutil
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, rows_of

pytestmark = pytest.mark.spark

TYPES = {"region": "string", "day": "date"}


def listed(lake: Lake, **values: tuple[str | None, ...]) -> ListedPartitions:
    """Return partitions by folder: `__` is a slash below the raw folder."""
    return ListedPartitions(TYPES, {lake.path("raw", *name.split("__")): value for name, value in values.items()})


def read(job: BookmarkedJob, lake: Lake, partitions: ListedPartitions, **options: Any) -> DataFrame:
    reader = job.read("raw").files(listed_partitions=partitions, **options)
    return reader.schema("n INT").csv(lake.path("raw"))


def run(lake: Lake, partitions: ListedPartitions, **options: Any) -> list[tuple[Any, ...]]:
    with lake.job() as job:
        return rows_of(read(job, lake, partitions, **options))


def test_the_values_of_the_catalog_are_columns_whatever_folders_are_called(lake: Lake) -> None:
    lake.put("2024/01/a.csv", "1")
    lake.put("other/b.csv", "2")
    there = listed(lake, **{"2024__01": ("eu", "2024-01-01"), "other": (None, "2024-01-02")})
    assert run(lake, there) == [(1, "eu", date(2024, 1, 1)), (2, None, date(2024, 1, 2))]


def test_one_partition_is_read_with_its_values(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    assert run(lake, listed(lake, x=("eu", "2024-01-01"))) == [(1, "eu", date(2024, 1, 1))]


@pytest.mark.seldom
def test_what_is_read_once_is_not_read_again_and_a_new_partition_is(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    first = listed(lake, x=("eu", "2024-01-01"))
    run(lake, first)
    lake.put("y/old.csv", "2")
    lake.put("x/late.csv", "3")
    both = listed(lake, x=("eu", "2024-01-01"), y=("us", "2024-01-02"))
    assert run(lake, both) == [(2, "us", date(2024, 1, 2)), (3, "eu", date(2024, 1, 1))]
    assert run(lake, both) == []


def test_a_partition_that_is_listed_again_is_not_read_again(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    lake.put("y/b.csv", "2")
    both = listed(lake, x=("eu", "2024-01-01"), y=("us", "2024-01-02"))
    run(lake, both)
    run(lake, listed(lake, y=("us", "2024-01-02")))
    assert run(lake, both) == []


def test_folders_that_no_catalog_lists_are_not_read(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    lake.put("x/deeper/b.csv", "2")
    lake.put("beside/c.csv", "3")
    lake.put("d.csv", "4")
    assert run(lake, listed(lake, x=("eu", "2024-01-01"))) == [(1, "eu", date(2024, 1, 1))]


def test_a_partition_may_lie_outside_of_the_folder_of_its_table(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    lake.put("b.csv", "2", folder="elsewhere")
    there = ListedPartitions(
        TYPES, {lake.path("raw/x"): ("eu", "2024-01-01"), lake.path("elsewhere"): ("us", "2024-01-02")}
    )
    assert run(lake, there) == [(1, "eu", date(2024, 1, 1)), (2, "us", date(2024, 1, 2))]
    assert run(lake, there) == []


def test_empty_and_missing_folders_are_skipped_and_counted(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    (lake.root / "raw" / "empty").mkdir()
    there = listed(lake, x=("eu", "2024-01-01"), empty=("us", "2024-01-02"), gone=("us", "2024-01-03"))
    with lake.job() as job:
        assert len(read(job, lake, there).collect()) == 1
        plan = job.active_run.plan_of("raw")
        assert plan is not None
        assert plan.skipped["empty_partitions"] == 2


def test_an_empty_increment_has_the_columns_of_the_partitions(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    types = {"region": "string", "price": "decimal(5,2)"}
    there = ListedPartitions(types, {lake.path("raw/x"): ("eu", "1.50")})
    run(lake, there)
    with lake.job() as job:
        frame = read(job, lake, there)
        assert frame.dtypes == [("n", "int"), ("region", "string"), ("price", "decimal(5,2)")]
        assert frame.count() == 0


def test_a_filter_reaches_the_files_though_values_are_joined(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.put("x/a.csv", "1")
    lake.put("y/b.csv", "2")
    with lake.job() as job:
        frame = read(job, lake, listed(lake, x=("eu", "2024-01-01"), y=("us", "2024-01-02"))).where("n > 1")
        assert rows_of(frame) == [(2, "us", date(2024, 1, 2))]
        frame.explain()
        assert "PushedFilters: [IsNotNull(n), GreaterThan(n,1)]" in capsys.readouterr().out


def test_names_with_unusual_signs_keep_their_values(lake: Lake) -> None:
    lake.put("a b%20c/ä.csv", "1")
    lake.put("y+z/b.csv", "2")
    there = ListedPartitions(
        TYPES,
        {lake.path("raw", "a b%20c"): ("eu", "2024-01-01"), lake.path("raw", "y+z"): ("us", "2024-01-02")},
    )
    assert run(lake, there) == [(1, "eu", date(2024, 1, 1)), (2, "us", date(2024, 1, 2))]


def test_two_partitions_with_one_folder_are_refused(lake: Lake) -> None:
    there = ListedPartitions(
        TYPES, {lake.path("raw/x"): ("eu", "2024-01-01"), f"{lake.path('raw/x')}/": ("us", "2024-01-02")}
    )
    with lake.job() as job, pytest.raises(OptionError, match="two partitions have the location"):
        read(job, lake, there)


def test_a_bound_takes_a_part_and_the_next_run_the_rest(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    lake.put("y/b.csv", "2")
    both = listed(lake, x=("eu", "2024-01-01"), y=("us", "2024-01-02"))
    assert run(lake, both, max_files="1") == [(1, "eu", date(2024, 1, 1))]
    assert run(lake, both, max_files="1") == [(2, "us", date(2024, 1, 2))]


@pytest.mark.seldom
def test_a_pause_over_a_window_reads_the_values_of_that_time(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    run(lake, listed(lake, x=("eu", "2024-01-01")))
    lake.put("y/b.csv", "2")
    both = listed(lake, x=("eu", "2024-01-01"), y=("us", "2024-01-02"))
    run(lake, both)
    lake.put("x/c.csv", "3")
    run(lake, both)
    with lake.job(option="pause", from_run=1, to_run=3) as job:
        assert rows_of(read(job, lake, both)) == [(2, "us", date(2024, 1, 2)), (3, "eu", date(2024, 1, 1))]


def test_a_failed_run_is_planned_anew_with_the_partitions_of_then(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    job = lake.job().begin()
    read(job, lake, listed(lake, x=("eu", "2024-01-01")))
    job.abort("given up")
    assert run(lake, listed(lake, x=("us", "2024-01-05"))) == [(1, "us", date(2024, 1, 5))]


def test_all_folders_gone_is_an_empty_read(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    there = listed(lake, x=("eu", "2024-01-01"))
    run(lake, there)
    shutil.rmtree(lake.root / "raw")
    assert run(lake, there) == []


def test_options_that_go_by_the_names_of_folders_are_refused(lake: Lake) -> None:
    with lake.job() as job, pytest.raises(OptionError, match="partition_filter"):
        read(job, lake, listed(lake, x=("eu", "2024-01-01")), partition_filter="region = 'eu'")


def test_values_that_are_no_columns_are_refused() -> None:
    with pytest.raises(OptionError, match="has 1 values"):
        ListedPartitions(TYPES, {"/lake/x": ("eu",)})


def test_what_is_new_is_not_known_without_the_script_that_asks_for_partitions(lake: Lake) -> None:
    lake.put("x/a.csv", "1")
    run(lake, listed(lake, x=("eu", "2024-01-01")))
    lake.put("x/late.csv", "2")
    lake.put("beside/c.csv", "3")
    (context,) = pending(lake.store, "copy").contexts
    assert context.plan is None
    assert context.unknown == "a catalog lists its partitions, and only the script, in Spark, asks it for new ones"
