"""The session of a writer of MariaDB, which may end with a prepared transaction: SQLAlchemy would roll that back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import pymysql

from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin


class Session(Protocol):
    """What a writer needs of a session."""

    @property
    def dialect(self) -> str:
        """Which SQL it speaks."""
        ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        ...

    def execute(self, sql: str) -> int:
        """Run a statement."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class MariaDbSession:
    """A connection in UTC that commits each statement outside of transactions, and only hangs up at its end."""

    dialect: ClassVar[str] = "mariadb"

    def __init__(self, login: DatabaseLogin) -> None:
        self._connection = pymysql.connect(
            host=login.host,
            port=login.port or 0,
            user=login.user,
            password=login.password or "",
            database=login.database,
            autocommit=True,
        )
        self.execute("SET time_zone = '+00:00'")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        with _errors(), self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def execute(self, sql: str) -> int:
        """Run a statement."""
        with _errors(), self._connection.cursor() as cursor:
            return int(cursor.execute(sql))

    def close(self) -> None:
        """Hang up, if it is not done."""
        if self._connection.open:
            self._connection.close()


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except pymysql.err.MySQLError as error:
        raise DatabaseError(str(error), str(error.args[0])) from error


def open_session(login: DatabaseLogin) -> Session:
    """Open the session of a writer."""
    return open_database(login) if login.dialect == "postgresql" else MariaDbSession(login)
