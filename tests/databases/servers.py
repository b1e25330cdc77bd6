"""Database servers as fixtures, which tests/conftest.py gives to all tests, and empty databases in them.

A worker process starts a server when its first test asks for it; each test has a database of its own.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from tools.servers import DatabaseServer, has_databases, mariadb, postgresql

DIALECTS = ("postgresql", "mariadb", "sqlite")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[DatabaseServer]:
    """Run PostgreSQL."""
    check_installed()
    with postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    """Run MariaDB."""
    check_installed()
    with mariadb() as server:
        yield server


@pytest.fixture(params=DIALECTS)
def database_login(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseLogin]:
    """Make an empty database of each kind, and return the login to it."""
    if request.param == "sqlite":
        yield new_sqlite(tmp_path / "crm.db")
        return
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield login


@contextmanager
def new_database(server: DatabaseServer) -> Iterator[DatabaseLogin]:
    """Make an empty database in a server, which is dropped at the end; yield the login of who may do all in it."""
    name = f"crm_{uuid.uuid4().hex}"
    with open_database(login_to(server, server.database)) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            yield login_to(server, name)
        finally:
            # A test may leave a connection behind; PostgreSQL would refuse for it.
            admin.execute(f"DROP DATABASE {name}" + (" WITH (FORCE)" if server.dialect == "postgresql" else ""))


def login_to(server: DatabaseServer, database: str) -> DatabaseLogin:
    """Return the login of who may do all, to one database of a server."""
    return DatabaseLogin(server.dialect, server.host, server.port, database, server.user, server.password)


def new_sqlite(path: Path) -> DatabaseLogin:
    """Make an empty SQLite file, and return the login to it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")  # writes the file
    return DatabaseLogin("sqlite", None, None, str(path))


def check_installed() -> None:
    """Skip the test where PostgreSQL or MariaDB is missing; fail it where nobody would read that."""
    if has_databases():
        return
    how_to = "PostgreSQL or MariaDB is not installed: `make databases` installs them as root, on Debian and Ubuntu"
    if any(os.environ.get(name) for name in ("CI", "REQUIRE_DATABASES")):
        pytest.fail(how_to)  # where nobody would read that tests were skipped
    pytest.skip(how_to)
