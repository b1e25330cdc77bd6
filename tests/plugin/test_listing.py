"""What lists of many jobs cost: what is read again, and what is kept for how long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.plugin.presenters.all_heads import AllHeads
from airflow_bookmarks.plugin.presenters.job_list import JobQuery, job_list
from airflow_bookmarks.plugin.schemas.responses import JobList
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Put, Update
from tests.airflow.conftest import World
from tests.plugin.conftest import run_of_dag

# Airflow is asked when the DAGs of jobs were due.
pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]


class Everything:
    """The sight of somebody who may look at each job."""

    def sees(self, dag_id: object) -> bool:
        return True


def listed(world: World, heads: AllHeads, **wanted: Any) -> JobList:
    return job_list(world.store, Everything(), JobQuery(**wanted), heads)  # type: ignore[arg-type]


def copies(world: World, count: int) -> list[str]:
    """Make jobs that look like one that has run; return their names."""
    world.shop.run("model")
    head = item.head_attributes(world.store.head("model"))
    names = [f"job.{number:05}" for number in range(count)]
    for start in range(0, count, 50):
        part = [world.store.keys(name) for name in names[start : start + 50]]
        index: Attributes = {"dag_id": "flights", "run_number": 1}
        world.store.table.transact([Put(keys.head, head) for keys in part] + [Put(keys.index, index) for keys in part])
    return names


def test_job_that_has_just_run_for_the_first_time_is_listed(world: World) -> None:
    heads = AllHeads(lambda: 0.0)
    run_of_dag(world, "flights")
    assert listed(world, heads).total == 1

    run_of_dag(world, "flights", task_id="more")

    assert listed(world, heads).total == 2


def test_index_of_many_jobs_is_read_once_in_five_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    copies(world, 1_000)
    clock, asked = [0.0], list[float]()
    real = world.store.jobs

    def counting() -> list[tuple[str, Attributes]]:
        asked.append(clock[0])
        return real()

    monkeypatch.setattr(world.store, "jobs", counting)
    heads = AllHeads(lambda: clock[0])

    for clock[0] in (0.0, 2.0, 4.9, 5.0):
        assert listed(world, heads, search="job.0000", limit=3).total == 10
    assert asked == [0.0, 5.0]


@pytest.mark.parametrize(("took_s", "kept_s"), [(0.1, 10.0), (3.0, 30.0), (8.0, 60.0)])
def test_heads_are_kept_the_longer_the_longer_it_took_to_read_them(
    world: World, monkeypatch: pytest.MonkeyPatch, took_s: float, kept_s: float
) -> None:
    world.shop.run("a")
    clock, asked = [0.0], list[Sequence[str]]()
    real = world.store.heads_or_damage

    def slow(jobs: Sequence[str]) -> Any:
        clock[0] += took_s
        asked.append(jobs)
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", slow)
    heads = AllHeads(lambda: clock[0])

    heads.of(world.store, ["a"])
    clock[0] += kept_s - 0.01
    heads.of(world.store, ["a"])
    assert len(asked) == 1
    clock[0] += 0.02
    heads.of(world.store, ["a"])
    assert len(asked) == 2


def test_job_that_has_left_a_state_is_not_listed_under_it_though_its_head_is_kept(world: World) -> None:
    heads = AllHeads(lambda: 0.0)
    run_of_dag(world, "flights")
    run = world.shop.begin("copy")
    assert [row.job for row in listed(world, heads, state="RUNNING").jobs] == ["copy"]

    run.abort("no")

    told = listed(world, heads, state="RUNNING")
    assert (told.jobs, told.total) == ([], 0)


def test_jobs_that_have_left_a_state_make_room_for_others(world: World) -> None:
    heads = AllHeads(lambda: 0.0)
    runs = {job: world.shop.begin(job) for job in ("a", "b", "c", "d")}
    assert listed(world, heads, state="RUNNING", limit=2).total == 4

    runs["a"].abort("no")
    runs["b"].abort("no")

    told = listed(world, heads, state="RUNNING", limit=2)
    assert ([row.job for row in told.jobs], told.total) == (["c", "d"], 2)


def test_rows_that_are_shown_are_read_anew_though_what_they_are_sorted_by_is_kept(world: World) -> None:
    heads = AllHeads(lambda: 0.0)
    run_of_dag(world, "flights")
    assert [row.run_number for row in listed(world, heads, sort="epoch").jobs] == [1]

    run_of_dag(world, "flights", number=2)

    assert [row.run_number for row in listed(world, heads, sort="epoch").jobs] == [2]


def test_damaged_job_costs_the_others_no_request_each(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = copies(world, 350)
    world.store.table.transact([Update(world.store.keys(names[120]).head, set={"epoch": "one"})])
    asked: list[int] = []
    real = world.store.heads

    def counting(jobs: Sequence[str]) -> dict[str, Head]:
        asked.append(len(jobs))
        return real(jobs)

    monkeypatch.setattr(world.store, "heads", counting)

    heads = AllHeads().of(world.store, names)

    assert len(heads) == 350
    assert isinstance(heads[names[120]], StateCorruptError)
    assert sum(number == 100 for number in asked) == 3
    assert len(asked) <= 4 + 2 * 7  # the damaged one is found by halves of its hundred


def failing(world: World, job: str) -> None:
    world.shop.run(job)
    world.shop.begin(job, run_id="next").abort("AnalysisException: no such column: price")


def test_worst_health_comes_first_with_its_reason_and_is_counted(world: World) -> None:
    world.shop.run("a.well")
    failing(world, "b.failed")
    world.shop.begin("c.new", run_id="first").abort("it has not worked once")
    world.shop.run("d.reset")
    reset(world.store, "d.reset", reason="a test", who="me")

    heads = AllHeads(lambda: 0.0)
    shown = listed(world, heads, sort="health", counts=True)

    assert [(row.job, row.health and row.health.state) for row in shown.jobs] == [
        ("b.failed", "FAILED"), ("c.new", "FAILED"), ("d.reset", "TAKEN BACK"), ("a.well", "OK")
    ]  # fmt: skip
    first = shown.jobs[0].health
    assert first is not None
    assert first.reason == "the last try failed: AnalysisException: no such column: price"
    assert first.since is not None
    assert shown.by_health == {"FAILED": 2, "TAKEN BACK": 1, "OK": 1}
    assert listed(world, heads, sort="-health").jobs[0].job == "a.well"


def test_one_health_alone_is_shown_and_all_are_counted(world: World) -> None:
    world.shop.run("a.well")
    failing(world, "b.failed")
    shown = listed(world, AllHeads(lambda: 0.0), health="FAILED", search="a", counts=True)
    assert ([row.job for row in shown.jobs], shown.total) == (["b.failed"], 1)
    assert shown.by_health == {"OK": 1, "FAILED": 1}


def test_job_that_has_recovered_since_the_heads_were_read_is_not_shown_as_failed(world: World) -> None:
    failing(world, "a")
    heads = AllHeads(lambda: 0.0)
    assert listed(world, heads, health="FAILED").total == 1
    world.shop.run("a")
    assert listed(world, heads, health="FAILED").jobs == []


def rewound_below_readers(world: World, upstream: str, *readers: str) -> None:
    """Rewind a job of two runs below what others have read of it."""
    for name in "ab":
        world.shop.put(f"{name}.txt", name)
        world.shop.run(upstream)
    for reader in readers:
        world.shop.run(reader, upstream=upstream)
    rewind(world.store, upstream, 1, reason="a test", who="me")


def test_job_behind_a_rewound_one_is_sorted_by_that(world: World) -> None:
    rewound_below_readers(world, "copy", "report")
    found = {row.job: row.health for row in listed(world, AllHeads(lambda: 0.0), sort="health").jobs}
    assert [(job, health and health.state) for job, health in found.items()] == [
        ("report", "REWOUND"), ("copy", "TAKEN BACK")
    ]  # fmt: skip
    assert found["report"] is not None
    assert "'copy' went back to run 1" in found["report"].reason


@pytest.mark.parametrize("readers", [["report"], ["report~00", "report~01"]])
def test_name_of_an_upstream_that_may_not_be_seen_is_in_no_reason(world: World, readers: list[str]) -> None:
    rewound_below_readers(world, "secret", *readers)

    class Some(Everything):
        def sees(self, entry: object) -> bool:
            return bool(entry) and world.store.index_entry("secret") != entry

    shown = job_list(world.store, Some(), JobQuery(sort="health"), AllHeads(lambda: 0.0))  # type: ignore[arg-type]
    (row,) = shown.jobs
    assert row.health is not None
    assert (row.health.state, row.health.reason) == ("REWOUND", "a job that it reads: rewound")
