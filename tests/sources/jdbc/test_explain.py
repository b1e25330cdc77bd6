"""Where nothing is new in a table of a million rows, each query of the planner is answered from its index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.database.dialect import TableColumn
from airflow_bookmarks.core.rules.shard import VIRTUAL_SHARDS, TableShard
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.sources.jdbc import lookback
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop

pytestmark = pytest.mark.slow
ROWS = 1_000_000
MOST_LOOKED_AT = 100  # rows, by one query


class Kept:
    """Queries of a planner, which a test looks at afterwards."""

    holds_session = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked: list[str] = []

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        self.asked.append(sql)
        return self._database.rows(sql)


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def big(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a table of a million rows, whose times are ten to a second."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        shop = Shop(login)
        if login.dialect == "postgresql":
            at, key = "timestamptz '2013-01-31' + g / 10 * interval '1 second'", "timestamptz"
            numbers = f"generate_series(1, {ROWS}) g"
        else:
            at, key = "timestamp '2013-01-31 00:00:00' + interval g div 10 second", "datetime"
            numbers = f"(SELECT seq g FROM seq_1_to_{ROWS}) s"
        shop.run(f"CREATE TABLE big (id int NOT NULL PRIMARY KEY, at {key} NOT NULL, n numeric(12, 2) NOT NULL)")
        shop.run(f"INSERT INTO big SELECT g, {at}, g FROM {numbers}")
        shop.run("CREATE INDEX by_time ON big (at, id)")
        shop.run("CREATE INDEX by_number ON big (n)")
        shop.run("VACUUM ANALYZE big" if login.dialect == "postgresql" else "ANALYZE TABLE big")
        yield shop


@pytest.mark.seldom
@pytest.mark.parametrize("keys", [("id",), ("at", "id"), ("at",), ("n",)], ids=",".join)
def test_nothing_new_is_found_by_the_index_alone(big: Shop, keys: tuple[str, ...]) -> None:
    check_by_index(big, big.source(table="big", keys=keys, zone="UTC"), 2)


@pytest.mark.seldom
@pytest.mark.parametrize("keys", [("id",), ("at", "id"), ("at",), ("n",)], ids=",".join)
def test_late_rows_are_looked_for_in_the_trailing_window_alone(
    big: Shop, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookback, "_AT_FIRST", 30)
    check_by_index(big, big.source(table="big", keys=keys, zone="UTC", lookback=timedelta(seconds=3)), 3)


@pytest.mark.parametrize("keys", [("id",), ("at", "id")], ids=",".join)
def test_nothing_new_in_a_shard_is_found_by_the_index_alone(big: Shop, keys: tuple[str, ...]) -> None:
    number = big.dialect.number_of_hash(
        [TableColumn("id", "integer" if big.dialect.name == "postgresql" else "int", False)], VIRTUAL_SHARDS
    )
    ((last,),) = big.rows(f"SELECT {number} FROM big WHERE id = {ROWS}")
    recipe = replace(big.source(table="big", keys=keys, zone="UTC").recipe, shard=TableShard(int(last)))
    check_by_index(big, TableSource(lambda: open_database(big.login), recipe, "big"), 2)


def check_by_index(big: Shop, source: TableSource, least: int) -> None:
    big.position = source.plan(PlanInput(None)).leads_to.encode()

    with open_database(big.login) as database:
        kept = Kept(database)
        connect = lambda: open_database(big.login)  # noqa: E731
        plan = TablePlanner(kept, big.dialect, source.recipe, "big", connect).plan(PlanInput(big.position))
        asked = [sql for sql in kept.asked if f"FROM {plan.source}" in sql]
        looked_at = {sql: _looked_at(database, sql) for sql in asked}

    assert plan.is_empty
    assert len(asked) >= least
    assert {sql: rows for sql, rows in looked_at.items() if rows > MOST_LOOKED_AT} == {}


def test_look_at_a_query_notices_one_that_reads_the_whole_table(big: Shop) -> None:
    with open_database(big.login) as database:
        assert _looked_at(database, "SELECT count(*) FROM big WHERE n + 1 < 0") > MOST_LOOKED_AT


def _looked_at(database: Database, sql: str) -> int:
    """Return how many rows the database looks at for a query, by what it says when it has run it."""
    if database.dialect == "postgresql":
        ((plan,),) = database.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        return _most(plan)
    ((text,),) = database.rows(f"ANALYZE FORMAT=JSON {sql}")
    return _most(json.loads(text))


def _most(plan: object) -> int:
    """Return the most rows that one step of a plan has read, those that a filter removed among them."""
    if isinstance(plan, list):
        return max(map(_most, plan), default=0)
    if not isinstance(plan, dict):
        return 0
    names = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck", "r_rows", "r_index_rows")
    own = sum(float(plan.get(name) or 0) for name in names)
    return max(int(own), *(_most(each) for each in plan.values()), 0)
