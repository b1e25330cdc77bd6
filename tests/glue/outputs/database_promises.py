"""Promises GLUE-11 and SINK-4 on tables that scripts for Glue write, with Spark and PostgreSQL.

`test_database.py` runs them in a process of its own: the jar of the driver has to be there when Spark starts.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
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
from airflow_bookmarks.sinks.redshift.client import RedshiftClient
from airflow_bookmarks.testing.crash import SimulatedCrash
from tests.conftest import REGION
from tests.databases.servers import new_database
from tests.glue.outputs.conftest import Script
from tests.sinks.redshift.copy_ground import PostgresCopies
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


def settled_by_the_next_run(script: Script, login: DatabaseLogin, write_rows: Callable[[], None]) -> None:
    """Let a driver die after its commit: no row is there, and the begin of the next run publishes them all."""
    with runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.COMMITTED))):
        script.begin(JOB_RUN_ID="jr_1")
        write_rows()
        with pytest.raises(SimulatedCrash):
            script.commit()
    assert rows(login) == []
    forget_runs()

    again = Script(script.spark, script.root)
    script.spark.conf.set("spark.bookmarks.attempt", "2")
    again.begin(JOB_RUN_ID="jr_1")

    assert rows(login) == ROWS


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
    settled_by_the_next_run(
        script,
        login,
        lambda: script.context.write_dynamic_frame.from_jdbc_conf(
            script.frame(ROWS, SCHEMA), name, connection_options=options
        ),
    )


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


# ---- Redshift: PostgreSQL in its place, where what a manifest names comes by INSERT instead of COPY


@pytest.fixture
def redshift(login: DatabaseLogin, monkeypatch: pytest.MonkeyPatch) -> DatabaseLogin:
    """Let the connection `rs` be one of Redshift."""
    uri = f"redshift://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
    monkeypatch.setenv("AIRFLOW_CONN_RS", uri)
    monkeypatch.setattr(RedshiftClient, "open", PostgresCopies.open)
    monkeypatch.setattr(RedshiftClient, "loading", PostgresCopies.loading)
    monkeypatch.setattr(RedshiftClient, "why_not_from", PostgresCopies.why_not_from)
    return login


def load(script: Script, given: list[Any] = ROWS, schema: str = SCHEMA, **options: Any) -> None:
    script.context.write_dynamic_frame.from_jdbc_conf(
        script.frame(given, schema),
        "rs",
        connection_options={"dbtable": "public.orders", **options},
        redshift_tmp_dir=str(script.root / "tmp"),
        transformation_ctx="sink",
    )


def staged_files(script: Script) -> list[str]:
    found = (path for path in (script.root / "tmp").rglob("*") if path.is_file())
    return [path.name for path in found if not path.name.startswith((".", "_"))]


def test_rows_are_loaded_into_redshift_after_the_commit_alone(script: Script, redshift: DatabaseLogin) -> None:
    create(redshift)
    script.begin()
    load(script)
    (manifest,) = (script.root / "tmp").rglob("manifest")
    listed = [each["url"].rpartition("/")[2] for each in json.loads(manifest.read_text())["entries"]]
    assert (sorted([*listed, "manifest"]), rows(redshift)) == (sorted(staged_files(script)), [])

    script.commit()

    assert (rows(redshift), staged_files(script)) == (ROWS, [])


def test_each_type_comes_to_redshift_as_it_is(script: Script, redshift: DatabaseLogin) -> None:
    script.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    kinds = "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h string, i date, j timestamp"
    schema = f"{kinds}, k decimal(38,18), l decimal(20,0), `m``, n` string"
    at = dt.datetime(2026, 3, 8, 7, 30, 0, 123456, tzinfo=dt.UTC)
    text = 'it\'s "a"\\\n,'
    values = (True, -1, 2, 3, 2**40, 0.5, 0.1, text, dt.date(1969, 2, 1), at, Decimal("1E-18"), Decimal(10) ** 19, "")
    script.begin()
    load(
        script,
        [
            values,
            (None,) * 13,
            (False, 0, 0, 0, 0, 0.0, float("nan"), "", None, None, Decimal(-1234567), Decimal(0), "NULL"),
        ],
        schema,
    )
    script.commit()

    found = rows(redshift, "SELECT * FROM orders ORDER BY b NULLS FIRST")

    assert found[0] == (None,) * 13
    assert found[1] == (*values[:9], at.replace(tzinfo=None), *values[10:])
    assert (str(found[2][6]), found[2][7], found[2][10:]) == ("nan", "", (-1234567, 0, "NULL"))


def test_merge_by_actions_is_part_of_the_load(script: Script, redshift: DatabaseLogin) -> None:
    create(redshift, "INSERT INTO orders VALUES (1, 'old'), (9, 'kept')")
    script.begin()
    actions: dict[str, Any] = {
        "dbtable": "public.stage",
        "preactions": "drop table if exists public.stage; create table public.stage as select * from orders where 1=2;",
        "postactions": "begin; delete from orders using stage where stage.id = orders.id; "
        "insert into orders select * from stage; drop table stage; end;",
    }
    load(script, **actions)
    script.commit()

    assert rows(redshift) == [*ROWS, (9, "kept")]


def test_next_run_loads_what_a_dead_driver_committed(script: Script, redshift: DatabaseLogin) -> None:
    create(redshift)
    settled_by_the_next_run(script, redshift, lambda: load(script))


def test_password_of_redshift_is_in_no_state(script: Script, redshift: DatabaseLogin) -> None:
    create(redshift)
    script.begin()
    load(script, aws_iam_role="arn:aws:iam::123456789012:role/load")
    script.commit()

    state = b"".join(path.read_bytes() for path in script.root.glob("bookmarks.db*"))

    assert b"role/load" in state
    assert redshift.password
    assert redshift.password.encode() not in state


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"preactions": "truncate table orders"}, "Write DELETE FROM"),
        ({"extracopyoptions": "TRUNCATECOLUMNS"}, "extracopyoptions"),
        ({"aws_iam_role": "load"}, "no ARN of a role"),
    ],
)
def test_what_a_load_does_not_take_is_refused(
    script: Script, redshift: DatabaseLogin, options: dict[str, Any], why: str
) -> None:
    create(redshift)
    script.begin()

    with pytest.raises(OptionError, match=why):
        load(script, **options)
    assert staged_files(script) == []


def test_redshift_without_a_folder_is_refused(script: Script, redshift: DatabaseLogin) -> None:
    create(redshift)
    script.begin()

    with pytest.raises(OptionError, match=r"no redshift_tmp_dir is given.*writes=direct"):
        script.context.write_dynamic_frame.from_jdbc_conf(
            script.frame(ROWS, SCHEMA), "rs", connection_options={"dbtable": "public.orders"}
        )


def test_redshift_is_not_loaded_from_a_folder_that_it_can_not_read(
    script: Script, redshift: DatabaseLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    uri = f"redshift://{redshift.user}:{redshift.password}@{redshift.host}:{redshift.port}/{redshift.database}"
    monkeypatch.setenv("AIRFLOW_CONN_RS", uri)
    script.begin()

    with pytest.raises(OptionError, match="does not lie in S3"):
        load(script)


@pytest.mark.parametrize("writing", ["overwrite", "upsert"])
def test_redshift_is_appended_to_alone(script: Script, redshift: DatabaseLogin, writing: str) -> None:
    create(redshift)
    run = script.begin()
    assert run.job is not None
    writer = run.job.write(script.spark.createDataFrame(ROWS, SCHEMA), "out")
    writer = writer.mode("overwrite") if writing == "overwrite" else writer.upsert("id")

    with pytest.raises(OptionError, match="rows are appended to a table of Redshift"):
        writer.redshift("conn:rs", "public.orders", str(script.root / "tmp"))


def test_other_database_is_no_redshift(script: Script, login: DatabaseLogin) -> None:
    run = script.begin()
    assert run.job is not None

    with pytest.raises(OptionError, match="is no database of Redshift"):
        run.job.write(script.spark.createDataFrame(ROWS, SCHEMA), "out").redshift("conn:dw", "orders", "/tmp/redshift")
