"""The step with databases: orders of a shop that are committed out of the order of their keys, and a report of them.

It plays the scripts of the example DAG `orders_report` over a PostgreSQL of its own, and beside them what a job would
read that remembers `max(id)`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.inspect.runs import history
from demo import session
from demo.airflow import PlayerError
from demo.count import compare
from demo.folders import dags
from demo.orders_player import LAND, REPORT
from tools.jars import fetch
from tools.servers import DatabaseServer, has_databases, postgresql

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

Say = Callable[[str], None]

STEP = 7
_ORDERS = """
    CREATE TABLE orders (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, placed_on date NOT NULL, amount numeric(12, 2) NOT NULL,
        is_deleted boolean NOT NULL DEFAULT false, updated_at timestamptz NOT NULL DEFAULT now())"""
_PLACE = "INSERT INTO orders (placed_on, amount) VALUES "
_BY_DAY = "SELECT placed_on, count(*), sum(amount) FROM orders WHERE NOT is_deleted GROUP BY placed_on ORDER BY 1"
_REPORT = "SELECT placed_on, orders, amount FROM reporting.orders_by_day ORDER BY 1"


def play_orders(uri: str, store: BookmarkStore, settings: Mapping[str, str], target: str, log: Path, say: Say) -> str:
    """Play the step, and return what it has shown.

    Args:
        uri: of the state store.
        store: the same, open.
        settings: the environment of Spark.
        target: the folder of the orders.
        log: what Spark says.

    Raises:
        Difference: what was found is not what was expected.
        PlayerError: Spark ended.
    """
    if not has_databases("postgresql"):
        return _left_out("PostgreSQL is not installed here; 'make databases' installs it", say)
    try:
        (driver,) = fetch("postgresql").glob("*.jar")
    except RuntimeError as error:
        return _left_out(f"the JDBC driver can't be had: {str(error).splitlines()[0]}", say)
    say(f"step {STEP}: orders of a shop, from one database to a report in another one")
    with postgresql() as server, _databases(server) as (shop, warehouse):
        logins = {"AIRFLOW_CONN_SHOP": _uri(server, "shop"), "AIRFLOW_CONN_DW": _uri(server, "dw")}
        arguments = [uri, str(driver), target]
        with _Player({**settings, **logins}, arguments, log) as player:
            return _play(player, server, shop, warehouse, store, say)


def _left_out(why: str, say: Say) -> str:
    said = f"step {STEP}, with databases, is left out: {why}"
    say(said)
    return said


# ---- what happens in the shop, and what is read of it


def _play(
    player: _Player, server: DatabaseServer, shop: Database, warehouse: Database, store: BookmarkStore, say: Say
) -> str:
    plain = _Plain(shop)
    shop.execute(f"{_PLACE} ('2013-01-31', 10), ('2013-01-31', 20.50), ('2013-02-01', 30)")
    with open_database(_login(server, "shop")) as clerk, clerk.transaction():
        clerk.execute(f"{_PLACE} ('2013-02-02', 40)")
        shop.execute(f"{_PLACE} ('2013-02-02', 50)")
        say("  order 4 is written, and not committed; order 5 is committed: playing")
        player.play()
        plain.look()
    compare("orders in the report while order 4 is open", [1, 2, 3], _ids(warehouse, "reporting.orders"))
    say("  3 orders in the report: order 5 is left to the next run, as order 4 may still come")
    shop.execute("UPDATE orders SET amount = 11, updated_at = now() WHERE id = 1")
    shop.execute("UPDATE orders SET is_deleted = true, updated_at = now() WHERE id = 2")
    say("  order 4 is committed, order 1 is changed, order 2 is deleted: playing")
    player.play()
    plain.look()
    return _shown(shop, warehouse, store, plain, say)


def _shown(shop: Database, warehouse: Database, store: BookmarkStore, plain: _Plain, say: Say) -> str:
    placed = _ids(shop, "orders")
    compare("orders in the report, each once", placed, _ids(warehouse, "reporting.orders"))
    compare("the report, and a query over the shop", shop.rows(_BY_DAY), warehouse.rows(_REPORT))
    for job in (LAND, REPORT):
        read = [row["outputs"][name]["rows"] for row in history(store, job) for name in row["outputs"]]
        compare(f"rows of each run of {job}", [3, 4], read)
    lost = sorted(set(placed) - set(plain.found))
    compare("orders that max(id) loses", [4], lost)
    shown = (
        f"{len(placed)} orders, each once in the report, which equals a query over the shop; max(id), then "
        f"'WHERE id > last', would have lost order {lost[0]}, and not seen that 1 was changed and 2 deleted"
    )
    say(f"  {shown}")
    return f"step {STEP}, with databases: {shown}"


class _Plain:
    """A job that remembers the greatest id that it has seen."""

    def __init__(self, shop: Database) -> None:
        self._shop, self._last = shop, 0
        self.found: list[int] = []

    def look(self) -> None:
        """Read what is new."""
        rows = self._shop.rows(f"SELECT id FROM orders WHERE id > {self._last} ORDER BY id")  # noqa: S608 - a number
        self.found += [id_ for (id_,) in rows]
        self._last = max([self._last, *self.found])


def _ids(database: Database, table: str) -> list[int]:
    return [id_ for (id_,) in database.rows(f"SELECT id FROM {table} ORDER BY id")]  # noqa: S608 - a name of our own


# ---- the databases


@contextmanager
def _databases(server: DatabaseServer) -> Iterator[tuple[Database, Database]]:
    """Make both databases, and yield a connection to each."""
    with open_database(_login(server, server.database)) as admin:
        for name in ("shop", "dw"):
            admin.execute(f"CREATE DATABASE {name}")
    with open_database(_login(server, "shop")) as shop, open_database(_login(server, "dw")) as warehouse:
        shop.execute(_ORDERS)
        for statement in (dags() / "jobs" / "orders_by_day.sql").read_text().split(";\n"):
            if statement.strip():
                warehouse.execute(statement)
        yield shop, warehouse


def _login(server: DatabaseServer, database: str) -> DatabaseLogin:
    return DatabaseLogin(server.dialect, server.host, server.port, database, server.user, server.password)


def _uri(server: DatabaseServer, database: str) -> str:
    return f"postgres://{server.user}:{server.password}@{server.host}:{server.port}/{database}"


# ---- Spark


class _Player:
    """A process with Spark that plays both scripts, and ends with the block."""

    def __init__(self, environment: Mapping[str, str], arguments: list[str], log: Path) -> None:
        self._command = [sys.executable, "-m", "demo.orders_player", *arguments]
        self._environment, self._log = environment, log

    def __enter__(self) -> _Player:
        with self._log.open("wb") as log:
            pipe = subprocess.PIPE
            self._process = session.start(self._command, self._environment, stdin=pipe, stdout=pipe, stderr=log)
        try:
            self._answered()
        except BaseException:  # `__exit__` is not called for a block that is not entered
            session.end(self._process)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        session.end(self._process)

    def play(self) -> None:
        """Play both scripts once.

        Raises:
            PlayerError: the process ended.
        """
        if self._process.stdin is None:
            raise RuntimeError("play() outside of the block")
        self._process.stdin.write(b"{}\n")
        self._process.stdin.flush()
        self._answered()

    def _answered(self) -> None:
        if self._process.stdout is None or not self._process.stdout.readline():
            raise PlayerError(f"the process that plays the orders ended with exit code {self._process.wait()}")
