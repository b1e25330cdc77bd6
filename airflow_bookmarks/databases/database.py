"""Run statements and transactions in a database, over one connection.

Statements take no parameters: each value is a literal that `core.database` has quoted for the dialect. So that a
literal means the same wherever it is read, each session has these settings:

    PostgreSQL       UTC, ISO dates, intervals of ISO 8601, floats with all digits, bytes in hexadecimal, money without
                     signs of a country, standard_conforming_strings
    MySQL, MariaDB   UTC, utf8mb4, a fixed sql_mode (strict, "text" is text, and a backslash is a letter like others),
                     all rows of a query, and statements that change all rows of a table
    SQLite           foreign keys are checked; a lock of another process is waited for
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from airflow_bookmarks.core.database.dialects.quoting import is_mysql
from airflow_bookmarks.core.errors import DatabaseError, MisuseError, OptionError
from airflow_bookmarks.core.text.redaction import MARK, redacted
from airflow_bookmarks.databases.client import client_of
from airflow_bookmarks.databases.parameters import client_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy.engine import Connection, CursorResult
    from sqlalchemy.exc import SQLAlchemyError

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.databases.login import DatabaseLogin

T = TypeVar("T")

_LOCK_WAIT_S = 60

_SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_BACKSLASH_ESCAPES"
_ALL_ROWS_OF_MYSQL = "SET sql_select_limit = 18446744073709551615"  # DEFAULT would be what the server says
_SETTINGS_OF_MYSQL = (
    "SET time_zone = '+00:00'",
    f"SET sql_mode = '{_SQL_MODE}'",
    _ALL_ROWS_OF_MYSQL,
    "SET sql_safe_updates = 0",
)
_SETTINGS: Mapping[DialectName, tuple[str, ...]] = {
    "postgresql": (
        "SET TIME ZONE 'UTC'",
        "SET datestyle = 'ISO, YMD'",
        "SET intervalstyle = 'iso_8601'",
        "SET extra_float_digits = 1",
        "SET bytea_output = 'hex'",
        "SET lc_monetary = 'C'",
        "SET standard_conforming_strings = on",
        "SET client_encoding = 'UTF8'",
    ),
    "mysql": _SETTINGS_OF_MYSQL,
    "mariadb": _SETTINGS_OF_MYSQL,
    "sqlite": ("PRAGMA foreign_keys = on",),
}
# SQLite would take a lock for reading first, and two who both want to write then wait for each other.
_BEGIN: Mapping[DialectName, str] = {
    "postgresql": "BEGIN",
    "mysql": "START TRANSACTION",
    "mariadb": "START TRANSACTION",
    "sqlite": "BEGIN IMMEDIATE",
    "redshift": "BEGIN",
}


def session_settings(dialect: DialectName) -> str | None:
    """Return the settings of a session as one statement, for a JDBC driver; None: a kind of database needs none."""
    if is_mysql(dialect):
        return f"SET {', '.join(each.removeprefix('SET ') for each in _SETTINGS[dialect])}"
    return "; ".join(_SETTINGS[dialect]) if dialect == "postgresql" else None


def reading_settings(dialect: DialectName) -> str | None:
    """Return the setting without which Spark would read a part of the rows of a query, and no error; None: no such.

    The others are not for Spark: what a query of the user's means there is for the server to say.
    """
    return _ALL_ROWS_OF_MYSQL if is_mysql(dialect) else None


class Database:
    """One connection, for one thread at a time. Outside of `transaction()` each statement commits by itself.

    Example:
        with open_database(login) as database:
            with database.transaction():
                database.execute("DELETE FROM stage WHERE fence < 7")
            rows = database.rows("SELECT count(*) FROM stage")
    """

    holds_session = True

    def __init__(self, login: DatabaseLogin, connection: Connection) -> None:
        self._login = login
        self._connection = connection
        self._is_in_transaction = False
        self._refusal: DatabaseError | None = None  # of the transaction

    @property
    def dialect(self) -> DialectName:
        """Which SQL this database speaks."""
        return self._login.dialect

    @property
    def name(self) -> str:
        """The URL of the database, without parameters and secrets."""
        return self._login.name

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; a transaction that is open is rolled back."""
        self._connection.close()
        self._connection.engine.dispose()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows.

        Raises:
            DatabaseError: the database refused it, or the connection broke.
        """
        return [tuple(row) for row in self._run(sql, lambda result: result.all() if result.returns_rows else [])]

    def execute(self, sql: str) -> int:
        """Run one statement and return how many rows it inserted, matched to update, or deleted.

        A statement that changes no rows, such as `CREATE TABLE`, returns what the client says: 0 or -1.

        Raises:
            DatabaseError: the database refused it, or the connection broke.
        """
        return self._run(sql, lambda result: result.rowcount)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what runs within the block at its end; an exception rolls it back and passes through.

        In MySQL and MariaDB a statement such as `CREATE TABLE` commits what was done before it.

        Raises:
            MisuseError: it is begun within another one.
            DatabaseError: it could not begin or commit. With `is_lost` a commit may have taken effect all the same.
        """
        if self._is_in_transaction:
            raise MisuseError(
                f"a transaction in {self.name} was begun within another one, which would commit it too early. Nothing "
                "was changed. End the first one before."
            )
        self.execute(_BEGIN[self.dialect])
        self._is_in_transaction, self._refusal = True, None
        try:
            yield
            self._commit()
        except BaseException:  # whatever ends the block, an interrupt too: nothing of it may be committed later
            self._roll_back()
            raise
        finally:
            self._is_in_transaction = False

    def _commit(self) -> None:
        if self._refusal is not None:
            # PostgreSQL would answer this commit with a rollback, and say nothing; the others would commit the rest.
            raise DatabaseError(f"a transaction ends with a statement that was refused: {self._refusal}")
        self.execute("COMMIT")

    def _roll_back(self) -> None:
        """End a transaction without a trace, whatever state its connection is in."""
        if self._connection.closed:
            return
        try:
            self._connection.exec_driver_sql("ROLLBACK")
        except _errors():
            # Where the connection broke, the database rolls back when it notices. The error that led here is the one
            # to be told.
            self._connection.invalidate()

    def _run(self, sql: str, take: Callable[[CursorResult[Any]], T]) -> T:
        if self._connection.invalidated:
            # SQLAlchemy would connect again, without the settings of the session and outside of the transaction.
            raise DatabaseError(
                f"{self.name}: the connection broke before. The statement was not run. Open the database again.",
                is_lost=True,
            )
        try:
            return take(self._connection.exec_driver_sql(sql, execution_options={"no_parameters": True}))
        except _errors() as error:
            # Not with its cause: the text of that holds the statement, with values of rows in it.
            self._refusal = self._refused(error)
            raise self._refusal from None

    def _refused(self, error: SQLAlchemyError) -> DatabaseError:
        cause = getattr(error, "orig", None) or error
        text, code = _text_of(cause, self._login.password), _code_of(cause)
        if getattr(error, "connection_invalidated", False):
            what = "the connection broke, so whether the last statement took effect is not known"
            return DatabaseError(f"{self.name}: {what} ({text}). Try again when it is reachable.", code, is_lost=True)
        left = "The transaction is rolled back." if self._is_in_transaction else "The statement changed nothing."
        return DatabaseError(f"{self.name} refused a statement: {text}. {left}", code)


