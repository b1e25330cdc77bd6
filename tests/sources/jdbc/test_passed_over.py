"""What a set of a context over a table of a database passes over, on PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.database.dialects.mysql import MariaDB
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.rules.shard import TableShard
from airflow_bookmarks.core.run import Payload
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.permission import looking_below
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.sources.jdbc import planner
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.testing.memory import memory_store
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.sources.skipping import CTX, Skipping

NOWHERE = {
    "postgresql": DatabaseLogin.of_uri("postgresql://ann@127.0.0.1:1/shop"),
    "mariadb": DatabaseLogin.of_uri("mariadb://ann@127.0.0.1:1/shop"),
}


@pytest.fixture(params=["postgresql", "mariadb"])
def login(request: pytest.FixtureRequest) -> Iterator[DatabaseLogin]:
    with new_database(request.getfixturevalue(f"{request.param}_server")) as made:
        yield made


@pytest.fixture
def table(login: DatabaseLogin) -> Shop:
    """Make a table of orders of several regions."""
    shop = Shop(login)
    shop.run("CREATE TABLE orders (id int PRIMARY KEY, day date NOT NULL, region varchar(9))")
    return shop


@pytest.fixture
def shop(tmp_path: Path, login: DatabaseLogin) -> Iterator[Skipping]:
    with memory_store() as store:
        store.databases = KnownLogin(login)
        yield Skipping(tmp_path, store)


def add(table: Shop, *ids: int, day: int = 1, region: str = "eu") -> None:
    values = ", ".join(f"({each}, '2013-01-{day:02}', '{region}')" for each in ids)
    table.run(f"INSERT INTO orders VALUES {values}")


def rows(count: int) -> NeverReadInput:
    return NeverReadInput(None, None, rows=count)


def test_set_ahead_counts_rows(shop: Skipping, table: Shop) -> None:
    add(table, 1, 2)
    shop.read(table.source())
    add(table, 3, 4, 5, 9)

    assert shop.skips("now") == rows(4)
    assert shop.skips("5") == rows(3)
    assert shop.skips("100") == rows(4)  # what is there
    assert shop.skips("2") == NeverReadInput()
    assert shop.skips("1") == NeverReadInput()


def test_jobs_that_will_not_see_it_are_named(shop: Skipping, table: Shop) -> None:
    add(table, 1)
    shop.read(table.source())
    shop.run("down", upstream="copy")
    add(table, 2)
    assert shop.skips("now").consumers == ("down",)


def test_rows_with_the_first_key_of_the_position_are_counted(shop: Skipping, table: Shop) -> None:
    """The watermark stays, and yet rows are passed over."""
    keys = ("day", "id")
    add(table, 1, 2)
    shop.read(table.source(keys=keys, zone="UTC"))
    add(table, 3)
    add(table, 4, day=2)
    assert shop.skips("2013-01-01") == rows(1)
    assert shop.skips("2013-01-02") == rows(2)


def test_values_that_are_read_less_far_are_counted_from_there(shop: Skipping, table: Shop) -> None:
    add(table, 1, 2)
    add(table, 3, region="us")
    recipe = table.source(per="region").recipe
    loop = PartLoop(CTX)
    shop.read(TableSource(lambda: open_database(table.login), recipe, "job 'copy'", loop=loop, execution="one"))
    add(table, 4, region="eu")
    add(table, 5, region="us")

    assert shop.skips("3") == rows(1)  # of us
    assert shop.skips("5") == rows(3)
    assert shop.skips("2") == NeverReadInput()


def test_rows_that_came_late_are_counted(shop: Skipping, table: Shop) -> None:
    add(table, 10, 11, day=20)
    for _ in range(2):
        shop.read(table.source(keys=("day", "id"), zone="UTC", lookback=timedelta(days=36_500)))
    add(table, 1, day=3)
    add(table, 12, day=21)
    assert shop.skips("2013-01-21") == rows(2)
    assert shop.skips("2013-01-10") == rows(1)


@pytest.mark.parametrize("lookback", [None, timedelta(days=36_500)])
def test_virtual_shard_counts_its_own_rows(shop: Skipping, table: Shop, lookback: timedelta | None) -> None:
    whole = table.source(keys=("day", "id"), zone="UTC", lookback=lookback).recipe
    recipe = replace(whole, shard=TableShard(7))
    source = TableSource(lambda: open_database(table.login), recipe, "job 'copy'")
    add(table, *range(500))
    shop.read(source)
    add(table, *range(500, 1000), day=2)
    own = source.plan(PlanInput(shop.store.blobs.get(position_of(shop)))).count
    assert own
    assert own < 100
    assert shop.skips("2013-01-02") == rows(own)


def position_of(shop: Skipping) -> Payload:
    """Return where the position lies that the last run has left."""
    run = shop.store.committed_run("copy", shop.store.head("copy").run_number)
    assert run is not None
    return run.positions[CTX]


def test_database_out_of_reach_is_said_not_to_be_countable(shop: Skipping, table: Shop, login: DatabaseLogin) -> None:
    add(table, 1)
    shop.read(table.source())
    shop.store.databases = KnownLogin(NOWHERE[login.dialect])
    told = shop.skips("5")
    assert (told.files, told.rows) == (None, None)
    assert str(told.unknown).startswith("can't be counted: ")
    assert "can't be entered" in str(told.unknown)
    assert shop.skips("0") == NeverReadInput()  # whatever is there, it is read from there


def test_count_is_ended_where_it_takes_too_long(
    shop: Skipping, table: Shop, monkeypatch: pytest.MonkeyPatch, login: DatabaseLogin
) -> None:
    """Each row of the view takes a tenth of a second."""
    waits = "pg_sleep(0.1)::text" if login.dialect == "postgresql" else "sleep(0.1)"
    add(table, 1)
    table.run(f"CREATE VIEW slow AS SELECT id, day FROM orders WHERE {waits} IS NOT NULL")
    shop.read(table.source(table="slow"))
    add(table, *range(2, 60))
    monkeypatch.setattr(planner, "LONGEST_COUNT", timedelta(seconds=1))
    told = shop.skips("59")
    assert told.rows is None
    assert str(told.unknown).startswith("can't be counted: ")
    assert "refused a statement" in str(told.unknown)


def test_process_that_may_not_look_says_where_it_is_counted(shop: Skipping, table: Shop) -> None:
    add(table, 1)
    shop.read(table.source())
    with looking_below():
        told = shop.skips("5")
    assert str(told.unknown).startswith("not counted here: 'conn:shop' was not looked at")
    assert "--dry-run" in str(told.unknown)


def test_without_a_limit_of_time_no_more_are_counted_than_a_run_counts(
    shop: Skipping, table: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(table, 1)
    shop.read(table.source())
    add(table, 2, 3, 4)
    for dialect in (PostgreSQL, MariaDB):
        monkeypatch.setattr(dialect, "time_limit", lambda *_: None)
    assert shop.skips("4") == rows(3)
    monkeypatch.setattr(planner, "MOST_COUNTED", 2)
    assert "can't be counted: there are more than 2 rows" in str(shop.skips("4").unknown)
