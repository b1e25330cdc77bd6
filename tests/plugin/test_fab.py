"""The routes with Airflow's FAB auth manager: its roles, and rights on one DAG. Everything here is the real thing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("airflow.providers.fab", reason="the FAB auth manager is not installed")

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.sharing import hand_over
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.bookmark_store import open_store
from tests.airflow.conftest import World
from tests.lifecycle.shop import Shop

from .conftest import API, run_of_dag, three_runs
from .fab_people import PEOPLE
from .fab_server import FabServer, fab_server

# an Airflow of its own with the roles of FAB
pytestmark = [pytest.mark.thorough, pytest.mark.airflow, pytest.mark.xdist_group("fab")]

OURS, THEIRS, NOBODYS = "flights.clean", "nights.report", "notebook"
# Of a DAG that this Airflow does not have; and one that flights owned before nights.
LOST, HANDED = "deleted.clean", "handed.over"
JOBS = (LOST, OURS, HANDED, THEIRS, NOBODYS)  # by name


@dataclass(frozen=True)
class Rights:
    """Which of the jobs somebody may look at, and which they may change."""

    reads: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


RIGHTS: Mapping[str, Rights] = {
    "ada": Rights(JOBS, JOBS),
    "otto": Rights(JOBS, JOBS),
    # A user of Airflow edits runs, and only looks at assets.
    "uma": Rights(JOBS, (LOST, OURS, HANDED, THEIRS)),
    "vera": Rights(JOBS),
    "vip": Rights(JOBS),
    "pia": Rights(),
    "flo": Rights((OURS,), (OURS,)),
    "rae": Rights((OURS,), (OURS,)),
    "edo": Rights((OURS,)),
    "wim": Rights((OURS,)),
    "nia": Rights((THEIRS,), (THEIRS,)),
}
_SURE = {"reason": "asked for", "expected_version": 999}
# What each route is sent. Jobs are protected, versions not theirs, requests none: who may change them changes nothing.
_BODIES: Mapping[str, Mapping[str, Any]] = {
    "/preview": {"kind": "reset"},
    "/changes": {"kind": "reset", **_SURE},
    "/protection": {"reason": "asked for"},
    "/backfill/preview": {},
    "/backfill": {"reason": "asked for", "expected_versions": {}, "confirm": ""},
    "/unlock": {"reason": "asked for", "held_by": "nobody/at/all", "confirm": ""},
    "/shards/preview": {"kind": "reset"},
    "/shards/changes": {"kind": "reset", **_SURE},
    "/ownership/preview": {"kind": "unshare", "dag": "days"},
    "/ownership": {"kind": "unshare", "dag": "days", **_SURE, "expected_owner": None, "expected_shared_with": []},
    "/requests": {"kind": "undo", **_SURE},
    "/requests/{id}/approve": {},
    "/requests/{id}/reject": {"reason": "asked for"},
}
_ALLOWED = {200, 404, 409}


@dataclass(frozen=True)
class House:
    """The server, and the store that it shows."""

    server: FabServer
    world: World
    routes: tuple[tuple[str, str], ...]

    def ask(self, user: str | None, method: str, path: str, job: str = OURS) -> tuple[int, str]:
        """Ask a route for a job; return the status and what was told."""
        address = path.format(job=job, number=1, id="0", dag_id="flights")
        body = _BODIES.get(path.partition("{job}")[2]) if method == "POST" else None
        if body is not None and body.keys() & {"expected_version", "confirm"}:
            body = {**body, "confirm": job}
        answer = self.server.as_user(user).request(method, f"/bookmarks{address}", json=body)
        return answer.status_code, answer.text

    def of_jobs(self) -> list[tuple[str, str]]:
        """Return the routes that are about one job."""
        return [(method, path) for method, path in self.routes if "{job}" in path]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Run one server for all of these tests: a job of the DAG flights, one of nights that reads it, others."""
    from airflow_bookmarks.plugin.openapi import openapi_document

    folder = tmp_path_factory.mktemp("fab")
    uri = f"sqlite:///{folder}/bookmarks.db?namespace=test"
    store = open_store(f"{uri}&create=true")
    store.init()
    shop = Shop(folder, store)
    shop.raw.mkdir()
    world = World(folder, store, shop, uri)
    _make_jobs(world)
    paths = openapi_document()["paths"]
    routes = tuple(sorted((verb.upper(), path) for path, verbs in paths.items() for verb in verbs))
    with fab_server(folder / "airflow", uri) as server:
        yield House(server, world, routes)


