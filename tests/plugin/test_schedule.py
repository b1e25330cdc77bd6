"""When the DAG of a job was due, as Airflow's database knows it, and what the page makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG, Asset
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from sqlalchemy import delete, update

from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.plugin.airflow_database.schedule import schedules_of
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import Player, World

from .conftest import API, Site, run_of_dag

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

MONDAY, DAY, HOUR = datetime(2026, 1, 5, 2, tzinfo=UTC), timedelta(days=1), timedelta(hours=1)
JOB = "flights.clean"


@pytest.fixture
def due(player: Player) -> Iterator[None]:
    """Make a DAG with a daily schedule, one that waits for an asset, and one that others trigger."""
    schedules: dict[str, Any] = {"flights": "@daily", "assets": [Asset("s3://lake/orders")], "nights": None}
    for name, schedule in schedules.items():
        with DAG(name, schedule=schedule, start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False) as dag:
            player.sync(dag)
        paused(name, is_paused=False)  # new ones are
    yield
    with create_session() as session:
        session.execute(delete(DagRun).where(DagRun.dag_id.in_(schedules)))
        session.execute(delete(DagModel).where(DagModel.dag_id.in_(schedules)))


def was_due(dag_id: str, times: Sequence[datetime], run_type: str = DagRunType.SCHEDULED) -> None:
    with create_session() as session:
        for at in times:
            run_id = f"{run_type}__{at.isoformat()}"
            session.add(
                DagRun(dag_id=dag_id, run_id=run_id, run_type=run_type, run_after=at, state=DagRunState.SUCCESS)
            )


def paused(dag_id: str, *, is_paused: bool = True) -> None:
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == dag_id).values(is_paused=is_paused))


def committed(world: World, dag_id: str, *commits: datetime, task_id: str = "clean") -> str:
    """Make a job of a DAG that has committed at these times."""
    job = run_of_dag(world, dag_id, task_id=task_id)
    key = world.store.keys(job).head
    world.store.table.transact([Update(key, set={"commits": [to_text(at) for at in commits]})])
    return job


def told(world: World, now: datetime, *jobs: str) -> dict[str, tuple[int, bool]]:
    """Return how many times each job was due, and whether its DAG is paused."""
    entries = {job: world.store.index_entry(job) or {} for job in jobs}
    found = schedules_of(world.store.heads(list(jobs)), entries, now)
    return {job: (len(each.times), each.is_paused) for job, each in found.items()}


def test_times_since_each_job_has_committed_are_those_of_the_scheduler(world: World, due: None) -> None:
    was_due("flights", [MONDAY + DAY * day for day in range(5)])
    was_due("flights", [MONDAY + DAY * 5], DagRunType.MANUAL)
    late = committed(world, "flights", MONDAY + HOUR)
    later = committed(world, "flights", MONDAY + 3 * DAY + HOUR, task_id="more")
    assert told(world, MONDAY + 9 * DAY, late, later) == {late: (4, False), later: (1, False)}


def test_dag_that_has_no_times_of_its_own_or_is_not_known_says_nothing(world: World, due: None) -> None:
    was_due("assets", [MONDAY + DAY], DagRunType.ASSET_TRIGGERED)
    was_due("nights", [MONDAY + DAY], DagRunType.MANUAL)
    jobs = [committed(world, dag_id, MONDAY) for dag_id in ("assets", "nights", "elsewhere")]
    own = world.shop.run("copy")[1].job  # belongs to no DAG
    assert told(world, MONDAY + 9 * DAY, *jobs, own) == {}


def test_job_whose_commits_tell_that_it_is_well_is_not_looked_up(world: World, due: None) -> None:
    job = committed(world, "flights", *(MONDAY + DAY * day for day in range(5)))
    assert told(world, MONDAY + 4 * DAY + HOUR, job) == {}
    assert told(world, MONDAY + 9 * DAY, job) == {job: (0, False)}


@pytest.mark.seldom
def test_more_jobs_than_one_query_asks_for(world: World, due: None) -> None:
    was_due("flights", [MONDAY + DAY * day for day in range(30)])
    head = world.store.head(committed(world, "flights", MONDAY))
    many = {f"job {n}": replace(head, commits=(MONDAY + timedelta(minutes=n),)) for n in range(120)}
    entry = {"dag_id": "flights"}
    found = schedules_of(many, dict.fromkeys(many, entry), MONDAY + 90 * DAY)
    assert {len(each.times) for each in found.values()} == {20}
    assert len(found) == 120


def test_page_says_late_by_the_schedule_and_paused_for_a_paused_dag(
    site: Site, world: World, due: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = committed(world, "flights", *(MONDAY + DAY * day for day in range(5)))
    monkeypatch.setattr(BookmarkStore, "now", lambda self: MONDAY + 12 * DAY)

    def health() -> set[tuple[str, str]]:
        asked = site.as_user("ada")
        (row,) = asked.get(f"{API}/jobs", params={"sort": "health"}).json()["jobs"]
        each = (row["health"], asked.get(f"{API}/jobs/{job}").json()["health"])
        return {(one["state"], one["reason"]) for one in each}

    assert {state for state, _ in health()} == {"OK"}  # its DAG rests
    was_due("flights", [MONDAY + DAY * day for day in (10, 11)])
    assert health() == {
        ("LATE", "its last commit was 8 d ago; it usually commits every 1 d, and 2 times of its schedule have passed")
    }
    paused("flights")
    assert health() == {
        ("PAUSED", "its DAG is paused in Airflow; its last commit was 8 d ago; it usually commits every 1 d")
    }
