"""A worker finds the logins of databases in Airflow's connections."""

from __future__ import annotations

import json

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.access import DatabaseAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.hooks.database import AirflowAccess

CRM = DatabaseAddress.parse("conn:crm")
LOGIN = DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "hunt@r2", {"sslmode": "require"})
FIELDS = {
    "conn_type": "postgres",
    "host": "db",
    "schema": "crm",
    "login": "etl",
    "password": "hunt@r2",
    "extra": {"sslmode": "require"},
}


@pytest.mark.parametrize(
    "text", ["postgres://etl:hunt%40r2@db/crm?sslmode=require", json.dumps(FIELDS)], ids=["uri", "json"]
)
def test_connection_is_a_login(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", text)
    access: DatabaseAccess = AirflowAccess()

    assert access.login(CRM) == LOGIN


def test_connection_opens_the_database(database_login: DatabaseLogin, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": database_login.dialect, "host": database_login.host, "port": database_login.port}
    fields |= {"login": database_login.user, "password": database_login.password, "schema": database_login.database}
    if database_login.dialect == "sqlite":
        fields = {"conn_type": "sqlite", "host": database_login.database}
    monkeypatch.setenv("AIRFLOW_CONN_CRM", json.dumps(fields))

    with open_database(AirflowAccess().login(CRM)) as database:
        assert database.rows("SELECT 1") == [(1,)]


def test_missing_connection_says_how_to_make_it() -> None:
    with pytest.raises(
        OptionError, match=r"Airflow has no connection 'no_such'\. Nothing was read or changed"
    ) as raised:
        AirflowAccess().login(DatabaseAddress.parse("conn:no_such"))

    assert "airflow connections add no_such --conn-type postgres" in str(raised.value)


def test_connection_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CRM", json.dumps({"conn_type": "aws", "password": "hunter2"}))

    with pytest.raises(OptionError, match="the connection 'crm' has the type 'aws'") as raised:
        AirflowAccess().login(CRM)

    assert "hunter2" not in str(raised.value)


def test_url_needs_no_connection() -> None:
    assert AirflowAccess().login(DatabaseAddress.parse("jdbc:sqlite:/crm.db")).database == "/crm.db"
