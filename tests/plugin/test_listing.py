"""What lists of many jobs cost: what is read again, and what is kept for how long."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import StateCorruptError, StoreAccessError
from airflow_bookmarks.core.head import Failure, Head
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.lifecycle.changes.approval import protect, request
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.health.listed import health_of_all
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs
from airflow_bookmarks.plugin.presenters.job_list import JobQuery, job_list
from airflow_bookmarks.plugin.presenters.waiting_requests import request_page
from airflow_bookmarks.plugin.schemas.responses import JobList, Task
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Put, Update
from airflow_bookmarks.store.transitions.health import health_shards, put_health_shard
from tests.airflow.conftest import World
from tests.lifecycle.shop import FILES
from tests.plugin.conftest import run_of_dag

# Airflow is asked when the DAGs of jobs were due.
pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]


class Everything:
    """The sight of somebody who may look at each job."""

    def sees(self, dag_id: object) -> bool:
        return True


def listed(world: World, jobs: AllJobs, **wanted: Any) -> JobList:
    return job_list(world.store, Everything(), JobQuery(**wanted), jobs)  # type: ignore[arg-type]


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
    all_jobs = AllJobs(lambda: 0.0)
    run_of_dag(world, "flights")
    assert listed(world, all_jobs).total == 1

    run_of_dag(world, "flights", task_id="more")

    assert listed(world, all_jobs).total == 2


def test_index_of_many_jobs_is_read_once_in_five_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    copies(world, 1_000)
    clock, asked = [0.0], list[float]()
    real = world.store.jobs

    def counting() -> list[tuple[str, Attributes]]:
        asked.append(clock[0])
        return real()

    monkeypatch.setattr(world.store, "jobs", counting)
    all_jobs = AllJobs(lambda: clock[0])

    for clock[0] in (0.0, 2.0, 4.9, 5.0):
        assert listed(world, all_jobs, search="job.0000", limit=3).total == 10
    all_jobs.settle()
    assert asked == [0.0, 5.0]


@pytest.mark.parametrize(("took_s", "kept_s"), [(0.1, 10.0), (3.0, 30.0), (8.0, 60.0)])
def test_verdicts_are_kept_the_longer_the_longer_it_took_to_read_the_heads(
    world: World, monkeypatch: pytest.MonkeyPatch, took_s: float, kept_s: float
) -> None:
    world.shop.run("a")
    begun, clock, asked = world.store.now(), [0.0], list[Sequence[str]]()
    monkeypatch.setattr(world.store, "_clock", lambda: begun + timedelta(seconds=clock[0]))
    real = world.store.heads_or_damage

    def slow(jobs: Sequence[str]) -> Any:
        if jobs:  # not for the upstreams, of which there are none
            clock[0] += took_s
            asked.append(jobs)
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", slow)
    all_jobs = AllJobs(lambda: clock[0])

    all_jobs.look(world.store, with_health=True)
    clock[0] = kept_s - 0.01
    all_jobs.look(world.store, with_health=True)
    assert asked == [["a"]]
    clock[0] = kept_s
    all_jobs.look(world.store, with_health=True)
    assert asked == [["a"], ["a"]]


def test_job_that_has_left_a_state_is_not_listed_under_it_though_its_head_is_kept(world: World) -> None:
    all_jobs = AllJobs(lambda: 0.0)
    run_of_dag(world, "flights")
    run = world.shop.begin("copy")
    assert [row.job for row in listed(world, all_jobs, state="RUNNING").jobs] == ["copy"]

    run.abort("no")

    told = listed(world, all_jobs, state="RUNNING")
    assert (told.jobs, told.total) == ([], 0)


def test_jobs_that_have_left_a_state_make_room_for_others(world: World) -> None:
    all_jobs = AllJobs(lambda: 0.0)
    runs = {job: world.shop.begin(job) for job in ("a", "b", "c", "d")}
    assert listed(world, all_jobs, state="RUNNING", limit=2).total == 4

    runs["a"].abort("no")
    runs["b"].abort("no")

    told = listed(world, all_jobs, state="RUNNING", limit=2)
    assert ([row.job for row in told.jobs], told.total) == (["c", "d"], 2)


def test_rows_that_are_shown_are_read_anew_though_what_they_are_sorted_by_is_kept(world: World) -> None:
    all_jobs = AllJobs(lambda: 0.0)
    run_of_dag(world, "flights")
    assert [row.run_number for row in listed(world, all_jobs, sort="epoch").jobs] == [1]

    run_of_dag(world, "flights", number=2)

    assert [row.run_number for row in listed(world, all_jobs, sort="epoch").jobs] == [2]


def test_damaged_job_costs_the_others_no_request_each(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = copies(world, 350)
    world.store.table.transact([Update(world.store.keys(names[120]).head, set={"epoch": "one"})])
    asked: list[int] = []
    real = world.store.heads

    def counting(jobs: Sequence[str]) -> dict[str, Head]:
        asked.append(len(jobs))
        return real(jobs)

    monkeypatch.setattr(world.store, "heads", counting)

    found = world.store.heads_or_damage(names)

    assert len(found) == 350
    assert isinstance(found[names[120]], StateCorruptError)
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

    all_jobs = AllJobs(lambda: 0.0)
    shown = listed(world, all_jobs, sort="health", counts=True)

    assert [(row.job, row.health and row.health.state) for row in shown.jobs] == [
        ("b.failed", "FAILED"), ("c.new", "FAILED"), ("d.reset", "TAKEN BACK"), ("a.well", "OK")
    ]  # fmt: skip
    first = shown.jobs[0].health
    assert first is not None
    assert first.reason == "the last try failed: AnalysisException: no such column: price"
    assert first.since is not None
    assert shown.by_health == {"FAILED": 2, "TAKEN BACK": 1, "OK": 1}
    assert listed(world, all_jobs, sort="-health").jobs[0].job == "a.well"


def test_one_health_alone_is_shown_and_all_are_counted(world: World) -> None:
    world.shop.run("a.well")
    failing(world, "b.failed")
    shown = listed(world, AllJobs(lambda: 0.0), health="FAILED", search="a", counts=True)
    assert ([row.job for row in shown.jobs], shown.total) == (["b.failed"], 1)
    assert shown.by_health == {"OK": 1, "FAILED": 1}


def test_job_that_has_recovered_since_the_heads_were_read_is_not_shown_as_failed(world: World) -> None:
    failing(world, "a")
    all_jobs = AllJobs(lambda: 0.0)
    assert listed(world, all_jobs, health="FAILED").total == 1
    world.shop.run("a")
    assert listed(world, all_jobs, health="FAILED").jobs == []


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
    found = {row.job: row.health for row in listed(world, AllJobs(lambda: 0.0), sort="health").jobs}
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

    shown = job_list(world.store, Some(), JobQuery(sort="health"), AllJobs(lambda: 0.0))  # type: ignore[arg-type]
    (row,) = shown.jobs
    assert row.health is not None
    assert (row.health.state, row.health.reason) == ("REWOUND", "a job that it reads: rewound")


def test_row_of_a_failed_job_leads_to_the_log_of_its_last_try(world: World) -> None:
    job = run_of_dag(world, "flights")
    identity = RunIdentity("flights/manual__2/clean", 3, dag_id="flights", task_id="clean", dag_run_id="manual__2")
    ActiveRun.begin(world.store, job, identity, world.shop.environment).abort("SystemExit: 3")
    world.shop.begin("by.hand", run_id="hand").abort("no such column")

    found = {row.job: row.failed_task for row in listed(world, AllJobs(), sort="health").jobs}

    assert found == {
        job: Task(dag_id="flights", dag_run_id="manual__2", task_id="clean", map_index=-1, try_number=3),
        "by.hand": None,
    }
    world.shop.run(job)
    assert listed(world, AllJobs(), search=job).jobs[0].failed_task is None


def test_job_that_waits_for_a_second_person_is_waiting_in_the_list_too(world: World) -> None:
    ada = Identity("ada", True, "os")
    world.shop.run("a.well")
    world.shop.run("b.protected")
    protect(world.store, "b.protected", reason="money", who=ada)
    assert listed(world, AllJobs(), counts=True).by_health == {"OK": 2}

    request(world.store, "b.protected", Change("reset"), reason="a test", who=ada)

    shown = listed(world, AllJobs(), sort="health", counts=True)
    assert shown.by_health == {"OK": 1, "WAITING": 1}
    assert (shown.jobs[0].job, shown.jobs[0].health and shown.jobs[0].health.reason) == (
        "b.protected",
        "1 change waiting for a second person",
    )


def test_job_with_input_that_is_set_aside_is_paused_in_the_list_too(world: World) -> None:
    world.shop.run("a.well")
    broken = world.shop.put("broken.txt", "b")
    run = world.shop.begin("b.paused")
    run.plan("raw", FileSource(FILES, [str(world.shop.raw)]))
    run.quarantine("raw", {str(broken): "it is broken"})
    run.commit()

    shown = listed(world, AllJobs(), health="PAUSED", counts=True)

    assert shown.by_health == {"OK": 1, "PAUSED": 1}
    assert [(row.job, row.health and row.health.reason) for row in shown.jobs] == [
        ("b.paused", "1 file set aside because they can't be parsed")
    ]


# ---- very many jobs


def test_watch_records_what_it_found_for_the_list(world: World) -> None:
    names = copies(world, 1_000)
    set_failure(world, names[900])
    full = [world.store.now() - timedelta(hours=hour) for hour in range(COMMITS_KEPT, 0, -1)]
    for job in (names[900], names[901]):  # of the others the schedule of their DAG may say more
        world.store.table.transact([Update(world.store.keys(job).head, set=item.commits_attribute(full))])

    health_of_all(world.store)

    recorded = {job: one.health for shard in health_shards(world.store) for job, one in shard.records.items()}
    assert recorded == {names[900]: HealthState.FAILED, names[901]: HealthState.OK}


def recorded(world: World) -> list[str]:
    """Make very many jobs whose health is recorded, as of an hour ago."""
    names = copies(world, 1_000)
    all_jobs = AllJobs()
    all_jobs.look(world.store, with_health=True)
    all_jobs.settle()
    hour_ago = world.store.now() - timedelta(hours=1)
    for number, shard in enumerate(health_shards(world.store)):
        aged = {job: replace(record, judged_at=hour_ago) for job, record in shard.records.items()}
        put_health_shard(world.store, number, shard, aged)
    return names


@pytest.fixture
def slow_heads(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Have the index, and the heads of more than a page, be read only once the event is set."""
    go_on = threading.Event()
    index, heads = world.store.jobs, world.store.heads_or_damage

    def jobs() -> Any:
        assert go_on.wait(60)
        return index()

    def of_many(names: Sequence[str]) -> Any:
        assert len(names) <= 50 or go_on.wait(60)
        return heads(names)

    monkeypatch.setattr(world.store, "jobs", jobs)
    monkeypatch.setattr(world.store, "heads_or_damage", of_many)
    yield go_on
    go_on.set()


