"""Advice on real jobs: each fault is planted by real runs, and a healthy job of the same kind gets none (OBS-8)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_bookmarks.cli.command import run as run_command
from airflow_bookmarks.core.advice.advice import AdviceCode
from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.maintenance.doctor import JobAdvice, advise
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Key, Put, Update
from tests.lifecycle.batch_driver import Loop
from tests.lifecycle.shop import Shop

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
START = datetime(2013, 1, 31, 0, 5, tzinfo=UTC)
MANY = 101  # folders, of which a listing is dear


class Hands:
    """A clock that goes on when it is set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def store(tmp_path: Path, hands: Hands) -> BookmarkStore:
    """Open a fresh store whose clock the test sets."""
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test", clock=hands)
    store.init()
    return store


def advised(shop: Shop, job: str = "copy") -> JobAdvice:
    (found,) = advise(shop.store, jobs=[job])
    return found


def codes(shop: Shop, job: str = "copy") -> list[AdviceCode]:
    return [each.code for each in advised(shop, job).advice]


def runs_of(shop: Shop, *folders: str, **how: Any) -> None:
    """Make a run for each folder, which gets one more file before."""
    for folder in folders:
        shop.put(f"{folder}/{shop.runs_made}.txt", folder)
        shop.run(**how)


# ---- depth


def test_four_partition_columns_are_told_with_what_their_listing_took(shop: Shop) -> None:
    seconds = iter(range(10_000))
    shop.environment = RunEnvironment(monotonic=lambda: float(next(seconds)))
    runs_of(shop, *(f"region=eu/year=2013/month=1/day={day}" for day in range(1, 5)))
    (found,) = advised(shop).advice
    assert found.code is AdviceCode.DEEP_PARTITIONS
    assert "columns are region, year, month, day; runs 1-4 read 4 new files from 4 folders" in found.evidence
    assert "runs 1-4 listed 10 folders, 6 of them without a new file, and 10 files, 6 of them known" in found.cost
    assert "not recorded" not in found.cost
    assert 0 < float(found.figures["plan_seconds"] or 0) < float(found.figures["run_seconds"] or 0)


def test_three_partition_columns_are_not(shop: Shop) -> None:
    runs_of(shop, *(f"year=2013/month=1/day={day}" for day in range(1, 5)))
    assert advised(shop).runs == 4
    assert codes(shop) == []


# ---- width against schedule


def every(shop: Shop, hands: Hands, step: timedelta, folder: str, times: int = 16, **how: Any) -> None:
    """Make runs at a distance, each with one new file in the folder of its time."""
    for _ in range(times):
        hands.now += step
        runs_of(shop, hands.now.strftime(folder), **how)


def test_partition_of_a_day_is_coarse_for_a_job_of_each_hour(shop: Shop, hands: Hands) -> None:
    every(shop, hands, HOUR, "dt=%Y-%m-%d")
    (found,) = advised(shop).advice
    assert found.code is AdviceCode.COARSE_PARTITIONS
    assert "commits every 1 h (the median of its last commits)" in found.evidence
    assert "covers 1 d: 24 runs" in found.evidence
    assert (
        "runs 7-16 found 10 new files; in the partition that was then the newest, they listed at least 45 files"
        in found.cost
    )


def test_group_that_is_read_again_costs_its_bytes(shop: Shop, hands: Hands) -> None:
    every(shop, hands, HOUR, "dt=%Y-%m-%d", times=4, options=FileOptions(reread="partition"))
    (found,) = advised(shop).advice
    size = len("dt=2013-01-31\n")  # of the files; the runs read 1, 2, 3 and 4 of them
    assert found.figures["bytes_read_again"] == (1 + 2 + 3) * size
    assert "60% of what they read" in found.cost


@pytest.mark.parametrize(("step", "folder"), [(DAY, "dt=%Y-%m-%d"), (HOUR, "dt=%Y-%m-%d/hour=%H"), (HOUR, "part=1")])
def test_partition_as_wide_as_the_schedule_is_not_coarse(
    shop: Shop, hands: Hands, step: timedelta, folder: str
) -> None:
    every(shop, hands, step, folder)
    assert codes(shop) == []


# ---- order


def many(shop: Shop, name: Callable[[int], str]) -> None:
    for number in range(MANY):
        shop.put(f"{name(number)}/first.txt", "x")
    shop.run()


