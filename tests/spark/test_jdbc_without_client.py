"""Tables are read by a driver whose Python has no client for their database: Spark asks it.

The driver is a process in which no client can be imported; this one has them, and fills the tables.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.databases.login import DatabaseLogin
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.spark import without_client
from tests.spark.own_process import classic_environment
from tools.jars import fetch

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-jdbc-read")]

INSTANT = {"postgresql": "timestamptz", "mariadb": "timestamp(6)"}


class Driver:
    """The process, and the bookmark of its job."""

    def __init__(self, process: subprocess.Popen[str], store: str) -> None:
        self._process, self._store = process, store

    def read(self, table: str = "orders", **asked: Any) -> dict[str, Any]:
        """Ask for one run; return what it read, or what stopped it."""
        return self.ask({"job": "copy", "store": self._store, "table": table, **asked})

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the driver has ended"
        return dict(json.loads(line))


@contextmanager
def driver(login: DatabaseLogin, folder: Path, *kinds: str) -> Iterator[Driver]:
    """Run a driver that has no client, with the drivers of Java for some kinds of databases."""
    jars = ",".join(str(jar) for kind in kinds for jar in sorted(fetch(kind).glob("*.jar")))
    fields = {"conn_type": login.dialect, "host": login.host, "port": login.port, "schema": login.database}
    secret = json.dumps({**fields, "login": login.user, "password": login.password})
    locked = json.dumps({**fields, "login": "nobody", "password": "hunter2"})
    with subprocess.Popen(
        [sys.executable, "-m", without_client.__name__, jars],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "driver.log").open("w"),
        text=True,
        env={**classic_environment(), "AIRFLOW_CONN_SHOP": secret, "AIRFLOW_CONN_LOCKED": locked},
    ) as process:
        made = Driver(process, f"sqlite:///{folder}/bookmarks.db?create=true")
        try:
            assert made.answer() == {"absent": list(without_client.ABSENT)}
            yield made
        finally:
            assert process.stdin is not None
            process.stdin.close()


def add(shop: Shop, *ids: int) -> None:
    rows = ", ".join(f"({each}, '2013-01-31 00:00:00.00000{each % 10}', 'r{each % 3}')" for each in ids)
    shop.run(f"INSERT INTO orders VALUES {rows}")


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def bought(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shop, Driver]]:
    """Make a database, and a driver without a client for it."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        shop = Shop(login)
        with driver(login, tmp_path_factory.mktemp("driver"), request.param) as made:
            yield shop, made


@pytest.fixture
def shop(bought: tuple[Shop, Driver]) -> Iterator[Shop]:
    shop = bought[0]
    at = INSTANT[shop.login.dialect]
    shop.run(f"CREATE TABLE orders (id int PRIMARY KEY, at {at}, region varchar(9))")
    add(shop, 1, 2, 3)
    try:
        yield shop
    finally:
        shop.run("DROP TABLE orders")


@pytest.fixture
def spark(bought: tuple[Shop, Driver], request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Return what asks the driver for a run of a job of this test's own."""

    def read(table: str = "orders", **asked: Any) -> dict[str, Any]:
        return bought[1].read(table, **{"job": request.function.__name__, **asked})

    return read


AT_ONCE = {"settle": 0}


@pytest.mark.seldom
def test_each_row_is_read_once(shop: Shop, spark: Any) -> None:
    how = {"keys": ["id"], "partitions": 2}

    assert spark(how=how, **AT_ONCE) == {"rows": [1, 2, 3], "parts": 2}
    assert spark(how=how, **AT_ONCE)["rows"] == []
    add(shop, 4, 5)
    assert spark(how=how, **AT_ONCE)["rows"] == [4, 5]


@pytest.mark.seldom
def test_times_and_ties_are_exact(shop: Shop, spark: Any) -> None:
    how = {"keys": ["at"]}
    assert spark(how=how, **AT_ONCE)["rows"] == [1, 2, 3]

    add(shop, 13, 4)  # 13 ties with 3, the last row that was read

    assert spark(how=how, **AT_ONCE)["rows"] == [4, 13]


def test_first_run_without_keys_takes_the_primary_key(shop: Shop, spark: Any) -> None:
    assert spark(**AT_ONCE)["rows"] == [1, 2, 3]


@pytest.mark.seldom
def test_query_is_read_where_a_query_tells_its_types(shop: Shop, spark: Any) -> None:
    found = spark(None, how={"keys": ["id"], "query": "SELECT id FROM orders -- all"}, **AT_ONCE)
    if shop.login.dialect == "mariadb":
        assert found["error"] == "OptionError"
        assert "a query can't be read by key from mariadb where Spark asks the database" in found["text"]
        assert "install a client of Python here" in found["text"]
        return
    assert found["rows"] == [1, 2, 3]


@pytest.mark.seldom
def test_open_transaction_delays_or_waiting_is_refused(shop: Shop, spark: Any) -> None:
    how = {"keys": ["id"]}
    if shop.login.dialect == "mariadb":
        found = spark(how=how)
        assert found["error"] == "OptionError"
        assert "settle='auto' would lose rows: mariadb may give an old list" in found["text"]
        assert "settle=timedelta" in found["text"]
        return
    assert spark(how=how)["rows"] == [1, 2, 3]
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders VALUES (4, now(), 'r')")
        add(shop, 5)
        assert spark(how=how, settle_for=0)["rows"] == []

    assert spark(how=how)["rows"] == [4, 5]


@pytest.mark.seldom
def test_writing_is_refused_by_name(shop: Shop, spark: Any) -> None:
    found = spark(how={"keys": ["id"]}, target="copy", **AT_ONCE)

    assert found["error"] == "OptionError"
    assert "a database is reached through sqlalchemy, which this Python can't import" in found["text"]
    assert "pip install" in found["text"]
    assert spark(how={"keys": ["id"]}, **AT_ONCE)["rows"] == [1, 2, 3]  # nothing was committed


def test_error_of_the_database_is_said_without_the_login(shop: Shop, spark: Any) -> None:
    absent = spark("nowhere", how={"keys": ["id"]}, **AT_ONCE)
    assert absent["error"] == "SourceMissingError"
    assert "there is no table" in absent["text"]

    locked = spark(url="conn:locked", how={"keys": ["id"]}, **AT_ONCE)
    assert locked["error"] == "DatabaseError"
    assert "can't be entered by Spark" in locked["text"]
    assert "nobody" in locked["text"]
    assert "hunter2" not in locked["text"]
    assert "conn:<id>" not in absent["text"] + locked["text"]


def test_url_without_a_login_says_how_one_is_given(shop: Shop, spark: Any) -> None:
    if shop.login.dialect == "mariadb":
        pytest.skip(
            "its driver enters as the user of the system, whom the server of tests lets in: nothing shows what is said "
            "on MariaDB where it does not"
        )
    named = spark(url=shop.login.jdbc_url, how={"keys": ["id"]}, **AT_ONCE)

    assert named["error"] == "DatabaseError"
    assert "There is no user and no password" in named["text"]
    assert "give conn:<id> in place of the URL" in named["text"]