def set_failure(world: World, job: str) -> None:
    head = world.store.head(job)
    failure = item.failure_attribute(Failure(world.store.now(), "run", 1, head.version, "no such column: price"))
    world.store.table.transact([Update(world.store.keys(job).head, set=failure)])


@pytest.mark.parametrize(
    "wanted",
    [{"sort": sort} for sort in ("job", "-job", "dag_id", "-last_commit_at", "run_number", "-epoch", "state", "health")]
    + [{"health": "OK"}, {"state": "IDLE"}, {"search": "JOB.", "counts": True}, {"dag_id": "flights"}],
    ids=lambda wanted: "-".join(map(str, wanted.values())),
)
def test_first_page_is_there_before_index_and_heads_of_all_are_read(
    world: World, slow_heads: threading.Event, wanted: dict[str, Any]
) -> None:
    slow_heads.set()
    names = recorded(world)
    slow_heads.clear()

    page = listed(world, AllJobs(), **wanted)

    among = sorted(names if "search" in wanted or "dag_id" in wanted else [*names, "model"])
    assert page.total == len(among)
    assert len(page.jobs) == 50
    if wanted.get("sort") == "-job":
        assert page.jobs[0].job == among[-1]
    else:
        assert {row.job for row in page.jobs} <= set(among)


