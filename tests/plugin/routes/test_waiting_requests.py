"""The requests of all jobs that wait for approval, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import protect, reject, request
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.store.table import Attributes, Key, Update
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, run_of_dag

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

ANN = Identity("ann", True, "os")


def get(site: Site, user: str = "ada", **params: Any) -> Any:
    answer = site.as_user(user).get(f"{API}/requests", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def asked(world: World, job: str, change: Change | None = None, who: Identity = ANN) -> str:
    """Protect a job, unless it is, and ask for a change of it; return the id of the request."""
    if not world.store.head(job).protected:
        protect(world.store, job, reason="money", who=who)
    return request(world.store, job, change or Change("reset"), reason=f"{job} is wrong", who=who).id


def jobs(told: Any) -> list[str]:
    return [each["job"] for each in told["requests"]]


def test_requests_of_all_jobs_are_listed_the_oldest_first_with_what_they_ask(
    site: Site, world: World, dags: object
) -> None:
    nights, flights = run_of_dag(world, "nights"), run_of_dag(world, "flights")
    world.shop.run("copy")
    ids = [asked(world, job) for job in (nights, flights)] + [asked(world, nights, Change("unprotect"))]

    told = get(site)

    assert (jobs(told), [each["id"] for each in told["requests"]]) == ([nights, flights, nights], ids)
    assert (told["total"], told["damaged"], told["as_of"] is None) == (2, [], False)
    first = told["requests"][0]
    assert (first["who"], first["why"], first["dag_id"]) == ("ann", f"{nights} is wrong", "nights")
    assert first["change"] == {"kind": "reset"}
    assert first["made_at"] < first["valid_until"]


def test_job_with_a_worse_health_is_not_forgotten(site: Site, world: World) -> None:
    world.shop.run("copy")
    asked(world, "copy")
    world.shop.begin("copy").abort("no such column")

    assert site.as_user("ada").get(f"{API}/jobs/copy").json()["health"]["state"] == "FAILED"
    assert jobs(get(site)) == ["copy"]


@pytest.mark.parametrize(
    ("user", "sees", "may_change"),
    [("ada", 2, True), ("vera", 2, False), ("flo", 1, True), ("nia", 1, True), ("none", 0, False)],
)
def test_each_sees_the_requests_of_the_jobs_that_they_may_look_at(
    site: Site, world: World, dags: object, user: str, sees: int, may_change: bool
) -> None:
    for dag_id in ("flights", "nights"):
        asked(world, run_of_dag(world, dag_id))

    told = get(site, user)

    assert (len(told["requests"]), told["total"]) == (sees, sees)
    assert {each["may_change"] for each in told["requests"]} <= {may_change}
    assert {each["may_approve"] for each in told["requests"]} <= {may_change}


def test_own_request_can_be_withdrawn_and_not_approved(site: Site, world: World) -> None:
    world.shop.run("copy")
    asked(world, "copy", who=Identity("ada", True, "airflow"))

    (mine,), (other,) = get(site)["requests"], get(site, "otto")["requests"]

    assert (mine["may_change"], mine["may_approve"]) == (True, False)
    assert (other["may_change"], other["may_approve"]) == (True, True)


def test_what_was_decided_since_is_gone_at_once(site: Site, world: World, dags: object) -> None:
    job, moved = run_of_dag(world, "flights"), run_of_dag(world, "flights", task_id="more")
    asked_for = asked(world, job)
    asked(world, moved)
    assert get(site, "flo")["total"] == 2

    reject(world.store, job, asked_for, reason="no", who=Identity("ben", True, "os"))

    told = get(site, "flo")
    assert (jobs(told), told["total"]) == ([moved], 1)


def test_only_jobs_of_the_page_are_read(site: Site, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        world.shop.run(name)
    for name in "bcd":
        asked(world, name)
    get(site)  # from now on it is known which jobs have requests
    looked: list[str] = []
    real = type(world.store.table).query

    def counting(self: Any, partition: str, **how: Any) -> Iterator[tuple[Key, Attributes]]:
        looked.append(partition)
        yield from real(self, partition, **how)

    monkeypatch.setattr(type(world.store.table), "query", counting)

    told = get(site, limit=1, offset=1)

    assert (jobs(told), told["total"]) == (["c"], 3)
    events = {world.store.keys(name).partition for name in "abcd"}
    assert [each for each in looked if each in events] == [world.store.keys("c").partition]


def test_job_whose_requests_are_damaged_is_named_beside_the_others(site: Site, world: World) -> None:
    world.shop.run("copy")
    bad, good = asked(world, "copy"), asked(world, "copy")
    world.store.table.transact([Update(world.store.keys("copy").event(bad), set={"preview": "x"})])

    told = get(site)

    assert ([each["id"] for each in told["requests"]], told["damaged"]) == ([good], ["copy"])


def test_value_of_a_state_is_hidden_where_the_connection_hides_it(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.shop.run("copy")
    asked(world, "copy", Change("set-state", state="token", value='"a secret"'))
    monkeypatch.setattr(BookmarkHook, "hides_state", property(lambda self: True))

    (told,) = get(site)["requests"]

    assert told["change"] == {"kind": "set-state", "state": "token", "value": "(hidden)"}
