"""The clients of Python by which databases are reached: what SQLAlchemy calls them, and what to install."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.dialect import DialectName

_PACKAGE = "airflow-provider-bookmarks"


@dataclass(frozen=True, slots=True)
class DatabaseClient:
    """One client. `driver` is SQLAlchemy's name for it, `module` what is imported, `extra` what pip installs it by."""

    driver: str
    module: str
    extra: str


_CLIENTS: dict[DialectName, DatabaseClient] = {
    "postgresql": DatabaseClient("postgresql+psycopg", "psycopg", "postgresql"),
    "mysql": DatabaseClient("mysql+pymysql", "pymysql", "mysql"),
    "mariadb": DatabaseClient("mariadb+pymysql", "pymysql", "mysql"),
    "sqlite": DatabaseClient("sqlite", "sqlite3", "databases"),
}
# How tables are written that none of these clients reaches.
_INSTEAD: dict[DialectName, str] = {
    "redshift": " Write to Redshift through files in S3: job.write(...).redshift(url, table, tmp_dir)."
}
# SQLAlchemy 1.4, which Airflow 3.0 pins, does not know psycopg 3; Airflow's provider for PostgreSQL brings psycopg2.
_EARLIER = DatabaseClient("postgresql+psycopg2", "psycopg2", "postgresql")


def client_of(dialect: DialectName) -> DatabaseClient:
    """Return the client for a kind of database, after importing it.

    Raises:
        OptionError: SQLAlchemy or the client is not installed.
    """
    if dialect not in _CLIENTS:
        raise OptionError(
            f"this package has no client of Python for a database of the kind {dialect!r}: Spark alone can ask it. So "
            "a script can read its tables; they can't be written to, nor looked at without a Spark session, on a "
            f"worker say. Nothing was read or changed.{_INSTEAD.get(dialect, '')}"
        )
    client = _CLIENTS[dialect]
    _check_installed("sqlalchemy", client)
    if dialect == "postgresql" and _is_earlier():
        client = _EARLIER
    _check_installed(client.module, client)
    return client


def why_no_client(dialect: DialectName) -> str | None:
    """Say why a kind of database can't be asked by Python here; None: it can."""
    try:
        client_of(dialect)
    except OptionError as error:
        return str(error)
    return None


def _is_earlier() -> bool:
    import sqlalchemy

    return sqlalchemy.__version__.startswith("1.")


def _check_installed(module: str, client: DatabaseClient) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        needed = "psycopg2-binary" if module == "psycopg2" else f"'{_PACKAGE}[{client.extra}]'"
        raise OptionError(
            f"a database is reached through {module}, which this Python can't import ({error}). Nothing was read or "
            f"changed. Install it on the Spark driver and on the Airflow workers: pip install {needed}"
        ) from error
