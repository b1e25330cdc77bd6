"""A process that lacks what reaches a database says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from airflow_bookmarks.core.database.dialect import DialectName
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.client import client_of, why_no_client
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("dialect", "module", "extra"),
    [
        ("postgresql", "psycopg", "postgresql"),
        ("mysql", "pymysql", "mysql"),
        ("mariadb", "pymysql", "mysql"),
        ("sqlite", "sqlalchemy", "databases"),
    ],
)
def test_missing_client_is_named_with_its_extra(
    dialect: DialectName, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed

    with pytest.raises(OptionError, match=rf"reached through {module}, .*airflow-provider-bookmarks\[{extra}\]"):
        open_database(DatabaseLogin(dialect, "db", 1, "crm", "etl", "hunter2"))


@pytest.mark.parametrize("dialect", ["sqlserver", "oracle", "redshift", "acme"])
def test_database_without_a_client_of_python_is_refused_by_name(dialect: DialectName) -> None:
    with pytest.raises(OptionError, match=rf"the kind '{dialect}': Spark alone can ask it.*can't be written to"):
        open_database(DatabaseLogin(dialect, "db", 1, "crm", "etl", "hunter2"))


def test_sqlalchemy_of_earlier_airflow_takes_the_client_of_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlalchemy.__version__", "1.4.54")
    monkeypatch.setitem(sys.modules, "psycopg2", None)

    with pytest.raises(OptionError, match=r"reached through psycopg2, .*pip install psycopg2-binary"):
        client_of("postgresql")


def test_what_reaches_databases_is_imported_when_one_is_opened() -> None:
    script = (
        "import sys, airflow_bookmarks.databases.database, airflow_bookmarks.databases.access\n"
        "print(*{'sqlalchemy', 'psycopg', 'pymysql', 'boto3', 'airflow', 'pyspark'} & set(sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=_ROOT)

    assert done.stdout.split() == []


def test_write_to_redshift_is_led_to_its_own_sink() -> None:
    assert (why_no_client("redshift") or "").endswith("job.write(...).redshift(url, table, tmp_dir).")
