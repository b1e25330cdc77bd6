"""Promises RUN-15 and RUN-16 in Spark: a script drains a backlog in batches, each a run of its own, in one session."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from tests.spark.lake import Lake, lines_of
from tests.spark.own_process import classic_environment

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def drain(lake: Lake, name: str = "copy", *, reading: Any = None, given: Any = None, **bounds: Any) -> list[list[str]]:
    """Copy what is new batch by batch; return the lines of each."""
    read: list[list[str]] = []
    for batch in lake.job(name, **(given or {})).batches(**bounds):
        with batch:
            frame = lake.read(batch, **(reading or {}))
            read.append(lines_of(frame))
            batch.write(frame, "out").text(lake.path(name))
    return read


def target(lake: Lake, name: str = "copy") -> list[str]:
    return lines_of(lake.spark.read.schema("value STRING").text(lake.path(name)))


def put_many(lake: Lake, count: int) -> list[str]:
    for i in range(count):
        lake.put(f"f{i}.txt", f"line {i}")
    return [f"line {i}" for i in range(count)]


@pytest.mark.seldom
def test_backlog_is_drained_oldest_first_and_each_batch_is_a_run(lake: Lake) -> None:
    lines = put_many(lake, 5)
    assert drain(lake, max_files=2) == [lines[:2], lines[2:4], lines[4:]]
    assert target(lake) == lines
    head = lake.head()
    assert (head.run_number, head.published, head.lease, head.publishing) == (3, 3, None, None)
    assert drain(lake, max_files=2) == [[]]
    assert lake.head().run_number == 4


def test_one_bounded_run_leaves_the_rest_to_the_next(lake: Lake) -> None:
    put_many(lake, 3)
    with lake.job() as job:
        assert lines_of(lake.read(job, max_files="2")) == ["line 0", "line 1"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"over_bound": 1}
    with lake.job() as job:
        assert lines_of(lake.read(job, max_bytes=1)) == ["line 2"]


@pytest.mark.seldom
def test_window_makes_a_batch_of_each_window_that_has_files(lake: Lake) -> None:
    for i, seconds in enumerate((0, 60, 3600, 9 * 3600)):
        os.utime(lake.put(f"f{i}.txt", f"line {i}"), (seconds, seconds))
    assert drain(lake, window=timedelta(hours=1)) == [["line 0", "line 1"], ["line 2"], ["line 3"]]


@pytest.mark.seldom
def test_context_with_a_bound_of_its_own_keeps_it(lake: Lake) -> None:
    put_many(lake, 3)
    assert drain(lake, reading={"max_files": 1}, max_files=2) == [["line 0"], ["line 1"], ["line 2"]]


def test_context_that_is_drained_first_is_empty_until_the_others_are(lake: Lake) -> None:
    put_many(lake, 3)
    lake.put("one.txt", "one", folder="other")
    read: list[tuple[list[str], list[str]]] = []
    for batch in lake.job().batches(max_files=1):
        with batch:
            others = batch.read("others").schema("value STRING").text(lake.path("other"))
            read.append((lines_of(lake.read(batch)), lines_of(others)))
        if len(read) == 1:
            lake.put("two.txt", "two", folder="other")  # it came after the first look
    assert read == [(["line 0"], ["one"]), (["line 1"], []), (["line 2"], [])]


def test_error_in_a_batch_ends_the_loop_and_keeps_the_batches_before_it(lake: Lake) -> None:
    put_many(lake, 3)

    def script() -> None:
        for batch in lake.job(run_id="task").batches(max_files=1):
            with batch:
                if lines_of(lake.read(batch)) != ["line 0"]:
                    raise RuntimeError("the second batch")

    with pytest.raises(RuntimeError, match="the second batch"):
        script()
    assert (lake.head().run_number, lake.head().lease) == (1, None)
    assert drain(lake, given={"run_id": "task", "attempt": 2}, max_files=5) == [["line 1", "line 2"]]


def test_error_outside_of_a_batch_gives_the_job_back(lake: Lake) -> None:
    put_many(lake, 3)

    def script() -> None:
        for batch in lake.job().batches(max_files=1):
            with batch:
                lake.read(batch).collect()
            raise RuntimeError("between two batches")

    with pytest.raises(RuntimeError):
        script()
    assert (lake.head().run_number, lake.head().lease) == (1, None)


KILLED = """
import os, signal, sys
from pyspark.sql import SparkSession
from airflow_bookmarks.spark import BookmarkedJob
root, store = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for batch in BookmarkedJob(spark, "copy", store=store, run_id="task", attempt=1).batches(max_files=2):
    with batch:
        batch.write(batch.read("raw").schema("value STRING").text(f"{root}/raw"), "out").text(f"{root}/copy")
        if batch.run_number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_driver_that_is_killed_within_a_batch_loses_that_one_alone(lake: Lake, tmp_path: Path) -> None:
    lines = put_many(lake, 5)
    command = [sys.executable, "-c", KILLED, str(lake.root), f"sqlite:///{tmp_path}/bookmarks.db?namespace=test"]
    environment = {**classic_environment(), "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert target(lake) == lines[:2]
    assert drain(lake, given={"run_id": "task", "attempt": 2}, max_files=2) == [lines[2:4], lines[4:]]
    assert target(lake) == lines
    assert (lake.head().run_number, lake.staged("copy/_bookmarks")) == (3, [])


def test_loop_that_is_left_by_break_gives_the_job_back(lake: Lake) -> None:
    put_many(lake, 3)
    for batch in lake.job(run_id="task").batches(max_files=1):
        with batch:
            lake.read(batch).collect()
        break
    assert lake.head().lease is None
    for batch in lake.job(run_id="other").batches(max_files=1):
        if batch.summary is None and lake.head().run_number == 2:
            break  # before its block
        with batch:
            lake.read(batch).collect()
    assert (lake.head().run_number, lake.head().lease) == (2, None)
    assert lake.run() == ["line 2"]


def test_batch_that_is_not_run_ends_the_loop(lake: Lake) -> None:
    put_many(lake, 2)
    with pytest.raises(MisuseError, match=r"Write `with batch:`"):
        for _ in lake.job().batches(max_files=1):
            pass
    assert lake.run() == ["line 0", "line 1"]


def test_batch_whose_error_was_caught_ends_the_loop(lake: Lake) -> None:
    put_many(lake, 2)

    def script() -> None:
        for batch in lake.job().batches(max_files=1):
            with contextlib.suppress(ValueError), batch:
                raise ValueError("caught")

    with pytest.raises(MisuseError, match="a batch was aborted"):
        script()
    assert lake.head().lease is None


def test_job_that_has_begun_has_no_batches(lake: Lake) -> None:
    with lake.job() as job, pytest.raises(MisuseError, match="each batch is a run of its own"):
        job.batches(max_files=1)


def test_bound_that_is_none_is_refused_before_anything_is_read(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"max_files=0: expected"):
        lake.job().batches(max_files=0)
    with pytest.raises(OptionError, match="files don't know their rows"):
        drain(lake, max_rows=5)
    assert lake.head().lease is None


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["pause", "disable"])
def test_batches_of_a_run_that_changes_nothing_walk_on_as_well(lake: Lake, option: str) -> None:
    put_many(lake, 3)
    assert drain(lake, given={"option": option}, max_files=2) == [["line 0", "line 1"], ["line 2"]]
    assert target(lake) == ["line 0", "line 1", "line 2"]
    assert drain(lake, max_files=5) == [["line 0", "line 1", "line 2"]]