def test_age_of_what_is_known_is_told_until_it_is_read_anew(world: World, slow_heads: threading.Event) -> None:
    slow_heads.set()
    recorded(world)
    slow_heads.clear()
    all_jobs = AllJobs()

    def age() -> timedelta:
        as_of = listed(world, all_jobs, sort="health").health_as_of
        assert as_of is not None
        return world.store.now() - from_text(as_of)

    assert age() >= timedelta(hours=1)
    slow_heads.set()
    all_jobs.settle()
    assert age() < timedelta(minutes=2)
    assert listed(world, all_jobs, sort="job").health_as_of is None


def test_job_that_failed_since_it_was_recorded_is_never_shown_as_well(
    world: World, slow_heads: threading.Event
) -> None:
    slow_heads.set()
    names = recorded(world)
    slow_heads.clear()
    set_failure(world, names[7])
    set_failure(world, names[900])
    all_jobs = AllJobs()

    page = listed(world, all_jobs, sort="health", counts=True)

    assert [(row.job, row.health and row.health.state) for row in page.jobs[:2]] == [
        (names[7], "FAILED"), (names[0], "OK")
    ]  # fmt: skip
    assert page.by_health == {"FAILED": 1, "OK": 1_000}  # the other one is beyond the page
    assert names[7] not in {row.job for row in listed(world, all_jobs, health="OK").jobs}

    slow_heads.set()
    all_jobs.settle()
    page = listed(world, all_jobs, sort="health", counts=True)
    assert [row.job for row in page.jobs[:2]] == [names[7], names[900]]
    assert page.by_health == {"FAILED": 2, "OK": 999}


