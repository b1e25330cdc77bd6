"""Promises of `reread`: where one file of a group is new or changed, all files of the group are read (FILE-23)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, UnmatchedError
from airflow_bookmarks.core.rules.shard import VirtualShard
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
BY_PARTITION = FileOptions(reread="partition")


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Return a shop whose job replaces the partitions that it writes; it is noon."""
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.environment = replace(shop.environment, clock=lambda: NOON)
    return shop


def put(shop: Shop, name: str, *lines: str, minutes: int = -600) -> Path:
    """Write a raw file that is dated so many minutes after noon."""
    return shop.put(name, *lines, seconds=int(NOON.timestamp()) + 60 * minutes)


def two_months(shop: Shop) -> None:
    """Read two files of one month and one of another."""
    put(shop, "month=1/a.txt", "a1")
    put(shop, "month=1/b.txt", "b1")
    put(shop, "month=2/c.txt", "c1")
    shop.run(options=BY_PARTITION)


def read_of(shop: Shop, **options: Any) -> list[str]:
    return sorted(shop.run(options=FileOptions(**{"reread": "partition"} | options))[0])


# ---- what arrives


def test_corrected_file_brings_the_other_files_of_its_partition_and_no_others(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/a.txt", "a2", "a3")
    lines, summary = shop.run(options=BY_PARTITION)
    assert sorted(lines) == ["a2", "a3", "b1"]
    assert shop.target_lines() == {"a2": 1, "a3": 1, "b1": 1, "c1": 1}
    figures = summary.contexts["raw"]
    assert (figures["files"], figures["read_again"], figures["known"]) == (2, 2, 1)
    assert read_of(shop) == []


def test_without_it_the_rows_of_the_other_files_are_lost(shop: Shop) -> None:
    """Show what the option is for."""
    put(shop, "month=1/a.txt", "a1")
    put(shop, "month=1/b.txt", "b1")
    shop.run()
    put(shop, "month=1/a.txt", "a2", minutes=-500)
    shop.run()
    assert shop.target_lines() == {"a2": 1}


def test_late_file_brings_its_partition(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/late.txt", "l1", minutes=-9000)
    assert read_of(shop) == ["a1", "b1", "l1"]
    assert shop.target_lines() == {"a1": 1, "b1": 1, "l1": 1, "c1": 1}


def test_deleted_file_is_gone_once_anything_else_of_its_partition_changes(shop: Shop) -> None:
    two_months(shop)
    (shop.raw / "month=1/a.txt").unlink()
    assert read_of(shop) == []
    put(shop, "month=1/d.txt", "d1")
    read_of(shop)
    assert shop.target_lines() == {"b1": 1, "d1": 1, "c1": 1}


def test_late_file_beyond_the_line_triggers_nothing_and_is_counted(shop: Shop) -> None:
    options: dict[str, Any] = {"late_after": timedelta(hours=2)}
    put(shop, "month=1/a.txt", "a1")
    read_of(shop, **options)
    put(shop, "month=1/late.txt", "l1", minutes=-800)
    _, summary = shop.run(options=FileOptions(reread="partition", **options))
    assert (summary.contexts["raw"]["files"], summary.contexts["raw"]["skipped"]) == (0, {"late": 1})
    put(shop, "month=1/b.txt", "b1")
    assert read_of(shop, **options) == ["a1", "b1", "l1"]


def test_partition_waits_while_a_changed_file_of_it_settles(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/a.txt", "a2", minutes=-1)
    put(shop, "month=1/d.txt", "d1")
    put(shop, "month=2/young.txt", "y1", minutes=-1)
    put(shop, "month=2/e.txt", "e1")
    _, summary = shop.run(options=FileOptions(reread="partition", settle=timedelta(minutes=5)))
    assert summary.contexts["raw"]["skipped"] == {"settling": 3}
    assert shop.target_lines() == {"a1": 1, "b1": 1, "c1": 1, "e1": 1}
    shop.environment = replace(shop.environment, clock=lambda: NOON + timedelta(minutes=10))
    read_of(shop, settle=timedelta(minutes=5))
    assert shop.target_lines() == {"a2": 1, "b1": 1, "d1": 1, "c1": 1, "y1": 1, "e1": 1}


def test_files_before_the_start_are_read_with_a_partition_that_goes_on_after_it(shop: Shop) -> None:
    put(shop, "month=1/old.txt", "o1", minutes=-900)
    put(shop, "month=1/new.txt", "n1")
    put(shop, "month=2/old.txt", "o2", minutes=-900)
    run = shop.begin(start=Start.of(NOON - timedelta(hours=12)))
    lines = shop.copy(run, options=BY_PARTITION)
    figures = run.commit().contexts["raw"]
    assert (sorted(lines), figures["skipped"], figures["read_again"]) == (["n1", "o1"], {"before_start": 1}, 0)
    assert read_of(shop) == []


def test_equal_partitions_of_two_spellings_are_one(shop: Shop) -> None:
    put(shop, "month=1/a.txt", "a1")
    put(shop, "month=01/b.txt", "b1")
    read_of(shop)
    put(shop, "month=1/a.txt", "a2", minutes=-500)
    assert read_of(shop) == ["a2", "b1"]


def test_group_may_be_told_by_an_expression(shop: Shop) -> None:
    for name in ("2013-01-30.txt", "2013-01-31.txt", "2013-02-01.txt"):
        put(shop, name, name)
    options = {"reread": r"(?P<month>\d{4}-\d\d)"}
    read_of(shop, **options)
    put(shop, "2013-01-30.txt", "again", minutes=-500)
    assert pending(shop.store, "copy").contexts[0].files == 2
    assert read_of(shop, **options) == ["2013-01-31.txt", "again"]
    put(shop, "strange.txt", "s")
    with pytest.raises(UnmatchedError, match=r"strange\.txt"):
        shop.copy(shop.begin(), options=FileOptions(reread=options["reread"]))


# ---- what else knows it


def test_pending_counts_the_whole_partition(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/d.txt", "d1")
    found = pending(shop.store, "copy").contexts[0].as_dict()
    assert (found["files"], found["read_again"]) == (3, 2)


def test_partition_larger_than_the_bound_is_read_whole_and_alone(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/a.txt", "a2", minutes=-500)
    put(shop, "month=2/d.txt", "d1", minutes=-400)
    bound = {"bound": Bound(max_files=1)}
    assert read_of(shop, **bound) == ["a2", "b1"]
    assert read_of(shop, **bound) == ["c1", "d1"]
    assert read_of(shop, **bound) == []
    assert shop.target_lines() == {"a2": 1, "b1": 1, "c1": 1, "d1": 1}


def test_run_that_another_driver_takes_over_leaves_the_same_position(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/a.txt", "a2", minutes=-500)
    run = shop.begin()
    shop.copy(run, options=BY_PARTITION)
    run.abort("a test")
    assert read_of(shop) == ["a2", "b1"]
    assert shop.target_lines() == {"a2": 1, "b1": 1, "c1": 1}


def test_pause_window_reads_the_whole_partitions_of_its_runs(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/a.txt", "a2", minutes=-500)
    read_of(shop)
    run = shop.side("copy", "pause", "1", "2")
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], BY_PARTITION))
    assert sorted(Path(path).name for path in plan.files.paths) == ["a.txt", "b.txt"]
    run.abort("a test")


def test_rewind_with_clean_makes_the_partition_again_whole(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/d.txt", "d1")
    read_of(shop)
    rewind(shop.store, "copy", 1, reason="a test", who="me", clean=True)
    assert read_of(shop) == ["a1", "b1", "d1"]
    assert shop.target_lines() == {"a1": 1, "b1": 1, "c1": 1, "d1": 1}


def test_file_of_the_partition_that_goes_before_the_commit_is_left_out(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/d.txt", "d1")
    gone = shop.raw / "month=1/a.txt"
    _, summary = shop.run(options=BY_PARTITION, on_missing="skip", between=gone.unlink)
    assert summary.contexts["raw"]["skipped"] == {"missing": 1}
    assert summary.contexts["raw"]["read_again"] == 1
    assert read_of(shop) == []


def test_companion_that_went_while_its_partition_was_read_is_read_again_as_it_was(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/d.txt", "d1")
    gone, aside = shop.raw / "month=1/a.txt", shop.root / "a.txt"
    shop.run(options=BY_PARTITION, on_missing="skip", between=lambda: gone.rename(aside))
    assert read_of(shop) == []
    aside.rename(gone)
    assert read_of(shop) == ["a1", "b1", "d1"]
    assert shop.target_lines() == {"a1": 1, "b1": 1, "c1": 1, "d1": 1}
    assert read_of(shop) == []


def test_file_that_waited_for_a_change_of_its_partition_is_not_late_then(shop: Shop) -> None:
    options: dict[str, Any] = {"settle": timedelta(hours=2), "late_after": timedelta(hours=3)}
    first = put(shop, "month=1/a.txt", "a1", minutes=-1200)
    put(shop, "month=2/z.txt", "z1", minutes=-365)
    read_of(shop, **options)
    put(shop, "month=1/a.txt", "a1", "a2", minutes=-1)
    put(shop, "month=1/x.txt", "x1", minutes=-540)
    put(shop, "month=2/y.txt", "y1", minutes=-125)
    assert read_of(shop, **options) == ["y1", "z1"]
    put(shop, first.relative_to(shop.raw).as_posix(), "a1", minutes=-1200)
    assert read_of(shop, **options) == ["a1", "x1"]


@pytest.mark.parametrize("reread", ["partition", r"month=(?P<month>\d+)"])
def test_excluded_file_belongs_to_no_partition(shop: Shop, reread: str) -> None:
    put(shop, "month=1/a.txt", "a1")
    put(shop, "month=1/b.bak", "b1")
    assert read_of(shop, reread=reread, exclusions=("**/*.bak",)) == ["a1"]
    put(shop, "month=1/c.txt", "c1")
    assert read_of(shop, reread=reread, exclusions=("**/*.bak",)) == ["a1", "c1"]


# ---- what can't be


@pytest.mark.parametrize(
    "options",
    [
        {"reread": "partitions"},
        {"reread": lambda path: path},
        {"reread": r"(\d+)"},
        {"reread": "partition", "on_overwrite": "ignore"},
        {"reread": "partition", "recursive": True},
        {"reread": "partition", "empties": True},
        {"reread": r"(?P<m>\d+)", "partition_filter": "day > 3"},
    ],
)
def test_option_beside_which_a_group_could_not_be_read_whole_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="reread="):
        FileOptions(**options)


def test_file_in_no_partition_stops_the_run(shop: Shop) -> None:
    put(shop, "a.txt", "a1")
    with pytest.raises(OptionError, match="lies in no partition"):
        shop.copy(shop.begin(), options=BY_PARTITION)


@pytest.mark.parametrize(("reread", "by"), [("partition", "path"), (r"month=(?P<m>\d+)", "partition")])
def test_shards_that_may_split_a_group_are_refused(shop: Shop, reread: str, by: Any) -> None:
    with pytest.raises(OptionError, match="sharded job"):
        FileSource(FILES, [str(shop.raw)], FileOptions(reread=reread), shard=VirtualShard(3, by))


def test_shards_by_partition_read_whole_partitions(shop: Shop) -> None:
    two_months(shop)
    put(shop, "month=1/d.txt", "d1")
    found: list[list[str]] = []
    for number in range(64):
        source = FileSource(FILES, [str(shop.raw)], BY_PARTITION, shard=VirtualShard(number, "partition"))
        run = shop.begin("copy", None)
        plan = run.plan("raw", source, on_source_change="reset")
        found += [sorted(Path(path).name for path in plan.files.paths)] if len(plan) else []
        run.abort("a test")
    assert sorted(found) == [["a.txt", "b.txt", "d.txt"], ["c.txt"]]
