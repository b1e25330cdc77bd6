"""The API server connects to no database: addresses, connections and queries are what drivers wrote (UI-10)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from tests.airflow.conftest import World
from tests.databases.servers import new_database
from tests.plugin.conftest import API, Site
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer

JOB, CONTEXT = "flights.orders", "orders"


class Listener:
    """A port where a database could be; it answers nobody, and tells whether someone has come."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setblocking(False)

    def has_visitor(self) -> bool:
        try:
            self.socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def listener(
    world: World, dags: object, postgresql_server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Listener]:
    """Let a run of a job read a table by the connection `shop`, which then leads to a port that listens."""
    with new_database(postgresql_server) as login:
        shop = Shop(login)
        shop.run("CREATE TABLE orders (id int PRIMARY KEY)")
        shop.run("INSERT INTO orders VALUES (1), (2)")
        identity = RunIdentity("flights/manual__1/orders", 1, dag_id="flights", task_id="orders")
        run = ActiveRun.begin(world.store, JOB, identity, world.shop.environment)
        run.plan(CONTEXT, shop.source())
        run.commit()
    listener = Listener()
    fields = {"conn_type": "postgres", "host": "127.0.0.1", "port": listener.socket.getsockname()[1], "schema": "shop"}
    # The client gives up after a second: what it does within that is what is asked here.
    details = {"login": "etl", "password": "secret", "extra": {"connect_timeout": "1"}}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({**fields, **details}))
    with listener.socket:
        yield listener


@pytest.mark.seldom
def test_page_does_not_connect_to_see_what_waits(site: Site, listener: Listener) -> None:
    answer = site.as_user("ada").get(f"{API}/jobs/{JOB}/pending").json()

    assert not listener.has_visitor()
    [context] = answer["contexts"]
    assert (answer["is_known"], context["ctx"]) == (False, CONTEXT)
    assert context["unknown"].startswith("'conn:shop' was not looked at, so what is there is not known: the API server")


def test_page_does_not_connect_to_see_the_lag(site: Site, listener: Listener) -> None:
    [lag] = site.as_user("ada").get(f"{API}/jobs/{JOB}/lag").json()["lags"]

    assert not listener.has_visitor()
    assert lag["state"] == "UNKNOWN"
    assert "connects to no database" in lag["why"]


@pytest.mark.parametrize("may_look", [False, True])
def test_page_does_not_connect_to_set_a_position(
    request: pytest.FixtureRequest, site: Site, listener: Listener, may_look: bool
) -> None:
    """Prefixes are of files, and let nobody into a database."""
    if may_look:
        request.getfixturevalue("looks")
    change: dict[str, Any] = {"kind": "set", "ctx": CONTEXT, "value": "now"}

    answer = site.as_user("ada").post(f"{API}/jobs/{JOB}/preview", json=change)

    assert not listener.has_visitor()
    assert answer.status_code == 409, answer.text
    assert "connects to no database" in answer.text


def test_preview_of_a_value_says_who_counts_the_rows_that_it_skips(site: Site, listener: Listener) -> None:
    change: dict[str, Any] = {"kind": "set", "ctx": CONTEXT, "value": "7"}

    never = site.as_user("ada").post(f"{API}/jobs/{JOB}/preview", json=change).json()["never_read"]

    assert not listener.has_visitor()
    assert (never["files"], never["rows"], never["amounts"]) == (None, None, {})
    assert never["unknown"].startswith("not counted here: 'conn:shop' was not looked at")
    assert "--dry-run" in never["unknown"]


def test_page_needs_no_login_to_say_so(site: Site, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that asks for the connection would not help: the page would not use it."""
    monkeypatch.delenv("AIRFLOW_CONN_SHOP")

    [context] = site.as_user("ada").get(f"{API}/jobs/{JOB}/pending").json()["contexts"]

    assert "Airflow has no connection" not in context["unknown"]
