"""Promises of sharded jobs (DEP-11): mapped tasks read each file once between them, however many there are today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    JobBusyError,
    JobUnknownError,
    OptionError,
    SourceChangedError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.rules.shard import (
    ShardBy,
    ShardShare,
    VirtualShard,
    ranges,
    shard_name,
    shard_names,
    shards,
)
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from airflow_bookmarks.core.selection.reason import OTHER_SHARDS
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.history.shards import Layout, check_not_sharded, is_sharded, upstream_of_shard
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.files.scan import SharedScans
from airflow_bookmarks.sources.shard import ShardedUpstream
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop

JOB = "copy"


@dataclass
class Task:
    """A mapped task without Spark: for each of its virtual shards a run that copies lines to `root/copy`."""

    shop: Shop
    by: ShardBy = "path"
    files: LocalFileSystem = FILES
    options: dict[str, Any] = field(default_factory=dict)

    def source(self, number: int, scans: SharedScans | None = None) -> FileSource:
        shard = VirtualShard(number, self.by)
        return FileSource(self.files, [str(self.shop.raw)], shard=shard, scans=scans, **self.options)

    def run(self, text: str, on_conflict: Any = "fail", start: str = "beginning") -> list[str]:
        """Work on a share; return the lines that were read."""
        scans = SharedScans()
        read: list[str] = []
        for number in ShardShare.of(text).numbers:
            run = self.shop.begin(shard_name(JOB, number), on_conflict=on_conflict, start=Start.of(start))
            read += self.copy(run, number, run.plan("raw", self.source(number, scans)))
            run.commit()
        return read

    def copy(self, run: ActiveRun, number: int, plan: FilePlan) -> list[str]:
        target = self.shop.root / JOB
        folder = Path(
            run.place("out", StagingRequest("files", str(target), stats={"format": "text", "mode": "append"}))
        )
        lines: list[str] = []
        for i, path in enumerate(plan.files.paths):
            lines += Path(path).read_text().splitlines()
            # As Spark's, the name tells writers of one target from each other; the run's token is not enough for that.
            staged = folder / f"part-{number}-{i}.txt"
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_text(Path(path).read_text())
        staged_files = collect_staged(
            FILES, str(folder), str(target), run.file_token, self.shop.mode, rows=len(lines), schema='{"fields":[]}'
        )
        run.staged("out", staged_files)
        return lines

    def run_all(self, texts: Iterable[str], **kwargs: Any) -> list[str]:
        return [line for text in texts for line in self.run(text, **kwargs)]


def at_once(shop: Shop, texts: Sequence[str]) -> list[str]:
    """Run tasks at once, each with a store of its own as in a process of its own; return the lines read by all."""

    def work(text: str) -> list[str]:
        own = BookmarkStore(SqliteTable(shop.root / "bookmarks.db"), "test")
        waits_briefly = replace(RunEnvironment(), sleep=lambda _: None)
        task = Task(Shop(shop.root, own, waits_briefly, runs_made=1000 * (1 + texts.index(text))))
        return task.run(text, on_conflict="wait")

    with ThreadPoolExecutor(len(texts)) as pool:
        return [line for lines in pool.map(work, texts) for line in lines]


def put(shop: Shop, names: Iterable[str], **kwargs: Any) -> Counter[str]:
    """Write a file of one line for each name; return the lines."""
    lines = [f"line of {name}" for name in names]
    for name, line in zip(names, lines, strict=True):
        shop.put(f"{name}.txt", line, **kwargs)
    return Counter(lines)


def numbers_of(shop: Shop, names: Iterable[str], by: ShardBy = "path") -> list[int]:
    found: list[int] = virtual_shards([str(shop.raw / f"{name}.txt") for name in names], by).tolist()
    return found


# ---- each file once


def test_mapped_tasks_at_once_read_each_file_once_and_commit_without_conflict(shop: Shop) -> None:
    lines = put(shop, [f"f{i}" for i in range(100)])

    assert Counter(at_once(shop, shards(4))) == lines

    assert shop.target_lines() == lines
    heads = shop.store.heads(shard_names(JOB))
    assert {head.run_number for head in heads.values()} == {1}
    assert len(heads) == 64
    assert all(head.lease is None and head.publishing is None for head in heads.values())


def test_one_task_more_reads_nothing_twice_and_loses_nothing(shop: Shop) -> None:
    task = Task(shop)
    first = put(shop, [f"a{i}" for i in range(40)])
    assert Counter(task.run_all(shards(3))) == first

    second = put(shop, [f"b{i}" for i in range(40)])

    assert Counter(task.run_all(shards(4))) == second
    assert task.run_all(shards(1)) == []
    assert shop.target_lines() == first + second


@pytest.mark.seldom
def test_tasks_that_say_another_n_at_the_same_time_read_each_file_once(shop: Shop) -> None:
    lines = put(shop, [f"f{i}" for i in range(40)])

    assert Counter(at_once(shop, [*shards(2), *shards(3)])) == lines

    assert shop.target_lines() == lines


@pytest.mark.seldom
def test_ranges_and_shares_follow_each_other(shop: Shop) -> None:
    task = Task(shop)
    first = put(shop, [f"a{i}" for i in range(30)])
    assert Counter(task.run_all(ranges(range(10, 64), range(10)))) == first
    second = put(shop, [f"b{i}" for i in range(30)])
    assert Counter(task.run_all(shards(5))) == second


def test_late_file_is_read_by_its_shard(shop: Shop) -> None:
    task = Task(shop)
    put(shop, ["new"], seconds=1_700_000_000)
    task.run_all(shards(2))
    put(shop, ["late"], seconds=1_600_000_000)
    assert task.run_all(shards(3)) == ["line of late"]


@pytest.mark.seldom
def test_file_that_was_overwritten_is_read_again_by_the_shard_that_read_it(shop: Shop) -> None:
    task = Task(shop)
    put(shop, [f"f{i}" for i in range(10)])
    task.run_all(shards(2))
    shop.put("f3.txt", "corrected", seconds=1_700_000_500)
    assert task.run_all(shards(3)) == ["corrected"]


def test_task_that_fails_half_way_keeps_what_its_shards_have_committed(shop: Shop) -> None:
    task = Task(shop)
    lines = put(shop, [f"f{i}" for i in range(40)])
    first = task.run("0:20")
    run = shop.begin(shard_name(JOB, 20))
    task.copy(run, 20, run.plan("raw", task.source(20)))
    run.abort("the driver failed")

    rest = task.run("0:64")

    assert Counter(first) + Counter(rest) == lines == shop.target_lines()


def test_shard_that_another_task_works_on_is_busy(shop: Shop) -> None:
    put(shop, ["a"])
    run = shop.begin(shard_name(JOB, 5))
    with pytest.raises(JobBusyError):
        Task(shop).run("5:6")
    run.abort("over")


@pytest.mark.seldom
def test_partition_is_read_by_one_shard(shop: Shop) -> None:
    task = Task(shop, by="partition")
    names = [f"month={m}/f{i}" for m in range(1, 13) for i in range(3)]
    lines = put(shop, names)
    numbers = numbers_of(shop, names, "partition")

    for month in range(12):
        of_month = numbers[3 * month : 3 * month + 3]
        assert len(set(of_month)) == 1
    assert Counter(task.run_all(shards(4))) == lines
    more = put(shop, ["month=3/late", "month=13/new"])
    assert Counter(task.run_all(shards(5))) == more


def test_new_files_during_a_task_are_the_next_ones(shop: Shop) -> None:
    put(shop, ["a"])
    task, scans = Task(shop), SharedScans()
    task.source(0, scans).plan(PlanInput())
    (late,) = numbers_of(shop, ["b"])
    put(shop, ["b"])
    run = shop.begin(shard_name(JOB, late))
    assert "b.txt" not in {Path(p).name for p in run.plan("raw", task.source(late, scans)).files.paths}
    run.abort("seen")
    assert "line of b" in task.run_all(shards(1))


# ---- one listing, and what it says


class CountingFiles(LocalFileSystem):
    """Counts the listings."""

    def __init__(self) -> None:
        self.listings = 0

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        self.listings += 1
        return super().list(root, recursive=recursive, enters=enters, saw=saw)


def test_folder_is_listed_once_for_all_virtual_shards_of_a_task(shop: Shop) -> None:
    put(shop, ["a", "b"])
    files = CountingFiles()
    Task(shop, files=files).run("0:64")
    assert files.listings == 1


def test_file_that_changes_after_the_shared_listing_stops_its_shard_and_is_read_next_time(shop: Shop) -> None:
    put(shop, ["a"])
    (number,) = numbers_of(shop, ["a"])
    task, scans = Task(shop), SharedScans()
    task.source(0, scans).plan(PlanInput())
    shop.put("a.txt", "changed", seconds=1_700_000_500)
    run = shop.begin(shard_name(JOB, number))
    task.copy(run, number, run.plan("raw", task.source(number, scans)))

    with pytest.raises(SourceChangedError):
        run.commit()

    run.abort("changed")
    assert task.run_all(shards(1)) == ["changed"]
    assert shop.target_lines() == {"changed": 1}


def test_files_of_other_shards_are_counted_and_listed_on_demand(shop: Shop) -> None:
    names = [f"f{i}" for i in range(20)]
    put(shop, names)
    number = numbers_of(shop, names)[0]
    own = {name for name, at in zip(names, numbers_of(shop, names), strict=True) if at == number}

    plan = Task(shop).source(number).plan(PlanInput())

    assert {Path(path).stem for path in plan.files.paths} == own
    assert plan.stats()["listed"] == 20
    assert plan.stats()["skipped"] == {OTHER_SHARDS: 20 - len(own)}
    assert {Path(path).stem for path in left_out(plan)[OTHER_SHARDS].paths} == set(names) - own


def test_pending_of_a_shard_is_what_belongs_to_it(shop: Shop) -> None:
    Task(shop).run_all(shards(1))
    put(shop, ["a"])
    (number,) = numbers_of(shop, ["a"])
    found = {name: pending(shop.store, name) for name in shard_names(JOB)}
    assert [name for name, each in found.items() if each.contexts[0].files] == [shard_name(JOB, number)]
    assert all(each.is_known for each in found.values())


@pytest.mark.seldom
def test_file_of_another_shard_makes_none_late(shop: Shop) -> None:
    put(shop, ["new"], seconds=1_700_000_000)
    task = Task(
        shop,
        options={
            "options": FileOptions(late_after=timedelta(hours=1)),
            "clock": lambda: datetime(2023, 11, 15, tzinfo=UTC),
        },
    )
    assert task.run_all(shards(2)) == ["line of new"]
    old = [f"old{i}" for i in range(20)]
    put(shop, old, seconds=1_700_000_000 - 7200)
    own = [name for name in old if numbers_of(shop, [name]) == numbers_of(shop, ["new"])]
    assert len(task.run_all(shards(2))) == len(old) - len(own)


def test_types_of_partition_columns_are_settled_over_all_shards(shop: Shop) -> None:
    names = ["code=1/a", "code=x/b"]
    put(shop, names)
    task = Task(shop, by="partition")
    types = [task.source(number).plan(PlanInput()).partition_types for number in numbers_of(shop, names)]
    assert types == [{"code": "string"}, {"code": "string"}]


@pytest.mark.seldom
def test_start_now_leaves_to_each_shard_what_comes(shop: Shop) -> None:
    put(shop, [f"f{i}" for i in range(20)])
    task = Task(shop)
    assert task.run_all(shards(2), start="now") == []
    later = put(shop, ["later"])
    assert Counter(task.run_all(shards(3))) == later


# ---- one rule, and never beside the whole


def test_other_rule_is_refused_before_anything_is_read(shop: Shop) -> None:
    put(shop, ["m=1/a"])
    Task(shop).run_all(shards(2))
    layout = Layout.of(shop.store, JOB)
    with pytest.raises(OptionError, match="has read it by shard_by='path'"):
        layout.check_rule("raw", "partition")
    layout.check_rule("raw", "path")
    layout.check_rule("another", "partition")


def test_job_with_a_bookmark_as_a_whole_is_not_sharded(shop: Shop) -> None:
    put(shop, ["a"])
    shop.run(JOB)
    with pytest.raises(ChangeRefusedError, match="as a whole, up to run 1"):
        Layout.of(shop.store, JOB)
    reset(shop.store, JOB, reason="to be sharded", who="ada")
    assert Layout.of(shop.store, JOB).heads == {}


def test_sharded_job_is_not_begun_as_a_whole(shop: Shop) -> None:
    check_not_sharded(shop.store, JOB)
    put(shop, ["a"])
    Task(shop).run_all(shards(2))
    with pytest.raises(ChangeRefusedError, match="1 of its shards have"):
        check_not_sharded(shop.store, JOB)


def test_bookmark_of_the_whole_does_not_fit_a_shard(shop: Shop) -> None:
    whole, part = FileSource(FILES, [str(shop.raw)]), Task(shop).source(7)
    assert str(part.ref()) == f"{whole.ref()} shard 07/64 by path"
    assert len({Task(shop).source(number).ref() for number in range(64)}) == 64


# ---- upstreams


@pytest.mark.seldom
def test_shards_read_each_file_of_an_unsharded_upstream_once(shop: Shop) -> None:
    lines = put(shop, [f"f{i}" for i in range(20)])
    shop.run("whole")
    task = Task(shop)

    def read_all() -> list[str]:
        read: list[str] = []
        for number in range(64):
            run = shop.begin(shard_name(JOB, number))
            source = ShardedUpstream(UpstreamSource(shop.store, run.job, "whole"), VirtualShard(number))
            read += task.copy(run, number, run.plan("in", source))
            run.commit()
        return read

    assert Counter(read_all()) == lines
    assert read_all() == []
    more = put(shop, ["late"])
    shop.run("whole")
    assert Counter(read_all()) == more
    assert shop.target_lines() == lines + more


def test_shard_of_a_sharded_upstream_is_the_one_of_its_number(shop: Shop) -> None:
    assert upstream_of_shard(shop.store, "up", 3) is None  # nobody knows it yet
    shop.begin("whole").commit()
    assert upstream_of_shard(shop.store, "whole", 3) is None
    assert not is_sharded(shop.store, "whole")
    shop.begin(shard_name("up", 3)).commit()
    assert upstream_of_shard(shop.store, "up", 3) == "up~03"
    assert upstream_of_shard(shop.store, "up", 4) == "up~04"  # it has shards, and that one has not run yet


def test_bookmark_of_a_sharded_job_says_that_it_is_sharded(shop: Shop) -> None:
    put(shop, ["a"])
    task = Task(shop)
    task.run_all(shards(2))
    with pytest.raises(JobUnknownError, match=r"is sharded.*virtual shards.*Name one of these"):
        bookmark(shop.store, "copy")
    with pytest.raises(JobUnknownError, match="never") as unknown:
        bookmark(shop.store, "never")
    assert "sharded" not in str(unknown.value)
