"""Scripts for AWS Glue that read and write tables of a database, unmodified, with Spark and PostgreSQL.

`test_database_scripts.py` runs them in a process of its own: the jar of the driver has to be there when Spark starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.testing.crash import SimulatedCrash
from tests.databases.servers import new_database
from tests.glue.test_scripts import MakeWorld, world_of
from tests.spark.drivers import dies_at
from tools.jars import fetch

__all__ = ["world_of"]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Put the driver beside Spark's own jars."""
    return {"spark.driver.extraClassPath": ":".join(str(jar) for jar in fetch("postgresql").glob("*.jar"))}


@pytest.fixture
def login(postgresql_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseLogin]:
    """Make a database with an empty table, whose login is that of the connection `dw`."""
    with new_database(postgresql_server) as login:
        uri = f"postgresql://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
        monkeypatch.setenv("AIRFLOW_CONN_DW", uri)
        execute(login, "CREATE TABLE orders (id int PRIMARY KEY, name text)")
        yield login


def execute(login: DatabaseLogin, statement: str) -> None:
    with open_database(login) as database:
        database.execute(statement)


def rows(login: DatabaseLogin) -> list[tuple[Any, ...]]:
    with open_database(login) as database:
        return database.rows("SELECT id, name FROM orders ORDER BY 1")


def test_table_of_the_catalog_goes_to_a_database_once(world_of: MakeWorld, login: DatabaseLogin) -> None:
    world = world_of("catalog_to_database")
    for when, expected in (("first", [(1, "a")]), ("second", [(1, "a"), (2, "b")]), ("none", [(1, "a"), (2, "b")])):
        world.put(when)
        world.run()
        assert rows(login) == expected


@pytest.mark.parametrize("point", [Failpoint.STAGED, Failpoint.BEFORE_COMMIT, Failpoint.COMMITTED, Failpoint.PUBLISHED])
def test_driver_that_dies_leaves_each_row_of_the_database_once(
    world_of: MakeWorld, login: DatabaseLogin, point: Failpoint
) -> None:
    world = world_of("catalog_to_database")
    world.put("first")
    with pytest.raises(SimulatedCrash):
        world.run(at=dies_at(point))

    world.run(attempt=2)

    assert rows(login) == [(1, "a")]


def test_table_of_a_database_is_read_by_its_key_once(world_of: MakeWorld, login: DatabaseLogin) -> None:
    world = world_of("database_to_files")
    url = f"jdbc:postgresql://{login.host}:{login.port}/{login.database}"
    given = ("--url", url, "--user", str(login.user), "--password", str(login.password))
    for statement in ("INSERT INTO orders VALUES (1, 'a')", "INSERT INTO orders VALUES (2, 'b')", "SELECT 1"):
        execute(login, statement)
        world.run("enable", *given)

    assert world.rows("orders") == world.told["outputs"]["orders"]["rows"]
