"""Promise DEP-11 in Spark: a script reads its share of a job in runs of their own, one for each virtual shard."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, MisuseError, OptionError
from airflow_bookmarks.core.rules.shard import owners, ranges, shard_name
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from tests.spark.lake import Lake, lines_of, reader_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def name_in(lake: Lake, number: int, suffix: str = "txt", prefix: str = "f") -> str:
    """Return the name of a file that belongs to a virtual shard."""
    names = [f"{prefix}{i}.{suffix}" for i in range(2000)]
    numbers: list[int] = virtual_shards([lake.path("raw", name) for name in names], "path").tolist()
    return names[numbers.index(number)]


def copy(lake: Lake, shard: Any, **kwargs: Any) -> list[str]:
    """Work on a share as a script does; return the lines read."""
    read: list[str] = []
    for job in lake.job(shard=shard, **kwargs).shards():
        with job:
            frame = lake.read(job)
            read += lines_of(frame)
            job.write(frame, "out").text(lake.path("copy"))
    return read


def target(lake: Lake) -> Counter[str]:
    return Counter(row[0] for row in lake.spark.read.text(lake.path("copy")).collect())


@pytest.mark.seldom
def test_shares_read_each_file_once_and_append_to_one_target(lake: Lake) -> None:
    for number in (0, 1, 2):
        lake.put(name_in(lake, number), f"line {number}")

    assert copy(lake, range(2)) == ["line 0", "line 1"]
    assert copy(lake, "1:3") == ["line 2"]

    assert target(lake) == {"line 0": 1, "line 1": 1, "line 2": 1}
    assert [lake.head(shard_name("copy", number)).run_number for number in (0, 1, 2)] == [1, 2, 1]


@pytest.mark.seldom
def test_shard_that_moves_to_a_new_task_goes_on_where_it_stands(lake: Lake) -> None:
    (moved,) = (number for number in range(64) if owners(32)[number] != owners(33)[number] and owners(33)[number] == 32)
    task = owners(32)[moved]
    lake.put(name_in(lake, moved), "first")
    assert copy(lake, (task, 32)) == ["first"]
    lake.put(name_in(lake, moved, prefix="later"), "second")
    assert copy(lake, (task, 33)) == []
    assert copy(lake, (32, 33)) == ["second"]
    assert target(lake) == {"first": 1, "second": 1}


def test_script_for_shards_runs_a_job_without_shards_as_a_whole(lake: Lake) -> None:
    lake.put("a.txt", "a")
    assert copy(lake, None) == ["a"]
    assert copy(lake, None) == []
    assert lake.head("copy").run_number == 2


def test_sharded_job_is_no_run_by_itself(lake: Lake) -> None:
    with pytest.raises(MisuseError, match="each virtual shard is a run of its own"), lake.job(shard=(0, 4)):
        pass


def test_share_comes_from_the_operator(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.shard", "63:64")
    lake.put(name_in(lake, 63), "mine")
    assert copy(lake, None) == ["mine"]
    with pytest.raises(OptionError, match="Leave one of them out"):
        lake.job(shard=(0, 4))


def test_share_that_is_none_is_refused(lake: Lake) -> None:
    with pytest.raises(OptionError, match="expected"):
        lake.job(shard=(4, 4))
    with pytest.raises(OptionError, match="Replay a shard by its own name"):
        lake.job(shard=(0, 4), replay=1)


def test_shard_that_never_had_a_file_has_the_columns_of_the_others(lake: Lake) -> None:
    lake.put(name_in(lake, 0, "csv"), "id,name", "1,ada")
    columns = []
    for job in lake.job(shard=range(2)).shards():
        with job:
            frame = job.read("raw").option("header", True).option("inferSchema", True).csv(lake.path("raw"))
            columns.append((job.virtual_shard, frame.dtypes, frame.count()))
    assert columns == [(0, [("id", "int"), ("name", "string")], 1), (1, [("id", "int"), ("name", "string")], 0)]


def test_overwrite_by_a_shard_is_refused(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "a")
    (job,) = lake.job(shard=range(1)).shards()
    with pytest.raises(OptionError, match="would delete what the others wrote"), job:
        job.write(lake.read(job), "out").mode("overwrite").text(lake.path("copy"))
    assert copy(lake, range(1)) == ["a"]


def test_other_rule_is_refused(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "a")
    copy(lake, range(1))
    for job in lake.job(shard=range(1, 2)).shards():
        with pytest.raises(OptionError, match="has read it by shard_by='path'"), job:
            lake.read(job, shard_by="partition")
    with pytest.raises(OptionError, match="'path' or 'partition'"), lake.job("other") as job:
        lake.read(job, shard_by="size")


def test_partition_is_read_by_one_shard(lake: Lake) -> None:
    for name in ("m=1/a.txt", "m=1/b.txt"):
        lake.put(name, name)
    (number,) = set(virtual_shards([lake.path("raw", "m=1", "a.txt")], "partition").tolist())
    for job in lake.job(shard=range(number, number + 1)).shards():
        with job:
            assert lines_of(lake.read(job, shard_by="partition")) == ["m=1/a.txt", "m=1/b.txt"]


def test_whole_and_shards_of_one_name_are_refused(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "a")
    copy(lake, range(1))
    with pytest.raises(ChangeRefusedError, match="its shards have"), lake.job():
        pass
    assert lake.head("copy").lease is None
    lake.copy("whole")
    with pytest.raises(ChangeRefusedError, match="as a whole"):
        next(lake.job("whole", shard=(0, 2)).shards())


@pytest.mark.seldom
def test_paused_share_reads_what_is_new_and_changes_nothing(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "a")
    assert copy(lake, range(1), option="pause") == ["a"]
    assert copy(lake, range(1)) == ["a"]
    assert copy(lake, range(1), option="pause") == []
    assert copy(lake, range(1), option="disable") == ["a"]


# ---- upstreams


def read_upstream(lake: Lake, name: str, shard: Any, upstream: str, **kwargs: Any) -> list[str]:
    read: list[str] = []
    for job in lake.job(name, shard=shard).shards():
        with job:
            read += lines_of(reader_of(job, "in", **kwargs).schema("value STRING").upstream(upstream))
    return read


@pytest.mark.seldom
def test_shards_read_the_shards_of_their_upstream(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "zero")
    lake.put(name_in(lake, 1), "one")
    copy(lake, range(2))
    assert read_upstream(lake, "after", range(1), "copy") == ["zero"]
    assert read_upstream(lake, "after", range(2), "copy") == ["one"]
    assert read_upstream(lake, "after", range(2), "copy") == []


def test_whole_job_is_told_how_to_read_a_sharded_upstream(lake: Lake) -> None:
    lake.put(name_in(lake, 0), "zero")
    copy(lake, range(1))
    with pytest.raises(OptionError, match="is sharded, and this job is not"):
        read_upstream(lake, "after", None, "copy")
    assert read_upstream(lake, "after", None, "copy~00") == ["zero"]


@pytest.mark.seldom
@pytest.mark.slow
def test_shards_share_out_what_an_unsharded_upstream_has_published(lake: Lake) -> None:
    for i in range(5):
        lake.put(f"f{i}.txt", f"line {i}")
        lake.copy("whole")
    read = [line for text in ranges(range(30), range(30, 64)) for line in read_upstream(lake, "after", text, "whole")]
    assert Counter(read) == Counter(f"line {i}" for i in range(5))
    with pytest.raises(OptionError, match="shard_by: an option of files"):
        read_upstream(lake, "other", range(1), "whole", shard_by="partition")
