"""Servers and state tables for all tests. Each worker process starts a server when its first test asks for it."""

from __future__ import annotations

import contextlib
import logging
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.lifecycle.protocol.lease import Renewer
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import LeaseGrant
from airflow_bookmarks.store.table import Table
from tests.databases.servers import database_login, mariadb_server, postgresql_server
from tests.quick_clients import forget_masks, keep_what_clients_read
from tests.quick_spark import environment as quick_spark_environment
from tools.servers import dynamodb_local, moto_server

__all__ = ["database_login", "mariadb_server", "postgresql_server"]  # fixtures, one server for each worker process

REGION = "eu-west-1"


# Both databases are asked where statements are made, read and written. The conformance suite of the sink and what is
# built on these are asked of PostgreSQL alone by `make test`, and of both by `make test-all`.
_ASKS_BOTH = re.compile(
    r"tests/((core|databases)/|sinks/jdbc/test_(?!conformance)|sources/jdbc/test_(planner|keys|settling|unions)\.py)"
)


@pytest.hookimpl(tryfirst=True)  # before marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and _is_of_mariadb(item) and not _ASKS_BOTH.match(item.nodeid):
            item.add_marker(pytest.mark.thorough)
        if isinstance(item, pytest.Function) and "outcomes" in item.fixturenames:  # see tests/spark/own_process.py
            item.add_marker(pytest.mark.own_spark)


def _is_of_mariadb(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and "mariadb" in item.callspec.params.values()


@pytest.fixture(scope="session", autouse=True)
def aws_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give credentials that open nothing, and hide those of whoever runs the tests."""
    absent = str(tmp_path_factory.mktemp("aws") / "absent")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_CONFIG_FILE", absent)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", absent)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_spark() -> Iterator[None]:
    """Let each Spark that tests start, and the programs that they start, be quick."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in quick_spark_environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_clients() -> Iterator[None]:
    """Let the clients of AWS and of databases read their files once in each process."""
    with pytest.MonkeyPatch.context() as patch:
        keep_what_clients_read(patch)
        yield


@pytest.fixture(autouse=True)
def no_masks_of_earlier_tests() -> None:
    """Begin without the secrets of earlier tests."""
    forget_masks()


# To loggers that don't propagate pytest gives its handler, in each phase of a test. These two of pyspark stop to
# propagate with the first error in a query, and give each handler that they get a formatter of their own, which writes
# JSON: so every later test of the process would find JSON in `caplog.text`.
_TAKING_HANDLERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@pytest.fixture(autouse=True)
def plain_log(caplog: pytest.LogCaptureFixture) -> None:
    """Keep what a test logs in plain text, whatever tests before it did."""
    for name in _TAKING_HANDLERS:
        logger = logging.root.manager.loggerDict.get(name)  # `getLogger` would make one that is none of pyspark
        if isinstance(logger, logging.Logger):
            logger.propagate = True
    caplog.handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))


@pytest.fixture(autouse=True)
def renewers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the renewing of leases with the test: that of a run which it left as if dead would speak in a later one."""
    started: list[Renewer] = []
    start = Renewer.start

    def start_and_note(self: Renewer, grant: LeaseGrant) -> None:
        started.append(self)
        start(self, grant)

    monkeypatch.setattr(Renewer, "start", start_and_note)
    yield
    for renewer in started:
        renewer.stop()


@pytest.fixture(scope="session")
def aws_session(aws_environment: None) -> boto3.session.Session:
    """Share what a session loads, which takes longer than most tests."""
    return boto3.session.Session()


@pytest.fixture(scope="session")
def dynamodb_local_url() -> Iterator[str]:
    """Run DynamoDB Local, and return its endpoint."""
    with dynamodb_local() as url:
        yield url


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Run a moto server, and return its endpoint."""
    with moto_server() as url:
        yield url


@pytest.fixture(
    params=[
        "sqlite-memory",
        "sqlite-file",
        "moto",
        pytest.param("dynamodb-local", marks=pytest.mark.dynamodb_local),
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    """Name what keeps the table of this test."""
    name: str = request.param
    return name


@pytest.fixture
def empty_table(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    """Open a table that was not created yet."""
    match backend:
        case "sqlite-memory":
            table: Table = SqliteTable(":memory:")
            yield table
        case "sqlite-file":
            table = SqliteTable(tmp_path / "bookmarks.db")
            yield table
        case _:
            url: str = request.getfixturevalue("moto_url" if backend == "moto" else "dynamodb_local_url")
            name = f"bookmarks-{uuid.uuid4().hex}"
            session: boto3.session.Session = request.getfixturevalue("aws_session")
            table = DynamoTable(name=name, region=REGION, endpoint=url, session=session)
            yield table
            _drop(name, url, session)
    table.close()


@pytest.fixture
def table(empty_table: Table) -> Table:
    """Open a new, empty table."""
    empty_table.create()
    return empty_table


def _drop(name: str, url: str, session: boto3.session.Session) -> None:
    # moto copies all of its tables in each transaction: those of earlier tests would slow the later ones.
    client = session.client("dynamodb", region_name=REGION, endpoint_url=url)
    with contextlib.suppress(client.exceptions.ResourceNotFoundException):
        client.delete_table(TableName=name)
    client.close()
