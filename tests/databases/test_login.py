"""The login of a database comes from Airflow's forms and from a secret of RDS, and shows no password."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin

RDS = {
    "engine": "postgres",
    "host": "crm.abc.eu-west-1.rds.amazonaws.com",
    "port": 5432,
    "username": "etl",
    "password": "hunter2",
    "dbname": "crm",
    "dbInstanceIdentifier": "crm",
}


def test_uri_of_airflow_is_read() -> None:
    login = DatabaseLogin.of_uri("postgres://etl:p%40s%3As%25@db:5433/crm?sslmode=require&application_name=my%20job")

    assert login == DatabaseLogin(
        "postgresql", "db", 5433, "crm", "etl", "p@s:s%", {"sslmode": "require", "application_name": "my job"}
    )


def test_uri_with_an_address_of_ipv6_is_read() -> None:
    login = DatabaseLogin.of_uri("mariadb://etl@[2001:db8::7]/crm")

    assert (login.host, login.port, login.password) == ("2001:db8::7", 3306, None)
    assert login.jdbc_url == "jdbc:mariadb://[2001:db8::7]:3306/crm"


def test_uri_with_extras_in_json_is_read() -> None:
    extra = "__extra__=%7B%22ssl%22%3A%20%7B%22ca%22%3A%20%22%2Fca.pem%22%7D%2C%20%22connect_timeout%22%3A%205%7D"

    login = DatabaseLogin.of_uri(f"mysql://etl:hunter2@db/crm?{extra}")

    assert login.parameters == {"ssl_ca": "/ca.pem", "connect_timeout": "5"}


@pytest.mark.parametrize("uri", ["sqlite:////var/CRM.db", "sqlite:///var/CRM.db", "sqlite://%2Fvar%2FCRM.db/"])
def test_uri_of_a_file_is_read(uri: str) -> None:
    assert DatabaseLogin.of_uri(uri) == DatabaseLogin("sqlite", None, None, "/var/CRM.db")


@pytest.mark.parametrize("extra", [{"sslmode": "require"}, '{"sslmode": "require"}', None, ""])
def test_json_of_airflow_is_read(extra: Any) -> None:
    fields = {"conn_type": "postgres", "host": "db", "schema": "crm", "login": "etl", "password": "hunter2"}

    login = DatabaseLogin.of_json(json.dumps({**fields, "port": 5432, "extra": extra}))

    parameters = {"sslmode": "require"} if extra else {}
    assert login == DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "hunter2", parameters)


def test_secret_of_rds_is_read() -> None:
    login = DatabaseLogin.of_json(json.dumps(RDS))

    assert login == DatabaseLogin("postgresql", "crm.abc.eu-west-1.rds.amazonaws.com", 5432, "crm", "etl", "hunter2")


def test_connection_of_the_type_jdbc_has_its_url_as_host() -> None:
    fields = {"conn_type": "jdbc", "host": "jdbc:postgresql://db/crm?sslmode=require", "login": "etl"}

    login = DatabaseLogin.of_json(json.dumps(fields))

    assert login == DatabaseLogin("postgresql", "db", 5432, "crm", "etl", None, {"sslmode": "require"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hunter2", "no URI that can be read"),
        ("etl:hunter2@db/crm", "no URI that can be read"),
        ("{no json, hunter2", "neither a JSON object nor a URI"),
        ('{"conn_type": "postgres", "extra": "hunter2"}', "extra fields that are no JSON"),
        ('{"conn_type": "postgres", "extra": "[1]"}', "extra fields that are no JSON object"),
        ('{"conn_type": "postgres", "extra": ["hunter2"]}', "extra fields that are no JSON object"),
        ('{"username": "etl", "password": "hunter2"}', "the type ''; known are .*postgres"),
        ('{"engine": "db2", "password": "hunter2"}', "the type 'db2'"),
        ('{"engine": "postgres", "password": "hunter2"}', r"no host and no schema \(the database\)"),
        ('{"engine": "postgres", "host": "db", "password": "hunter2"}', "has no schema"),
        ('{"engine": "postgres", "host": "db", "dbname": "crm", "port": "hunter2"}', "a port that is no number"),
        ('{"engine": "postgres", "host": "db", "dbname": 7, "password": "hunter2"}', "'schema', which is no text"),
        ('{"conn_type": "sqlite", "host": "crm.db"}', "absolute path"),
        ('{"conn_type": "postgres", "host": "db", "schema": "crm", "extra": {"iam": true}}', "'iam' among its extra"),
        ("postgres://etl:hunter2@db:x/crm", "no URI that can be read"),
        ("postgres://etl:hunter2@db", "no schema"),
    ],
)
def test_incomplete_login_says_what_is_wrong_and_not_the_password(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=f"^the login of crm .*{why}.*Nothing was read or changed") as raised:
        DatabaseLogin.of_text(text, "the login of crm")

    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_login_shows_no_password() -> None:
    login = DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "hunter2", {"sslpassword": "swordfish"})

    shown = f"{login} {login!r} {login.jdbc_url} {login.sqlalchemy_url()!r}"

    assert "hunter2" not in shown
    assert "swordfish" not in shown


def test_jdbc_driver_gets_secrets_as_properties() -> None:
    login = DatabaseLogin(
        "postgresql", "db", 5432, "crm", "etl", "hunter2", {"sslpassword": "swordfish", "sslmode": "require"}
    )

    assert login.jdbc_url == "jdbc:postgresql://db:5432/crm?sslmode=require"
    assert login.jdbc_properties() == {
        "driver": "org.postgresql.Driver",
        "user": "etl",
        "password": "hunter2",
        "sslpassword": "swordfish",
    }


def test_value_that_the_url_of_mariadb_cannot_hold_is_a_property() -> None:
    login = DatabaseLogin("mariadb", "db", 3306, "a b%", parameters={"one": "a=b&c", "other": "a=b c%"})

    assert login.jdbc_url == "jdbc:mariadb://db:3306/a b%?other=a=b c%"
    assert login.jdbc_properties()["one"] == "a=b&c"


def test_name_that_a_jdbc_driver_cannot_open_is_refused() -> None:
    with pytest.raises(OptionError, match=r"'/a\?\.db' has a '\?'"):
        _ = DatabaseLogin("sqlite", None, None, "/a?.db").jdbc_url


def test_jdbc_driver_of_each_database_is_named() -> None:
    mysql = DatabaseLogin("mysql", "db", 3306, "crm").jdbc_properties()
    sqlite = DatabaseLogin("sqlite", None, None, "/crm.db").jdbc_properties()

    assert (mysql, sqlite) == ({"driver": "com.mysql.cj.jdbc.Driver"}, {"driver": "org.sqlite.JDBC"})


def test_sqlalchemy_url_has_the_password() -> None:
    url = DatabaseLogin("postgresql", "db", 5432, "crm", "etl", "p@s:s%").sqlalchemy_url()

    assert (url.drivername, url.password) == ("postgresql+psycopg", "p@s:s%")


def test_url_is_a_login_without_user() -> None:
    login = DatabaseLogin.of_address(DatabaseAddress.parse("jdbc:postgresql://db/crm?sslmode=require"))

    assert login == DatabaseLogin("postgresql", "db", 5432, "crm", parameters={"sslmode": "require"})


def test_id_of_a_connection_alone_is_no_login() -> None:
    with pytest.raises(OptionError, match="'conn:crm' is the id of a connection"):
        DatabaseLogin.of_address(DatabaseAddress.parse("conn:crm"))


@pytest.mark.parametrize(
    ("fields", "url", "driver"),
    [
        (
            {"conn_type": "mssql", "schema": "crm", "extra": {"encrypt": "true", "driver": "ODBC Driver 18"}},
            "jdbc:sqlserver://db:1433;databaseName=crm;encrypt=true",
            "com.microsoft.sqlserver.jdbc.SQLServerDriver",
        ),
        (
            {"conn_type": "oracle", "schema": "etl", "extra": {"service_name": "crm.example.com", "thick_mode": False}},
            "jdbc:oracle:thin:@//db:1521/crm.example.com",
            "oracle.jdbc.OracleDriver",
        ),
        (
            {"conn_type": "redshift", "schema": "crm", "extra": {"ssl": True}},
            "jdbc:redshift://db:5439/crm?ssl=true",
            "com.amazon.redshift.Driver",
        ),
    ],
)
def test_connection_of_an_untried_database_is_read(fields: dict[str, Any], url: str, driver: str) -> None:
    login = DatabaseLogin.of_json(json.dumps({**fields, "host": "db", "login": "etl", "password": "hunter2"}))

    assert login.jdbc_url == url
    assert login.jdbc_properties() == {"driver": driver, "user": "etl", "password": "hunter2"}
    assert DatabaseAddress.parse(login.jdbc_url).name == login.name


def test_value_that_would_end_a_parameter_of_a_url_is_a_property() -> None:
    login = DatabaseLogin(
        "sqlserver", "db", 1433, "crm", "etl", None, {"applicationName": "a;user=b", "encrypt": "true"}
    )

    assert login.jdbc_url == "jdbc:sqlserver://db:1433;databaseName=crm;encrypt=true"
    assert login.jdbc_properties()["applicationName"] == "a;user=b"


def test_name_that_would_end_the_database_of_a_url_is_refused() -> None:
    with pytest.raises(OptionError, match="has a ';', with which its JDBC driver can't open it"):
        _ = DatabaseLogin("sqlserver", "db", 1433, "crm;user=b").jdbc_url


def test_only_a_login_without_user_and_password_says_how_one_is_given() -> None:
    url = DatabaseLogin("mariadb", "db", 3306, "crm")
    named = [replace(url, user="etl"), replace(url, password="x"), DatabaseLogin("sqlite", None, None, "/crm.db")]

    assert "give conn:<id> in place of the URL" in url.remedy
    assert [login.remedy for login in named] == ["", "", ""]