def _make_jobs(world: World) -> None:
    three_runs(world, "flights")
    identity = RunIdentity("nights/1/report", 1, dag_id="nights", task_id="report", dag_run_id="1")
    run = ActiveRun.begin(world.store, THEIRS, identity, world.shop.environment)
    world.shop.copy(run, upstream=OURS)
    run.commit()
    world.shop.run(NOBODYS)
    run_of_dag(world, "deleted", LOST)
    run_of_dag(world, "flights", HANDED)
    hand_over(world.store, HANDED, "nights", reason="asked for", who="ada")
    for job in JOBS:
        protect(world.store, job, reason="asked for", who=Identity("ada", True, "airflow"))


def _state(world: World) -> str:
    return json.dumps(sorted((str(key), str(item)) for key, item in world.store.table.scan("test")))


def test_logged_out_every_route_answers_401(house: House) -> None:
    assert len(house.routes) == 26
    assert {house.ask(None, method, path)[0] for method, path in house.routes} == {401}


def test_login_is_that_of_fab(house: House) -> None:
    nobody = house.server.as_user(None)

    wrong = nobody.post("/auth/token", json={"username": "flo", "password": "not hers"})
    forged = nobody.get(f"{API}/me", headers={"Authorization": "Bearer no.such.token"})

    assert (wrong.status_code, forged.status_code) == (401, 403)
    for name in PEOPLE:
        assert house.server.as_user(name).get(f"{API}/me").json()["name"] == name


@pytest.mark.parametrize("user", RIGHTS)
def test_list_holds_the_jobs_that_a_role_may_look_at(house: House, user: str) -> None:
    client = house.server.as_user(user)

    listed = client.get(f"{API}/jobs", params={"sort": "job"}).json()
    of_dag = client.get(f"{API}/dags/flights/jobs").json()
    of_other = client.get(f"{API}/dags/nights/jobs").json()

    reads = RIGHTS[user].reads
    assert ([row["job"] for row in listed["jobs"]], listed["total"]) == (list(reads), len(reads))
    assert [row["job"] for row in of_dag["jobs"]] == [job for job in reads if job == OURS]
    assert [row["job"] for row in of_other["jobs"]] == [job for job in reads if job in (HANDED, THEIRS)]


@pytest.mark.parametrize("user", RIGHTS)
def test_every_route_of_a_job_is_open_to_whom_it_is_promised(house: House, user: str) -> None:
    rights, before = RIGHTS[user], _state(house.world)

    for job in JOBS:
        for method, path in house.of_jobs():
            status, said = house.ask(user, method, path, job)
            is_open = job in (rights.reads if method == "GET" else rights.changes)
            refused = {403} if job in rights.reads else {404}
            expected = ({200} if method == "GET" else _ALLOWED) if is_open else refused
            assert status in expected, (user, method, path, job, said)

    assert _state(house.world) == before


@pytest.mark.parametrize("user", RIGHTS)
def test_names_of_hidden_jobs_appear_nowhere(house: House, user: str) -> None:
    reads = RIGHTS[user].reads
    hidden = re.compile("|".join(re.escape(job) for job in JOBS if job not in reads) or r"(?!)")

    for job in (*reads, "no.such"):
        told = [house.ask(user, method, path, job)[1] for method, path in house.routes]
        # Where files lie says nothing of jobs, but here, where each writes to a folder of its own name.
        assert not [text for text in told if hidden.search(text.replace(f"{house.world.folder}/{OURS}/", ""))]


@pytest.mark.parametrize("user", ["flo", "pia"])
def test_job_that_is_hidden_is_refused_as_one_that_is_not_there(house: House, user: str) -> None:
    for method, path in house.of_jobs():
        absent = house.ask(user, method, path, "no.such")[1].replace("no.such", "?")
        for job in (THEIRS, HANDED, LOST, NOBODYS):
            status, said = house.ask(user, method, path, job)
            assert (status, said.replace(job, "?")) == (404, absent)


def test_readers_of_a_job_are_counted_and_not_named(house: House) -> None:
    for user, named in {"flo": [], "vera": [THEIRS]}.items():
        client = house.server.as_user(user)
        told = client.get(f"{API}/jobs/{OURS}").json()
        graph = client.get(f"{API}/jobs/{OURS}/graph").json()
        assert [each["job"] for each in told["consumers"]] == named
        assert (told["hidden_consumers"], graph["hidden"]) == (1 - len(named), 1 - len(named))


