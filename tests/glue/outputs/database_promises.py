"""Promises GLUE-11 and SINK-4 on tables that scripts for Glue write, with Spark and PostgreSQL.

`test_database.py` runs them in a process of its own: the jar of the driver has to be there when Spark starts.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import boto3.session
import pytest
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, PublishError, SourceError
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.glue.dynamic.choice import marks_of
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import ChoiceType, IntegerType, StringType
from airflow_bookmarks.glue.errors import EntityNotFoundError
from airflow_bookmarks.glue.run import forget_runs
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.testing.crash import SimulatedCrash
from tests.conftest import REGION
from tests.databases.servers import new_database
from tests.glue.outputs.conftest import Script
from tests.spark.drivers import dies_at
from tools.jars import fetch

pytestmark = pytest.mark.spark

ROWS, SCHEMA = [(1, "a"), (2, "b")], "id int, name string"


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Put the driver beside Spark's own jars."""
    return {"spark.driver.extraClassPath": ":".join(str(jar) for jar in fetch("postgresql").glob("*.jar"))}


@pytest.fixture
def login(postgresql_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatabaseLogin]:
    """Make an empty database, whose login is that of the connection `dw`."""
    with new_database(postgresql_server) as login:
        uri = f"postgresql://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
        monkeypatch.setenv("AIRFLOW_CONN_DW", uri)
        yield login


def rows(login: DatabaseLogin, query: str = "SELECT id, name FROM orders ORDER BY 1") -> list[tuple[Any, ...]]:
    with open_database(login) as database:
        return database.rows(query)


def create(login: DatabaseLogin, *more: str) -> None:
    with open_database(login) as database:
        for statement in ("CREATE TABLE orders (id int, name text)", *more):
            database.execute(statement)


def write(script: Script, given: list[Any] = ROWS, **options: Any) -> None:
    script.context.write_dynamic_frame.from_jdbc_conf(
        script.frame(given, SCHEMA),
        "dw",
        connection_options={"dbtable": "orders", **options},
        redshift_tmp_dir="s3://tmp/",
        transformation_ctx="sink",
    )


def test_rows_appear_after_the_commit_alone(script: Script, login: DatabaseLogin) -> None:
    create(login)
    script.begin()
    write(script)
    assert rows(login) == []

    script.commit()

    assert rows(login) == ROWS


def test_rows_of_a_run_with_disable_appear_at_once(script: Script, login: DatabaseLogin) -> None:
    create(login)
    script.begin("job-bookmark-disable")

    write(script, preactions="DELETE FROM orders; INSERT INTO orders VALUES (0, 'first')")

    assert rows(login) == [(0, "first"), *ROWS]


def test_missing_table_is_made(script: Script, login: DatabaseLogin) -> None:
    script.begin()
    write(script)
    script.commit()

    assert rows(login) == ROWS


def test_actions_run_in_the_transaction_of_the_publish(script: Script, login: DatabaseLogin) -> None:
    create(login, "INSERT INTO orders VALUES (1, 'old'), (9, 'kept')")
    script.begin()
    actions: dict[str, Any] = {
        "preactions": "begin; DELETE FROM orders WHERE id < 9;",
        "postactions": "UPDATE orders SET name = 'x' WHERE id = 2; end",
    }
    write(script, ROWS, **actions)
    assert rows(login) == [(1, "old"), (9, "kept")]

    script.commit()

    assert rows(login) == [(1, "a"), (2, "x"), (9, "kept")]


def test_action_that_fails_leaves_the_table_and_the_publish_due(script: Script, login: DatabaseLogin) -> None:
    create(login, "INSERT INTO orders VALUES (1, 'old')")
    script.begin()
    write(script, preactions="DELETE FROM orders", postactions="UPDATE nowhere SET a = 1")

    with pytest.raises((SourceError, PublishError)):
        script.commit()

    assert rows(login) == [(1, "old")]


