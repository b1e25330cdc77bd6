"""Promises AIR-4 and OBS-1 for tables: a worker knows without Spark what is new in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from tests.airflow.conftest import World
from tests.airflow.operators.test_operator import JOB, context, operator, play, refuse
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop

CONTEXT = "orders"


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Return a database with three orders, which a job has read by the connection `shop`."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        fields = {"conn_type": login.dialect, "host": login.host, "port": login.port, "schema": login.database}
        monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({**fields, "login": login.user, "password": login.password}))
        shop = Shop(login)
        shop.run("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
        shop.run("INSERT INTO orders VALUES (1, 10), (2, 20), (3, 30)")
        play(operator(), context(dag_run_id="manual__0"), Driver(world, shop))
        yield shop


class Driver:
    """A submit that makes one whole run over the table; `planned` is how many rows each of them had."""

    def __init__(self, world: World, shop: Shop) -> None:
        self.world, self.shop = world, shop
        self.planned: list[int | None] = []

    def __call__(self, given: Any) -> None:
        ti = given["ti"]
        identity = RunIdentity(f"{ti.dag_id}/{ti.run_id}/{ti.task_id}", ti.try_number)
        run = ActiveRun.begin(self.world.store, JOB, identity, self.world.shop.environment)
        plan = run.plan(CONTEXT, self.shop.source())
        self.planned.append(plan.count)
        run.commit()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_task_ends_without_spark_where_no_row_is_new(shop: Shop) -> None:
    summary = play(operator(skip_when_empty=True), context(), refuse)

    assert (summary["is_empty"], summary["is_published"]) == (True, True)


def test_new_row_starts_spark(shop: Shop, world: World) -> None:
    shop.run("INSERT INTO orders VALUES (4, 40)")
    driver = Driver(world, shop)

    play(operator(skip_when_empty=True), context(), driver)

    assert driver.planned == [1]


def test_open_transaction_is_not_taken_for_nothing_new(shop: Shop, world: World) -> None:
    """The look does not wait for it; what it leaves behind is the next run's."""
    with shop.transaction() as other:
        other.execute("INSERT INTO orders VALUES (4, 40)")
        summary = play(operator(skip_when_empty=True), context(), refuse)
        assert summary["is_empty"]
    driver = Driver(world, shop)

    play(operator(skip_when_empty=True), context(dag_run_id="manual__2"), driver)

    assert driver.planned == [1]


def test_conf_follows_the_rows_that_wait(shop: Shop, world: World) -> None:
    shop.run("INSERT INTO orders VALUES (4, 40), (5, 50)")
    seen: list[Any] = []

    def conf_for(pending: Any) -> dict[str, str]:
        seen.append(pending)
        return {"spark.executor.instances": "2"}

    play(operator(conf_for=conf_for), context(), Driver(world, shop))

    assert [(each["ctx"], each["count"]) for each in seen[0]["contexts"]] == [(CONTEXT, 2)]


def test_hook_counts_the_rows_that_wait(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (4, 40), (5, 50)")

    [pending] = BookmarkHook().pending(JOB)["contexts"]

    assert (pending["ctx"], pending["count"]) == (CONTEXT, 2)


def test_command_line_counts_the_rows_that_wait(shop: Shop, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    shop.run("INSERT INTO orders VALUES (4, 40), (5, 50)")

    found = said(capsys, "--store", world.store_uri, "pending", JOB)

    assert [(each["ctx"], each["count"], each["unit"]) for each in found["contexts"]] == [(CONTEXT, 2, "rows")]


def test_database_that_the_worker_cannot_reach_is_left_to_spark(
    shop: Shop, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark may stand in another network; where it can't reach it either, its error says so and nothing has moved."""
    before = world.store.head(JOB)
    scheme = {"postgresql": "postgres", "mariadb": "mysql"}[shop.login.dialect]
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", f"{scheme}://nobody:hunter2@127.0.0.1:1/none")

    with caplog.at_level("INFO"), pytest.raises(ConnectionError, match="Spark meets it too"):
        play(operator(skip_when_empty=True), context(), out_of_reach)

    assert "without Spark: not known" in caplog.text
    assert "hunter2" not in caplog.text
    assert world.store.head(JOB).run_number == before.run_number


def out_of_reach(given: Any) -> None:
    """Fail as Spark does where a database does not answer it."""
    raise ConnectionError(f"Spark meets it too, in try {given['ti'].try_number}")