@pytest.mark.parametrize("user", ["flo", "rae", "uma"])
def test_who_may_edit_runs_of_a_dag_changes_its_jobs_and_is_named_for_it(house: House, user: str) -> None:
    job = run_of_dag(house.world, "flights", f"flights.of_{user}")
    version = house.world.store.head(job).version
    body = {"kind": "reset", "reason": "asked for", "expected_version": version, "confirm": job}

    answer = house.server.as_user(user).post(f"{API}/jobs/{job}/changes", json=body)

    assert (answer.status_code, answer.json().get("audited")) == (200, True), answer.text
    assert house.server.audited()[-1] == ("bookmark.reset", user, "flights")
    assert [(event["kind"], event["who"]) for event in house.world.store.events(job)] == [("reset", user)]


def test_protected_job_takes_two_people_of_fab(house: House) -> None:
    job = run_of_dag(house.world, "flights", "flights.guarded")
    protect(house.world.store, job, reason="asked for", who=Identity("ada", True, "airflow"))
    version = house.world.store.head(job).version
    body = {"kind": "reset", "reason": "asked for", "expected_version": version, "confirm": job}

    made = house.server.as_user("flo").post(f"{API}/jobs/{job}/requests", json=body)
    approval = f"{API}/jobs/{job}/requests/{made.json()['request']['id']}/approve"
    statuses = [house.server.as_user(user).post(approval, json={}).status_code for user in ("flo", "wim", "rae")]

    assert statuses == [409, 403, 200]
    assert house.world.store.head(job).epoch == 2


def test_public_that_is_not_logged_in_is_no_second_person() -> None:
    from airflow.providers.fab.auth_manager.models.anonymous_user import AnonymousUser

    from airflow_bookmarks.plugin.auth import Person

    assert Person(AnonymousUser()).identity == Identity("Anonymous", False, "airflow")


def test_page_is_shown_to_roles_that_may_read_plugins(house: House) -> None:
    asked = ("ada", "otto", "uma", "vera", "vip", "flo")

    shown = {user: house.server.as_user(user).get("/api/v2/plugins").status_code for user in asked}

    # The routes answer all of them: only Airflow's UI does not learn that there is a page.
    assert shown == {"ada": 200, "otto": 200, "uma": 403, "vera": 403, "vip": 200, "flo": 403}


def test_docs_say_what_to_grant() -> None:
    said = (Path(__file__).parents[2] / "docs" / "reference" / "http_api.md").read_text()

    for right in ("can read on Plugins", "can edit on DAG Runs", "can read on Assets", "can edit on Assets"):
        assert right in said


def test_sharded_job_is_for_roles_with_the_rights_on_each_of_its_shards(house: House) -> None:
    shards = [shard_name("flights.split", number) for number in range(2)]
    for shard in shards:
        run_of_dag(house.world, "flights", shard)
    hand_over(house.world.store, shards[1], "nights", renamed=True, reason="asked for", who="ada")
    address, share = f"{API}/jobs/flights.split", {"kind": "share", "dag": "days"}

    def asked(user: str) -> tuple[list[str], int, int, int]:
        client = house.server.as_user(user)
        listed = client.get(f"{API}/jobs", params={"search": "flights.split"}).json()["jobs"]
        return (
            [row["job"] for row in listed],
            client.get(address).status_code,
            client.post(f"{address}/shards/preview", json={"kind": "reset"}).status_code,
            client.post(f"{address}/ownership/preview", json=share).status_code,
        )

    whole = ["flights.split"]
    some = {"flo": shards[:1], "rae": shards[:1], "edo": shards[:1], "wim": shards[:1], "nia": shards[1:], "pia": []}
    expected = dict.fromkeys(("ada", "otto", "uma"), (whole, 200, 200, 200))
    expected |= dict.fromkeys(("vera", "vip"), (whole, 200, 403, 403))
    expected |= {user: (rows, 404, 404, 404) for user, rows in some.items()}
    assert {user: asked(user) for user in RIGHTS} == expected

    version = sum(house.world.store.head(shard).version for shard in shards)
    body = {"kind": "reset", "reason": "asked for", "expected_version": version, "confirm": "flights.split"}
    made = {user: house.server.as_user(user).post(f"{address}/shards/changes", json=body) for user in ("flo", "uma")}

    assert {user: answer.status_code for user, answer in made.items()} == {"flo": 404, "uma": 200}, made["uma"].text
    assert [house.world.store.head(shard).epoch for shard in shards] == [2, 2]
