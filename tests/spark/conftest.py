"""A Spark for all tests of the runtime, a session of its own for each of them, and a lake.

The session is a classic one, in this process; with SPARK_TESTS_SESSION=connect it is a client of a Spark Connect
server, which runs in a process of its own as long as these tests do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.spark.features import is_connect
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.quick_spark import JAVA_OPTIONS
from tests.spark.lake import Lake, OpenSession
from tests.spark.needs import MISSING
from tests.thorough import mark_seldom
from tools.connect_server import connect_server

_KIND = os.environ.get("SPARK_TESTS_SESSION", "classic")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `make test` play of what one kind of table or format promises the most important, see `own_process`."""
    if item.path.name.endswith("_promises.py"):
        mark_seldom(item)


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Return what else Spark is started with: modules that have one of their own say it."""
    return {}


@pytest.fixture(scope="session")
def open_session(tmp_path_factory: pytest.TempPathFactory, more_conf: Mapping[str, str]) -> Iterator[OpenSession]:
    """Start Spark, and return what opens a session whose conf is its own."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,  # halves short tests
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.session.timeZone": "UTC",
        **more_conf,
    }
    if _KIND == "connect":
        with connect_server(tmp_path_factory.mktemp("connect"), conf) as url, _clients(url) as open_client:
            yield open_client
    elif _KIND == "classic":
        with _classic(conf) as session:
            yield session.newSession
    else:
        raise ValueError(f"SPARK_TESTS_SESSION={_KIND!r}: expected 'classic' or 'connect'")


@contextmanager
def _clients(url: str) -> Iterator[OpenSession]:
    """Return what opens clients of a server; at the end they are stopped, or each would try for minutes to reach it.

    They are kept as long: one that is collected as garbage shuts down a pool of threads that all clients share, and if
    a client is just at work with the pool, both wait for ever.
    """
    opened: list[SparkSession] = []

    def open_client() -> SparkSession:
        opened.append(SparkSession.builder.remote(url).create())
        return opened[-1]

    yield open_client
    for client in opened:
        client.stop()


@contextmanager
def _classic(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_spark(open_session: OpenSession) -> SparkSession:
    """Open a session for all tests that change nothing of it."""
    return open_session()


@pytest.fixture
def spark(open_session: OpenSession) -> Iterator[SparkSession]:
    """Open a session whose conf is this test's own."""
    session = open_session()
    if is_connect(session):  # else that of the first test is the active one: a script has one session
        type(session)._active_session.session = session  # type: ignore[attr-defined]
    yield session
    if is_connect(session):  # that of a classic session would stop Spark
        session.stop()


@pytest.fixture(autouse=True)
def switched_off_without(request: pytest.FixtureRequest) -> None:
    """Skip a test that needs what this Spark lacks: `needs` names it, or the way in which it reads."""
    needed = [name for marker in request.node.iter_markers("needs") for name in marker.args]
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("way") == "directory":
        needed.append("listing once")
    for name in needed:
        reason = MISSING[name](request.getfixturevalue("shared_spark"))
        if reason:
            pytest.skip(reason)


@pytest.fixture
def store(tmp_path: Path) -> BookmarkStore:
    """Open a fresh store on SQLite."""
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    return store


@pytest.fixture
def lake(tmp_path: Path, store: BookmarkStore, spark: SparkSession, open_session: OpenSession) -> Lake:
    """Open a lake whose raw folder is there and empty."""
    lake = Lake(tmp_path / "lake", store, spark, open_session)
    (lake.root / "raw").mkdir(parents=True)
    return lake