@pytest.mark.seldom
def test_upstream_is_drained_by_whole_runs_up_to_what_was_published_at_first(lake: Lake) -> None:
    for i in range(3):
        lake.put(f"f{i}.txt", f"line {i}")
        lake.copy("up")
    read: list[list[str]] = []
    for batch in lake.job("down").batches(max_rows=2):
        with batch:
            read.append(lines_of(batch.read("in").upstream("up")))
        if len(read) == 1:
            lake.put("late.txt", "late")
            lake.copy("up")
    assert read == [["line 0", "line 1"], ["line 2"]]
    with lake.job("down") as job:
        assert lines_of(job.read("in").upstream("up")) == ["late"]


def test_shards_have_batches_of_their_own(lake: Lake) -> None:
    names = [f"f{i}.txt" for i in range(2000)]
    numbers = virtual_shards([lake.path("raw", name) for name in names], "path").tolist()
    # Which file is in which shard depends on the folder of this test: three of each.
    mine = [name for shard in (0, 1) for name in [n for n, at in zip(names, numbers, strict=True) if at == shard][:3]]
    for name in mine:
        lake.put(name, name)
    read: list[tuple[int | None, int]] = []
    for job in lake.job(shard=range(2)).shards():
        for batch in job.batches(max_files=2):
            with batch:
                read.append((batch.virtual_shard, len(lines_of(lake.read(batch)))))
    assert sum(count for _, count in read) == len(mine)
    assert all(1 <= count <= 2 for _, count in read)
    assert [number for number, _ in read] == [0, 0, 1, 1]


@pytest.mark.seldom
def test_replay_of_one_batch_runs_the_script_once(lake: Lake) -> None:
    put_many(lake, 3)
    drain(lake, max_files=1)
    assert drain(lake, given={"replay": 2}, max_files=1) == [["line 1"]]
    assert target(lake) == ["line 0", "line 1", "line 2"]


@pytest.mark.seldom
def test_renamed_job_is_resolved_once(lake: Lake) -> None:
    from airflow_bookmarks.lifecycle.changes.naming import rename

    put_many(lake, 3)
    drain(lake, "old", max_files=2)
    rename(lake.store, "old", "new", reason="test", who="me")
    put_many(lake, 0)
    lake.put("more.txt", "more")
    assert drain(lake, "new", max_files=1) == [["more"]]
    assert lake.head("old").run_number == 3


def test_overwrite_in_a_loop_is_refused_and_leaves_the_target(lake: Lake) -> None:
    put_many(lake, 2)
    for batch in lake.job().batches(max_files=1):
        writer = batch.begin().write(lake.read(batch), "out").mode("overwrite")
        with pytest.raises(OptionError, match="by a batch"):
            writer.parquet(lake.path("copy"))
        batch.abort("refused")
        break
    assert drain(lake, max_files=1) == [["line 0"], ["line 1"]]
