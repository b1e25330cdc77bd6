"""A site: Airflow's real API server with the page's app mounted, users of each role, and a store with real runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# First of all: it says where Airflow's home is, before anything imports Airflow.
from tests.airflow.conftest import Player, World, airflow_database, player, world  # noqa: F401  # fixtures

# isort: split
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Mount
from starlette.testclient import TestClient

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.plugin.bundle import URL_PREFIX
from airflow_bookmarks.plugin.dependencies import Backstage
from airflow_bookmarks.plugin.plugin import BookmarksPlugin
from tests.airflow.compat import mount_plugins, take_auth_manager

API = f"{URL_PREFIX}/api/v1"
# One user of each role, one whose role is none, and two who may look at one DAG each (see `dag_auth_manager`).
ROLES = {"ada": "admin", "otto": "op", "uma": "user", "vera": "viewer", "none": "", "flo": "user", "nia": "user"}
_PASSWORDS = {name: f"password of {name}" for name in ROLES}

_SECRET = "a secret of these tests alone, as long as the algorithm asks for it to be"


@dataclass(frozen=True)
class Site:
    """The API server, and who is logged in."""

    server: FastAPI
    app: FastAPI
    tokens: dict[str, str]

    def as_user(self, name: str | None) -> TestClient:
        """Return a client of a user, None: of nobody."""
        client = TestClient(self.server, base_url="http://airflow.example")
        if name is not None:
            client.headers["Authorization"] = f"Bearer {self.tokens[name]}"
        return client

    def routes(self) -> list[tuple[str, str]]:
        """Return method and path of each route that the app has, whatever its document says."""
        return sorted(_routes([each for each in self.app.routes if not isinstance(each, Mount)]))

    def mounts(self) -> list[Mount]:
        """Return what is served besides routes."""
        return [each for each in self.app.routes if isinstance(each, Mount)]


def _routes(routes: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield from ((method, prefix + route.path) for method in route.methods)
        elif hasattr(route, "original_router"):  # from FastAPI 0.137 on, a router that was included stays one
            yield from _routes(route.original_router.routes, prefix + route.include_context.prefix)
        else:
            raise AssertionError(f"a {type(route).__name__} is no route of the API: does it ask for a login?")


@pytest.fixture(scope="session")
def server(
    airflow_database: None,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Site:
    """Make the API server once: that takes seconds."""
    from airflow.api_fastapi.app import create_app

    passwords = tmp_path_factory.mktemp("site") / "passwords.json"
    passwords.write_text(json.dumps(_PASSWORDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "tests.plugin.dag_auth_manager.WardenAuthManager")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "False")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", ",".join(f"{u}:{r}" for u, r in ROLES.items()))
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", _SECRET)
        plugin = BookmarksPlugin()
        mount_plugins(patch, plugin.fastapi_apps)
        api_server = create_app(apps="core")
        client = TestClient(api_server)
        tokens: dict[str, str] = {}
        for name, password in _PASSWORDS.items():
            answer = client.post("/auth/token", json={"username": name, "password": password})
            tokens[name] = answer.json()["access_token"]
    # What this server was made with is no business of other tests.
    return Site(api_server, plugin.fastapi_apps[0]["app"], tokens)


@pytest.fixture
def site(server: Site, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:  # noqa: F811
    """Return the site with a connection of its own, to the store of this test."""
    # Another test of this process may have made another server since.
    take_auth_manager(monkeypatch, server.server.state.auth_manager)
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", _SECRET)
    backstage = Backstage(patience_s=60)  # what is asked here answers, however busy the machine is
    monkeypatch.setattr(server.app.state, "backstage", backstage)
    yield server
    backstage.close()


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Let the page look at the files of this test: by a child process."""
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", str(world.folder))


@pytest.fixture
def dags(player: Player) -> tuple[str, ...]:  # noqa: F811
    """Make the DAGs that jobs of these tests belong to known to Airflow."""
    from airflow.sdk import DAG

    names = ("flights", "nights")
    for name in names:
        with DAG(name, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            player.sync(dag)
    return names


def run_of_dag(world: World, dag_id: str, job: str = "", *, task_id: str = "clean", number: int = 1) -> str:  # noqa: F811
    """Make a run of a job, as a task of a DAG does; return the name of the job."""
    name = job or f"{dag_id}.{task_id}"
    identity = RunIdentity(f"{dag_id}/manual__{number}/{task_id}", 1, dag_id=dag_id, task_id=task_id,
                    dag_run_id=f"manual__{number}")  # fmt: skip
    run = ActiveRun.begin(world.store, name, identity, world.shop.environment)
    world.shop.copy(run)
    run.commit()
    return name


def three_runs(world: World, dag_id: str = "flights") -> str:  # noqa: F811
    """Make three runs of a job, each of which reads one file; return the name of the job."""
    for number in (1, 2, 3):
        world.shop.put(f"{number}.txt", f"line {number}", seconds=1_700_000_000 + number)
        run_of_dag(world, dag_id, number=number)
    return f"{dag_id}.clean"


def meant(world: World, job: str, kind: str, **more: Any) -> dict[str, Any]:  # noqa: F811
    """Return the body of a change that is meant."""
    version = world.store.head(job).version
    return {"kind": kind, "reason": "asked for", "expected_version": version, "confirm": job, **more}