def test_days_that_come_backwards_are_told_with_the_folders_listed(shop: Shop) -> None:
    newest = datetime(2013, 6, 30, tzinfo=UTC)
    many(shop, lambda number: f"dt={newest - number * DAY:%Y-%m-%d}")
    runs_of(shop, *(f"dt={newest - (MANY + number) * DAY:%Y-%m-%d}" for number in range(3)))
    (found,) = advised(shop).advice
    assert found.code is AdviceCode.UNORDERED_PARTITIONS
    assert "the values of dt descend" in found.what
    assert "3 of 3 new files in 3 runs lie below" in found.evidence
    folders = sum(MANY + number for number in (1, 2, 3))
    assert f"listed {folders} folders, {folders - 3} of them without a new file" in found.cost


def test_values_in_no_order_are_told(shop: Shop) -> None:
    many(shop, lambda number: f"customer={number * 7}")
    runs_of(shop, *(f"customer={number}" for number in (400, 3, 200, 12)))
    (found,) = advised(shop).advice
    assert found.code is AdviceCode.UNORDERED_PARTITIONS
    assert "the values of customer come in no order" in found.what


def test_days_that_come_forwards_are_in_order(shop: Shop) -> None:
    line = FileOptions(partition_time="dt", late_after=7 * DAY)
    oldest = datetime(2013, 1, 1, tzinfo=UTC)
    for number in range(MANY):
        shop.put(f"dt={oldest + number * DAY:%Y-%m-%d}/first.txt", "x")
    shop.run(options=line)
    runs_of(shop, *(f"dt={oldest + (MANY + number) * DAY:%Y-%m-%d}" for number in range(4)), options=line)
    assert advised(shop).runs == 5
    assert codes(shop) == []


# ---- filter


def test_source_without_a_filter_is_told_with_what_is_listed_for_each_new_file(shop: Shop) -> None:
    oldest = datetime(2013, 1, 1, tzinfo=UTC)
    many(shop, lambda number: f"dt={oldest + number * DAY:%Y-%m-%d}")
    runs_of(shop, *(f"dt={oldest + (MANY + number) * DAY:%Y-%m-%d}" for number in range(3)))
    (found,) = advised(shop).advice
    assert found.code is AdviceCode.NO_PARTITION_FILTER
    assert found.figures["files_read"] == 3
    assert found.figures["files_known"] == sum(MANY + number for number in range(3))
    assert "partition_time='dt'" in found.action


@pytest.mark.parametrize("predicate", ["dt >= '2013-01-01'", None])
def test_source_with_a_filter_or_with_few_folders_is_not(shop: Shop, predicate: str | None) -> None:
    count = 9 if predicate is None else MANY
    options = FileOptions(partition_filter=predicate)
    oldest = datetime(2013, 1, 1, tzinfo=UTC)
    for number in range(count):
        shop.put(f"dt={oldest + number * DAY:%Y-%m-%d}/first.txt", "x")
    shop.run(options=options)
    runs_of(shop, *(f"dt={oldest + (count + number) * DAY:%Y-%m-%d}" for number in range(3)), options=options)
    assert codes(shop) == []


# ---- which runs count


def deep(shop: Shop, job: str = "copy") -> None:
    runs_of(shop, *(f"a=1/b=2/c=3/d={number}" for number in range(3)), job=job)


def test_undone_runs_are_no_evidence(shop: Shop) -> None:
    deep(shop)
    reset(shop.store, "copy", reason="a test", who="me")
    assert advised(shop) == JobAdvice("copy")


def test_batches_of_a_loop_count_their_listing_once(shop: Shop) -> None:
    for number in range(3):
        shop.put(f"a=1/b=2/c=3/d={number}/x.txt", "x")
    batches = list(Loop(shop, shop.begin(in_batches=True), FileOptions(bound=Bound(max_files=1))).batches())
    (found,) = advised(shop).advice
    assert len(batches) == advised(shop).runs == 3
    assert "runs 1-3 read 3 new files" in found.evidence
    assert found.cost.startswith("run 1 listed 3 folders")


def test_consumer_of_another_job_lists_no_folders(shop: Shop) -> None:
    deep(shop)
    shop.run("down", upstream="copy")
    assert advised(shop, "down").advice == ()


def test_job_that_is_not_there_is_an_error(shop: Shop) -> None:
    with pytest.raises(JobUnknownError, match="no bookmark named 'other'"):
        advise(shop.store, jobs=["other"])


def test_no_folder_is_listed(shop: Shop) -> None:
    deep(shop)
    before = advised(shop)
    for path in sorted(shop.root.rglob("*"), reverse=True):
        if path.suffix == ".txt":
            path.unlink()
        elif path.is_dir():
            path.rmdir()
    assert advised(shop) == before
    assert before.advice


