"""Promises of shards (DEP-11): 64 fixed parts, shared out evenly, and a task more moves no more than its own share."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.core.rules.shard import (
    VIRTUAL_SHARDS,
    ShardShare,
    TableShard,
    VirtualShard,
    check_shard_by,
    owners,
    ranges,
    shard_by_of,
    shard_name,
    shard_names,
    shards,
)
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from airflow_bookmarks.core.settings import Settings

ALL = range(VIRTUAL_SHARDS)
task_counts = st.integers(1, VIRTUAL_SHARDS)
names = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=12)
paths = st.lists(names, min_size=1, max_size=5).map(lambda parts: "/" + "/".join(parts))


# ---- which task works on which


@given(task_counts)
def test_shares_are_disjoint_and_complete(tasks: int) -> None:
    taken = [number for text in shards(tasks) for number in ShardShare.of(text).numbers]
    assert sorted(taken) == list(ALL)


@given(task_counts)
def test_no_task_has_more_than_its_part_rounded_up_nor_less_than_rounded_down(tasks: int) -> None:
    sizes = {len(ShardShare.of((task, tasks)).numbers) for task in range(tasks)}
    assert sizes <= {VIRTUAL_SHARDS // tasks, ceil(VIRTUAL_SHARDS / tasks)}


@given(st.integers(1, VIRTUAL_SHARDS - 1))
def test_one_task_more_takes_its_part_and_nothing_else_moves(tasks: int) -> None:
    before, after = owners(tasks), owners(tasks + 1)
    moved = [number for number in ALL if before[number] != after[number]]
    assert len(moved) == VIRTUAL_SHARDS // (tasks + 1) <= VIRTUAL_SHARDS / (tasks + 1)
    assert {after[number] for number in moved} == {tasks}


def test_shares_are_what_they_were_in_the_first_release() -> None:
    # Nothing is lost if they change, but DAGs whose tasks have different resources would find other shards in them.
    digest = hashlib.blake2b(bytes(owner for tasks in range(1, 65) for owner in owners(tasks)), digest_size=8)
    assert digest.hexdigest() == "8c2cb209869dbf58"


@pytest.mark.parametrize("tasks", [0, -1, 65])
def test_more_tasks_than_virtual_shards_are_refused(tasks: int) -> None:
    with pytest.raises(OptionError, match="1 to 64"):
        shards(tasks)


# ---- what a task is given


@given(task_counts, st.data())
def test_share_survives_its_text(tasks: int, data: st.DataObject) -> None:
    share = ShardShare.of((data.draw(st.integers(0, tasks - 1)), tasks))
    assert ShardShare.of(share.text) == share


def test_share_is_a_task_of_several_or_a_range() -> None:
    assert ShardShare.of((0, 1)).numbers == tuple(ALL)
    assert ShardShare.of(range(3, 5)) == ShardShare.of("3:5") == ShardShare.of(" 3 : 5 ")
    assert ShardShare.of("1/2") == ShardShare.of((1, 2))


@pytest.mark.parametrize(
    "wrong",
    ["", "3", "4/4", "-1/4", "0/0", "1/65", "0/4/8", "0:65", "5:5", "6:5", "a/b", "٣/4", "0-16", "{{ i }}/4",
     (4, 4), (-1, 4), (0, 65), (True, 2), ("0", "4"), (0, 1, 2), [0, 4], 3, None,
     range(0), range(60, 65), range(-1, 4), range(0, 64, 2), range(4, 0, -1)],
)  # fmt: skip
def test_what_is_no_share_is_refused(wrong: Any) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        ShardShare.of(wrong)


@given(st.sets(st.integers(1, VIRTUAL_SHARDS - 1), max_size=8), st.randoms())
def test_ranges_that_cover_all_are_taken_in_any_order(cuts: set[int], random: Any) -> None:
    edges = [0, *sorted(cuts), VIRTUAL_SHARDS]
    parts = [range(low, high) for low, high in pairwise(edges)]
    random.shuffle(parts)
    texts = ranges(*parts)
    assert [ShardShare.of(text).numbers for text in texts] == [tuple(part) for part in parts]


def test_ranges_that_overlap_are_refused() -> None:
    with pytest.raises(OptionError, match="virtual shard 31 is in two"):
        ranges(range(32), range(31, 64))


@pytest.mark.parametrize("parts", [(range(32), range(33, 64)), (range(63),), ()])
def test_ranges_with_a_hole_are_refused(parts: tuple[range, ...]) -> None:
    with pytest.raises(OptionError, match="hole"):
        ranges(*parts)


# ---- which file belongs where


@given(st.lists(paths, max_size=50, unique=True))
def test_each_file_belongs_to_one_virtual_shard_whatever_else_is_there(files: list[str]) -> None:
    numbers = virtual_shards(files, "path")
    assert numbers.tolist() == [int(virtual_shards([path], "path")[0]) for path in files]
    assert all(number in ALL for number in numbers)


def test_hash_is_the_documented_one() -> None:
    path = "/lake/raw/flights/flights_2013-01-01.csv"
    digest = hashlib.blake2b(path.encode(), digest_size=8).digest()
    assert virtual_shards([path], "path").tolist() == [int.from_bytes(digest, "little") >> 58]
    partition = hashlib.blake2b(b"year=2013/month=a b", digest_size=8).digest()
    expected = int.from_bytes(partition, "little") >> 58
    assert virtual_shards(["/lake/year=2013/month=a%20b/x.csv"], "partition").tolist() == [expected]


def test_file_keeps_its_shard_whichever_client_lists_it() -> None:
    files = [f"{scheme}lake/raw/a.csv" for scheme in ("s3://", "s3a://")]
    assert len(set(virtual_shards(files, "path").tolist())) == 1
    assert virtual_shards(files[:1], "path").tolist() == virtual_shards(files, "path").tolist()[:1]


def test_name_that_is_no_unicode_has_a_shard() -> None:
    assert len(virtual_shards(["/raw/\udcff.csv"], "path")) == 1


@given(st.lists(names, min_size=1, max_size=10), names)
def test_files_of_one_partition_belong_together_in_every_source(files: list[str], value: str) -> None:
    found = virtual_shards([f"/{root}/month={value}/{name}" for root in ("a", "b/c") for name in files], "partition")
    assert len(set(found.tolist())) == 1


def test_file_in_no_partition_is_refused_where_partitions_are_hashed() -> None:
    with pytest.raises(OptionError, match=r"'/raw/b\.csv' lies in no partition"):
        virtual_shards(["/raw/m=1/a.csv", "/raw/b.csv"], "partition")


def test_files_spread_over_all_virtual_shards() -> None:
    counts = Counter(virtual_shards([f"/raw/day={i}/part-0.csv" for i in range(64_000)], "path").tolist())
    # 1000 each on average; five standard deviations of a binomial are 157.
    assert set(counts) == set(ALL)
    assert all(843 <= count <= 1157 for count in counts.values())


def test_no_files_belong_nowhere() -> None:
    assert virtual_shards([], "partition").dtype == np.uint8


def test_other_things_to_hash_are_refused() -> None:
    with pytest.raises(OptionError, match="'path' or 'partition'"):
        check_shard_by("size")


# ---- names


def test_each_virtual_shard_is_a_job_with_a_name() -> None:
    assert shard_names("flights.clean")[:2] == ["flights.clean~00", "flights.clean~01"]
    assert len(set(shard_names("a"))) == VIRTUAL_SHARDS


def test_name_that_leaves_no_room_is_refused() -> None:
    assert len(shard_name("a" * 247, 63)) == 250
    with pytest.raises(NameInvalidError):
        shard_name("a" * 248, 0)


def test_fingerprint_says_what_is_hashed() -> None:
    assert shard_by_of(f"files:/raw {VirtualShard(63, 'partition')}") == "partition"
    assert shard_by_of("files:/raw") is None
    assert shard_by_of("files:/raw shard 01/64 by path/data") is None
    assert shard_by_of(f"jdbc:conn:shop orders {TableShard(7, 'Line No')}") == "column Line No"
    assert shard_by_of(f"jdbc:conn:shop orders {TableShard(7)}") == "key"


def test_share_travels_in_the_settings() -> None:
    conf = Settings(job="flights.clean", shard="1/4").to_conf()
    assert conf["spark.bookmarks.shard"] == "1/4"
    assert Settings.from_conf(conf).shard == "1/4"