def open_database(login: DatabaseLogin) -> Database:
    """Connect to a database, with the settings above.

    Raises:
        OptionError: SQLAlchemy or the client of this database is not installed, or a parameter of the login is wrong.
        DatabaseError: the database does not answer, or refuses the login.

    Example:
        with open_database(DatabaseLogin.of_uri("postgresql://etl:hunter2@db/crm")) as database:
            database.rows("SELECT version()")
    """
    client_of(login.dialect)
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    # `future`: SQLAlchemy 1.4 would commit after each statement by itself, within our transactions too.
    details: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "poolclass": NullPool, "future": True}
    engine = create_engine(login.sqlalchemy_url(), **details, **_connecting(login))
    try:
        connection = engine.connect()
    except _errors() as error:
        # Not with its cause: frames of the client hold the password.
        raise _unreachable(login, error) from None
    database = Database(login, connection)
    try:
        for statement in _SETTINGS[login.dialect]:
            database.execute(statement)
    except DatabaseError:
        database.close()
        raise
    return database


def _connecting(login: DatabaseLogin) -> dict[str, Any]:
    """Return how SQLAlchemy makes a connection, beside its URL."""
    if login.dialect == "sqlite":
        return {"creator": _opener_of(login.database)}
    arguments = client_arguments(login.dialect, login.parameters)
    if login.dialect == "postgresql":
        if client_of(login.dialect).module == "psycopg":
            arguments["prepare_threshold"] = None  # a pooler between gives each transaction another server
    else:
        if "ssl" in arguments:
            _check_tls_is_kept()
        if login.password is not None:
            arguments["password"] = login.password.encode()  # PyMySQL takes a text for Latin-1
    return {"connect_args": arguments}


def _check_tls_is_kept() -> None:
    """Make sure that PyMySQL does not go on without TLS where a server, or who is between, offers none."""
    import pymysql

    if pymysql.VERSION[:2] < (1, 2):
        raise OptionError(
            f"the login asks for TLS, and PyMySQL {pymysql.__version__} would go on without it where the server offers "
            "none. Nothing was read or changed. Install PyMySQL 1.2 or later."
        )


def _opener_of(path: str) -> Callable[[], sqlite3.Connection]:
    # SQLite would make a file that is absent, and an empty database passes for one in which nothing is new.
    uri = f"file:{quote(path)}?mode=rw"
    return lambda: sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT_S, isolation_level=None, check_same_thread=False)


def _errors() -> tuple[type[SQLAlchemyError], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError,)


def _unreachable(login: DatabaseLogin, error: SQLAlchemyError) -> DatabaseError:
    cause = getattr(error, "orig", None) or error
    as_whom = f" as user {login.user!r}" if login.user else ""
    return DatabaseError(
        f"{login.name} can't be entered{as_whom}: {_text_of(cause, login.password)}. Nothing was read or changed."
        f"{login.remedy}",
        _code_of(cause),
    )


def _text_of(cause: BaseException, password: str | None) -> str:
    """Return the first line of what a client says, without its number in front and without secrets."""
    said = cause.args[1] if len(cause.args) > 1 and isinstance(cause.args[1], str) else str(cause)
    line = said.strip().split("\n")[0].strip().rstrip(".")
    return redacted(line.replace(password, MARK) if password else line)


def _code_of(cause: BaseException) -> str | None:
    if cause.args and isinstance(cause.args[0], int):
        return str(cause.args[0])  # PyMySQL: its number says more than its SQLSTATE
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):  # psycopg, psycopg2, SQLite
        code = getattr(cause, name, None)
        if code:
            return str(code)
    return None
