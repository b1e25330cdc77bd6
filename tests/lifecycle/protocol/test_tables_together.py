"""Tables that one transaction publishes get their rows in an order that their keys and other jobs allow (SINK-4)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from airflow_bookmarks.core.database.publish_sql import TokenRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.jdbc.loading import resolved
from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
from tests.lifecycle.shop import Shop
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table

# Sessions that wait for a lock.
_WAITING = {
    "postgresql": "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mariadb": "SELECT 1 FROM information_schema.global_status "
    "WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS' AND variable_value > 0",
}


class Keyed:
    """A job whose outputs are tables with keys: `ape` refers to `zoo`, and is before it by its name."""

    def __init__(self, shop: Shop, login: DatabaseLogin) -> None:
        self.shop, self.login = shop, login
        shop.store.databases = OneLogin(login)
        with open_database(login) as database:
            self.schema = resolved(database, SinkTable(None, "zoo")).schema

    def execute(self, *statements: str) -> None:
        with open_database(self.login) as database:
            for statement in statements:
                database.execute(statement)

    def make(self, on_delete: str = "") -> None:
        """Make both tables, with a row each."""
        refers = f"FOREIGN KEY (zoo_id) REFERENCES zoo (id) {on_delete}"
        self.execute(
            "CREATE TABLE zoo (id int NOT NULL PRIMARY KEY)",
            f"CREATE TABLE ape (id int NOT NULL PRIMARY KEY, zoo_id int, {refers})",
            "INSERT INTO zoo VALUES (1)",
            "INSERT INTO ape VALUES (10, 1)",
        )

    def target(self, name: str, mode: Mode = Mode.APPEND, upsert: Upsert | None = None) -> TableTarget:
        return TableTarget(DatabaseAddress.parse("conn:dw"), SinkTable(self.schema, name), mode, upsert)

    def begin(self) -> ActiveRun:
        self.shop.put("a.txt", "a")
        run = self.shop.begin()
        self.shop.copy(run)
        return run

    def write(self, run: ActiveRun, target: TableTarget, rows: Sequence[Sequence[int]], **how: Any) -> None:
        columns = ["id", "zoo_id"] if target.table.name == "ape" else ["id"]
        write_table(run, how.pop("output", target.table.name), target, self.login, columns, rows, **how)

    def rows(self) -> dict[str, list[tuple[int, ...]]]:
        with open_database(self.login) as database:
            return {name: sorted(database.rows(f"SELECT * FROM {name}")) for name in ("zoo", "ape")}


@pytest.fixture
def keyed(database_login: DatabaseLogin, shop: Shop) -> Keyed:
    return Keyed(shop, database_login)


@pytest.mark.parametrize("written", [["zoo", "ape"], ["ape", "zoo"]])
def test_rows_come_after_those_that_they_refer_to(keyed: Keyed, written: Sequence[str]) -> None:
    keyed.make()
    run = keyed.begin()
    for name in written:
        keyed.write(run, keyed.target(name), [[2]] if name == "zoo" else [[20, 2]])
    run.commit()
    assert keyed.rows() == {"zoo": [(1,), (2,)], "ape": [(10, 1), (20, 2)]}


@pytest.mark.parametrize("on_delete", ["", "ON DELETE CASCADE"])
def test_overwrite_loses_no_row_that_was_just_published(keyed: Keyed, on_delete: str) -> None:
    keyed.make(on_delete)
    run = keyed.begin()
    keyed.write(run, keyed.target("zoo", Mode.OVERWRITE), [[1], [2]])
    keyed.write(run, keyed.target("ape", Mode.OVERWRITE), [[10, 1], [20, 2]])
    run.commit()
    assert keyed.rows() == {"zoo": [(1,), (2,)], "ape": [(10, 1), (20, 2)]}


@pytest.mark.parametrize("on_delete", ["", "ON DELETE CASCADE"])
def test_rows_go_before_those_that_they_refer_to(keyed: Keyed, on_delete: str) -> None:
    keyed.make(on_delete)
    run = keyed.begin()
    upsert = Upsert(("id",), has_deletes=True)
    keyed.write(run, keyed.target("zoo", upsert=upsert), [[2]], gone=[[1]])
    keyed.write(run, keyed.target("ape", upsert=upsert), [[20, 2]], gone=[[10, 1]])
    run.commit()
    assert keyed.rows() == {"zoo": [(2,)], "ape": [(20, 2)]}


def test_tables_that_refer_to_each_other_are_published_all_the_same(keyed: Keyed) -> None:
    keyed.make()
    keyed.execute("ALTER TABLE zoo ADD COLUMN chief int REFERENCES ape (id)")
    run = keyed.begin()
    keyed.write(run, keyed.target("ape"), [[20, 1]])
    keyed.write(run, keyed.target("zoo"), [[2]])
    run.commit()
    assert keyed.rows() == {"zoo": [(1, None), (2, None)], "ape": [(10, 1), (20, 1)]}


def test_overwrite_of_a_table_leaves_what_the_same_run_appends_to_it(keyed: Keyed) -> None:
    keyed.make()
    run = keyed.begin()
    keyed.write(run, keyed.target("ape"), [[20, 1]], output="added")
    keyed.write(run, keyed.target("ape", Mode.OVERWRITE), [[30, 1]], output="whole")
    run.commit()
    assert keyed.rows()["ape"] == [(20, 1), (30, 1)]


# ---- who else is at work


class DeathError(BaseException):
    """The end of a driver."""


def _dying(point: Failpoint) -> None:
    if point is Failpoint.COMMITTED:
        raise DeathError


def _tokens(keyed: Keyed, run: Run) -> list[TokenRow]:
    """Return the tokens of the outputs of a run, in the order of their key."""
    places = [StagePlace.parse(entry.place) for entry in run.outputs.values() if entry.sink == "jdbc"]
    tokens = [TokenRow.of(keyed.login.dialect, each.table, each.name) for each in places if each is not None]
    return sorted(tokens, key=lambda each: each.id)


def test_publish_takes_all_tokens_first_in_the_order_of_a_sweep(keyed: Keyed) -> None:
    """On MySQL the sweep of any job locks the tokens of all, one after the other, until it has those of its own."""
    if keyed.login.dialect not in _WAITING:
        pytest.skip(
            "SQLite locks the whole file: no sweep can come between two tokens there, and nothing shows their order"
        )
    keyed.make()
    run = keyed.begin()
    run._leased.environment = RunEnvironment(at=_dying)
    for key, output in enumerate(("one", "two", "three", "four"), start=2):
        keyed.write(run, keyed.target("zoo"), [[key]], output=output)
    with pytest.raises(DeathError):
        run.commit()
    run._leased.give_back()
    head = keyed.shop.store.head("copy")
    committed = keyed.shop.store.committed_run("copy", head.run_number)
    assert committed is not None
    first, *others = _tokens(keyed, committed)
    with ThreadPoolExecutor(1) as pool, open_database(keyed.login) as sweep, open_database(keyed.login) as watcher:
        with sweep.transaction():
            sweep.execute(first.take(0))
            sweep.rows(first.read_at_rest())
            publish = pool.submit(lambda: keyed.shop.begin().abort("only recovers"))
            while not watcher.rows(_WAITING[keyed.login.dialect]):
                assert not publish.done()
            for each in others:  # fails if the publish holds it: then each would wait for the other
                sweep.rows(each.read_at_rest())
        publish.result()
    assert len(keyed.rows()["zoo"]) == 5