@pytest.mark.parametrize("of_catalog", [True, False], ids=["of the Data Catalog", "with another database"])
def test_next_run_publishes_what_a_dead_driver_committed_to_a_connection(
    script: Script,
    login: DatabaseLogin,
    of_catalog: bool,
    moto_url: str,
    aws_session: boto3.session.Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(login)
    for name, value in (("AWS_ENDPOINT_URL_GLUE", moto_url), ("AWS_DEFAULT_REGION", REGION)):
        monkeypatch.setenv(name, value)
    name, options = "dw", {"dbtable": "orders"}
    if of_catalog:
        name = f"shop-{uuid.uuid4().hex}"
        url = f"jdbc:postgresql://{login.host}:{login.port}/{login.database}"
        properties = {"JDBC_CONNECTION_URL": url, "USERNAME": login.user, "PASSWORD": login.password}
        client = aws_session.client("glue", region_name=REGION, endpoint_url=moto_url)
        given = {"Name": name, "ConnectionType": "JDBC", "ConnectionProperties": properties}
        client.create_connection(ConnectionInput=given)
    else:
        monkeypatch.setenv("AIRFLOW_CONN_DW", f"{os.environ['AIRFLOW_CONN_DW'].rpartition('/')[0]}/postgres")
        options["database"] = login.database
    with runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.COMMITTED))):
        script.begin(JOB_RUN_ID="jr_1")
        script.context.write_dynamic_frame.from_jdbc_conf(script.frame(ROWS, SCHEMA), name, connection_options=options)
        with pytest.raises(SimulatedCrash):
            script.commit()
    assert rows(login) == []
    forget_runs()

    again = Script(script.spark, script.root)
    script.spark.conf.set("spark.bookmarks.attempt", "2")
    again.begin(JOB_RUN_ID="jr_1")

    assert rows(login) == ROWS


def test_url_with_a_login_is_a_connection_of_this_process(script: Script, login: DatabaseLogin) -> None:
    create(login)
    script.begin()
    options = {
        "url": f"jdbc:postgresql://{login.host}:{login.port}/{login.database}",
        "user": login.user,
        "password": login.password,
        "dbtable": "public.orders",
    }
    script.context.write_dynamic_frame.from_options(script.frame(ROWS, SCHEMA), "postgresql", options)
    script.commit()

    assert rows(login) == ROWS


def test_frame_without_rows_writes_nothing(script: Script, login: DatabaseLogin) -> None:
    create(login)
    script.begin()
    write(script, [])
    script.commit()

    assert rows(login) == []


def test_choice_has_no_place_in_a_table(script: Script, login: DatabaseLogin) -> None:
    create(login)
    column = F.struct(F.lit(7).alias("int"), F.lit(None).cast("string").alias("string"))
    kind = ChoiceType([IntegerType(), StringType()])
    frame = script.spark.range(1).select("id", column.alias("name", metadata=marks_of(kind)))

    with pytest.raises(OptionError, match="resolveChoice"):
        script.context.write_dynamic_frame.from_jdbc_conf(
            DynamicFrame.of(frame, script.context, "choices"), "dw", connection_options={"dbtable": "orders"}
        )


def test_missing_dbtable_is_an_error(script: Script, login: DatabaseLogin) -> None:
    with pytest.raises(OptionError, match="'dbtable' is missing"):
        script.context.write_dynamic_frame.from_jdbc_conf(script.frame(ROWS, SCHEMA), "dw", connection_options={})


def test_unknown_connection_names_both_places(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", "http://127.0.0.1:1")
    with pytest.raises(Exception, match="AIRFLOW_CONN_NOWHERE") as caught:
        script.context.write_dynamic_frame.from_jdbc_conf(
            script.frame(ROWS, SCHEMA), "nowhere", connection_options={"dbtable": "orders"}
        )
    assert caught.type.__module__ == EntityNotFoundError.__module__