def test_commit_since_is_judged_before_what_is_only_old(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = recorded(world)
    world.store.table.transact([Update(world.store.keys(names[-1]).index, set={"run_number": 2})])
    asked: list[Sequence[str]] = []
    real = world.store.heads_or_damage

    def noted(jobs: Sequence[str]) -> Any:
        asked.append(jobs)
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", noted)
    all_jobs = AllJobs()

    all_jobs.look(world.store, with_health=True)
    all_jobs.settle()

    assert asked[0][0] == names[-1]


def test_job_that_was_handed_over_since_it_was_recorded_is_not_shown_to_its_former_readers(
    world: World, slow_heads: threading.Event
) -> None:
    slow_heads.set()
    names = recorded(world)
    slow_heads.clear()
    world.store.table.transact([Update(world.store.keys(names[3]).index, set={"dag_id": "secret"})])

    class Some(Everything):
        def sees(self, entry: object) -> bool:
            return isinstance(entry, dict) and entry.get("dag_id") == "flights"

    page = job_list(world.store, Some(), JobQuery(sort="health"), AllJobs())  # type: ignore[arg-type]

    assert names[2] in {row.job for row in page.jobs}
    assert names[3] not in {row.job for row in page.jobs}
    assert page.total == 999


def test_new_and_deleted_jobs_are_known_once_the_index_is_read(world: World, slow_heads: threading.Event) -> None:
    slow_heads.set()
    names = recorded(world)
    world.shop.run("a.new")
    delete(world.store, "model", typed_name="model", reason="a test", who="me")
    all_jobs = AllJobs()
    all_jobs.look(world.store, with_health=True)
    all_jobs.settle()

    page = listed(world, all_jobs, sort="job", counts=True)

    assert (page.jobs[0].job, page.total) == ("a.new", 1_001)
    assert page.by_health == {"OK": 1_001}
    assert {job for shard in health_shards(world.store) for job in shard.records} == {*names, "a.new", "model"}


def impatient() -> AllJobs:
    """Return one whose clock says at each look that a request has waited long enough."""
    ticks = itertools.count(0, 60)
    return AllJobs(lambda: float(next(ticks)))


def test_request_does_not_wait_until_the_health_of_many_jobs_is_read_for_the_first_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, go_on, real = copies(world, 1_000), threading.Event(), world.store.heads_or_damage
    set_failure(world, names[900])

    def of_many(jobs: Sequence[str]) -> Any:
        assert len(jobs) <= 50 or go_on.wait(60)
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", of_many)
    all_jobs = impatient()

    page = listed(world, all_jobs, sort="health", counts=True)
    assert (page.jobs, page.total, page.by_health, page.unjudged) == ([], 0, {}, 1_001)
    page = listed(world, all_jobs, sort="health", search="job.0007")
    assert (page.total, page.unjudged) == (0, len([name for name in names if "job.0007" in name]))
    page = listed(world, all_jobs, sort="job")
    assert (page.total, len(page.jobs), page.unjudged) == (1_001, 50, 0)

    go_on.set()
    all_jobs.settle()
    page = listed(world, all_jobs, sort="health", counts=True)
    assert (page.jobs[0].job, page.by_health, page.unjudged) == (names[900], {"FAILED": 1, "OK": 1_000}, 0)
    assert {job for shard in health_shards(world.store) for job in shard.records} == {*names, "model"}


def test_number_of_jobs_that_are_not_looked_at_yet_is_that_of_those_that_may_be_seen(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, go_on, real = copies(world, 1_000), threading.Event(), world.store.heads_or_damage

    def of_many(jobs: Sequence[str]) -> Any:
        assert len(jobs) <= 50 or go_on.wait(60)
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", of_many)
    world.store.table.transact([Update(world.store.keys(names[3]).index, set={"dag_id": "secret"})])

    class Some(Everything):
        def sees(self, entry: object) -> bool:
            return isinstance(entry, dict) and entry.get("dag_id") == "flights"

    all_jobs = impatient()
    try:
        page = job_list(world.store, Some(), JobQuery(sort="health"), all_jobs)  # type: ignore[arg-type]
        assert (page.total, page.unjudged) == (0, 999)
        requests = request_page(world.store, Some(), all_jobs, limit=25, offset=0)  # type: ignore[arg-type]
        assert (requests.total, requests.unjudged) == (0, 999)
    finally:
        go_on.set()
        all_jobs.settle()


def test_few_jobs_leave_no_record(world: World) -> None:
    run_of_dag(world, "flights")
    assert listed(world, AllJobs(), counts=True).by_health == {"OK": 1}
    assert all(shard.revision == 0 for shard in health_shards(world.store))


@pytest.mark.parametrize("refused", ["health_shards", "put_health_shard"])
def test_role_that_may_not_read_or_write_records_has_the_list_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object) -> None:
        raise StoreAccessError("not authorized")

    monkeypatch.setattr(f"airflow_bookmarks.lifecycle.health.recorded.{refused}", refuse)
    names = copies(world, 1_000)
    set_failure(world, names[900])
    all_jobs = AllJobs()
    all_jobs.look(world.store, with_health=True)
    all_jobs.settle()

    for _ in range(2):
        page = listed(world, all_jobs, sort="health", counts=True)
        assert (page.jobs[0].job, page.by_health) == (names[900], {"FAILED": 1, "OK": 1_000})
