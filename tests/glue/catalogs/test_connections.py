"""Connections to databases: by the name that a script gives, or by the URL in its options."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import boto3.session
import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.catalogs.connections import (
    connection_named,
    connection_of_options,
    extract_jdbc_conf,
    login_of_url,
)
from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog
from airflow_bookmarks.glue.errors import EntityNotFoundError
from airflow_bookmarks.glue.run import GlueRun, current_run
from tests.conftest import REGION
from tests.glue.inputs.conftest import tables
from tests.glue.running import Tables

__all__ = ["tables"]

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark: SparkSession) -> GlueRun:
    return current_run(spark)


@pytest.fixture
def add(tables: Tables) -> Callable[..., str]:
    """Return what adds a connection to the Data Catalog, and returns its name."""

    def added(kind: str = "JDBC", **properties: str) -> str:
        given = {"Name": tables.database, "ConnectionType": kind, "ConnectionProperties": properties}
        tables.client.create_connection(ConnectionInput=given)
        return tables.database

    return added


URL = "jdbc:postgresql://db.example.com:5433/shop?ssl=true"


def test_connection_of_the_catalog_is_a_login_of_this_process(run: GlueRun, add: Callable[..., str]) -> None:
    found = connection_named(run, add(JDBC_CONNECTION_URL=URL, USERNAME="etl", PASSWORD="pass"))
    login = found.login
    assert (login.dialect, login.host, login.port, login.database) == ("postgresql", "db.example.com", 5433, "shop")
    assert (login.user, login.password) == ("etl", "pass")
    assert "pass" not in repr(found)


def test_database_of_the_options_replaces_that_of_the_url(run: GlueRun, add: Callable[..., str]) -> None:
    name = add(JDBC_CONNECTION_URL=URL)
    found = connection_named(run, name, database="archive")
    assert (found.login.database, found.address) == ("archive", f"conn:{name}.archive")


def told(monkeypatch: pytest.MonkeyPatch, kind: str, **properties: str) -> None:
    """Let the catalog tell a connection: that of moto forgets of what type one is."""
    connection = {"Name": "typed", "ConnectionType": kind, "ConnectionProperties": properties}
    monkeypatch.setattr(DataCatalog, "connection", lambda self, name: connection)


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("MYSQL", "jdbc:mysql://db:3306/shop"),
        ("POSTGRESQL", "jdbc:postgresql://db:5432/shop"),
        ("SQLSERVER", "jdbc:sqlserver://db:1433;databaseName=shop"),
        ("ORACLE", "jdbc:oracle:thin:@//db:1521/shop"),
    ],
)
def test_typed_connection_has_its_parts(run: GlueRun, monkeypatch: pytest.MonkeyPatch, kind: str, url: str) -> None:
    told(monkeypatch, kind, HOST="db", DATABASE="shop")
    assert connection_named(run, "typed").login.jdbc_url == url


def test_user_and_password_may_lie_in_a_secret(
    run: GlueRun,
    add: Callable[..., str],
    aws_session: boto3.session.Session,
    moto_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tables: Tables,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    client = aws_session.client("secretsmanager", region_name=REGION, endpoint_url=moto_url)
    client.create_secret(Name=tables.database, SecretString=json.dumps({"username": "u", "password": "p"}))
    login = connection_named(run, add(JDBC_CONNECTION_URL=URL, SECRET_ID=tables.database)).login
    assert (login.user, login.password) == ("u", "p")


def test_connection_of_this_process_comes_first(run: GlueRun, monkeypatch: pytest.MonkeyPatch, tables: Tables) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "postgres://etl:pass@other/crm")
    assert connection_named(run, "shop").login.host == "other"


def test_unknown_connection_names_both_places(run: GlueRun, tables: Tables) -> None:
    with pytest.raises(EntityNotFoundError, match=r"'gone' does not exist in the Data Catalog .*AIRFLOW_CONN_GONE"):
        connection_named(run, "gone")


def test_connection_that_is_no_database_is_refused(run: GlueRun, monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "KAFKA", KAFKA_BOOTSTRAP_SERVERS="b:9092")
    with pytest.raises(OptionError, match="is of the type 'KAFKA', and not JDBC"):
        connection_named(run, "typed")


@pytest.mark.seldom
def test_conf_of_a_connection_has_what_scripts_connect_by(run: GlueRun, add: Callable[..., str]) -> None:
    conf = extract_jdbc_conf(run, add(JDBC_CONNECTION_URL=URL, USERNAME="etl", PASSWORD="pass"))
    assert {name: conf[name] for name in ("user", "password", "vendor", "url", "fullUrl")} == {
        "user": "etl",
        "password": "pass",
        "vendor": "postgresql",
        "url": "jdbc:postgresql://db.example.com:5433",
        "fullUrl": URL,
    }


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("jdbc:mysql://db:3306/shop", "jdbc:mysql://db:3306/shop"),
        ("jdbc:oracle:thin://@db:1521/shop", "jdbc:oracle:thin:@//db:1521/shop"),
        ("jdbc:oracle:thin:@//db:1521/shop", "jdbc:oracle:thin:@//db:1521/shop"),
        ("jdbc:sqlserver://db:1433;database=shop", "jdbc:sqlserver://db:1433;databaseName=shop"),
        ("jdbc:redshift://db:5439/shop?user=etl&password=p", "jdbc:redshift://db:5439/shop"),
    ],
)
def test_urls_are_understood_as_glue_writes_them(url: str, spelled: str) -> None:
    assert login_of_url(url).jdbc_url == spelled


def test_user_and_password_may_stand_in_the_url() -> None:
    login = login_of_url("jdbc:postgresql://db/shop?user=etl&password=p&ssl=true")
    assert (login.user, login.password) == ("etl", "p")


def test_options_are_a_connection_named_after_the_url_without_secrets(run: GlueRun) -> None:
    options: dict[str, Any] = {"url": "jdbc:mysql://db:3306/shop", "user": "etl", "password": "pass"}
    found = connection_of_options(run, options, "a call")
    assert found.address.startswith("conn:mysql")
    assert not any(secret in found.address for secret in ("etl", "pass"))
    assert (found.login.user, found.login.password) == ("etl", "pass")
    assert connection_of_options(run, options, "a call").address == found.address


def test_url_of_an_unknown_database_is_refused_without_its_secrets(run: GlueRun) -> None:
    with pytest.raises(OptionError) as caught:
        connection_of_options(run, {"url": "jdbc:db2://db/shop?password=hidden"}, "a call")
    assert "hidden" not in str(caught.value)