# ---- damage


def damage_run(shop: Shop, number: int, **changes: Any) -> None:
    run = shop.store.committed_run("copy", number)
    assert run is not None
    shop.store.table.transact([Update(shop.store.keys("copy").run(run.key), set=changes)])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"state": "LOST"}, "state"),
        ({"metrics": {"seconds": {"plan": "soon"}, "contexts": {}}}, "the seconds that run 2.2 has recorded"),
        ({"metrics": {"seconds": {"plan": "nan"}, "contexts": {}}}, "the seconds that run 2.2 has recorded"),
    ],
)
def test_damaged_run_is_left_out_and_counted(shop: Shop, change: dict[str, Any], why: str) -> None:
    deep(shop)
    damage_run(shop, 2, **change)
    found = advised(shop)
    assert [each.code for each in found.advice] == [AdviceCode.DEEP_PARTITIONS]
    assert found.runs == 2
    ((item, said),) = found.damaged_runs.items()
    assert item.startswith("RUN#")
    assert why in said


def test_damaged_job_hides_no_other(shop: Shop) -> None:
    deep(shop)
    deep(shop, "other")
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"fence": "0.0"})])
    shop.store.table.transact([Put(Key("test#JOBS", "a/b"), {})])
    found = {each.job: each for each in advise(shop.store)}
    assert set(found) == {"copy", "other", "a/b"}
    assert "fence" in str(found["copy"].unreadable)
    assert "can't be the name of a job" in str(found["a/b"].unreadable)
    assert [each.code for each in found["other"].advice] == [AdviceCode.DEEP_PARTITIONS]


JUNK: list[Any] = [None, "", 0, -1, True, [], {}, "x", "5", 10**25, [1], {"a": 1}, "\0", 2**63]


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [each for name, part in inner for each in paths(part, (*path, name))]
    return [*([path] if path else []), *below]


@pytest.mark.seldom
def test_any_attribute_may_be_damaged(shop: Shop) -> None:
    deep(shop)
    items = dict(shop.store.table.query(shop.store.keys("copy").partition))
    random, answers = Random(8), set[bool]()
    for _ in range(300):
        key = random.choice(sorted(items))
        damaged: Attributes = copy.deepcopy(items[key])
        *above, last = random.choice(paths(damaged))
        holder: Any = damaged
        for part in above:
            holder = holder[part]
        holder[last] = random.choice(JUNK)
        shop.store.table.transact([Put(key, damaged)])
        found = advised(shop)
        assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["job"] == "copy"
        answers.add(found.unreadable is None and not found.damaged_runs)
        shop.store.table.transact([Put(key, items[key])])
    assert answers == {True, False}


# ---- the command line


def command(shop: Shop, *words: str) -> int:
    path = shop.store.table.describe()["path"]
    return run_command(["--store", f"sqlite:///{path}?namespace=test", *words])


def test_advice_is_no_damage(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    deep(shop)
    assert command(shop, "doctor", "copy", "--advise") == 0
    said = capsys.readouterr().out
    assert said.startswith("copy raw: deep-partitions\n  what      Files lie 4 partition columns deep")
    assert "\n  cost      runs 1-3 listed 6 folders" in said


def test_advice_for_programs(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    deep(shop)
    assert command(shop, "doctor", "--advise", "--output", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["job"], row["runs"], row["damaged_runs"], row["unreadable"]) == ("copy", 3, {}, None)
    (found,) = row["advice"]
    assert (found["code"], found["ctx"], found["figures"]["depth"]) == ("deep-partitions", "raw", 4)


def test_job_without_advice_says_so(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    runs_of(shop, "a=1")
    assert command(shop, "doctor", "--advise") == 0
    assert capsys.readouterr().out == "no advice\n"


def test_damage_is_told_beside_the_advice(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    deep(shop)
    deep(shop, "other")
    damage_run(shop, 2, state="LOST")
    assert command(shop, "doctor", "--advise") == 0
    assert "copy: 1 run left out" in capsys.readouterr().out
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"fence": "0.0"})])
    assert command(shop, "doctor", "--advise") == 1
    assert "copy: can't be read\n" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--repair", "--lost", "--no-files"])
def test_options_without_effect_are_refused(shop: Shop, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(shop, "doctor", "--advise", option) == 1
    assert "Nothing was read." in capsys.readouterr().err
