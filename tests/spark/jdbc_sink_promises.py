"""Promises on tables of a database as outputs (SINK-4, SINK-8), with Spark and the real JDBC drivers.

`test_jdbc_sink.py` runs them in a process of its own: the jars of the drivers have to be there when Spark starts.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import MisuseError, OptionError, PublishError
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.jdbc.publish import TablePublication
from tests.databases.servers import new_database
from tests.databases.test_rights import RIGHTS, Place
from tests.sinks.jdbc.table_ground import OneLogin
from tests.spark.lake import Lake
from tests.thorough import mostly_thorough
from tools.jars import fetch
from tools.servers import DatabaseServer

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Put the drivers beside Spark's own jars."""
    jars = [jar for name in ("postgresql", "mariadb") for jar in fetch(name).glob("*.jar")]
    return {"spark.driver.extraClassPath": ":".join(map(str, jars))}


@pytest.fixture(params=["postgresql", "mariadb"])
def dw(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Make an empty database, whose login is that of the connection `dw`."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield Warehouse.entered(login, monkeypatch)


@pytest.fixture
def pg(postgresql_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Make an empty database in PostgreSQL."""
    with new_database(postgresql_server) as login:
        yield Warehouse.entered(login, monkeypatch)


class Warehouse:
    """A database, as somebody sees it who has nothing to do with the job."""

    def __init__(self, login: DatabaseLogin) -> None:
        self.login = login

    @classmethod
    def entered(cls, login: DatabaseLogin, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
        scheme = "mysql" if login.dialect == "mariadb" else login.dialect
        kind = "mariadb" if login.dialect == "mariadb" else scheme
        uri = f"{kind}://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
        monkeypatch.setenv("AIRFLOW_CONN_DW", uri)
        return cls(login)

    def run(self, *statements: str) -> None:
        with open_database(self.login) as database:
            for statement in statements:
                database.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_database(self.login) as database:
            return database.rows(query)

    def tables(self) -> list[str]:
        where = "table_schema = 'public'" if self.login.dialect == "postgresql" else "table_schema = database()"
        return sorted(name for (name,) in self.rows(f"SELECT table_name FROM information_schema.tables WHERE {where}"))


def people(lake: Lake, *rows: tuple[int, str, int]) -> DataFrame:
    return lake.spark.createDataFrame(list(rows), "id INT, name STRING, version INT").repartition(2)


@pytest.mark.often
def test_append_is_seen_after_the_commit_and_not_before(lake: Lake, dw: Warehouse) -> None:
    dw.run("CREATE TABLE dim (id int, name varchar(20), version int)")
    for number in (1, 2):
        with lake.job() as job:
            job.write(people(lake, (number, "a", 1)), "dim").jdbc("conn:dw", "dim")
            assert len(dw.rows("SELECT * FROM dim")) == number - 1
    assert sorted(dw.rows("SELECT * FROM dim")) == [(1, "a", 1), (2, "a", 1)]
    assert dw.tables() == ["_bookmarks_tokens", "dim"]
    assert job.summary is not None
    assert job.summary["outputs"]["dim"]["rows"] == 1


def test_table_that_is_not_there_is_made_by_what_spark_knows(lake: Lake, dw: Warehouse) -> None:
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1), (2, "b", 1)), "dim").jdbc("conn:dw", "dim")
        assert "dim" not in dw.tables()
    assert sorted(dw.rows("SELECT id, name, version FROM dim")) == [(1, "a", 1), (2, "b", 1)]


@pytest.mark.often
def test_upsert_replaces_rows_of_a_key_by_the_greatest(lake: Lake, dw: Warehouse) -> None:
    dw.run(
        "CREATE TABLE dim (id int PRIMARY KEY, name varchar(20), version int, kept int)",
        "INSERT INTO dim VALUES (1, 'old', 0, 7), (3, 'other', 0, 7)",
    )
    with lake.job() as job:
        frame = people(lake, (1, "a", 1), (1, "c", 3), (1, "b", 2), (2, "d", 1))
        job.write(frame, "dim").upsert("id", order_by="version").jdbc("conn:dw", "dim")
    assert sorted(dw.rows("SELECT * FROM dim")) == [(1, "c", 3, 7), (2, "d", 1, None), (3, "other", 0, 7)]


def test_table_that_is_made_keeps_microseconds(lake: Lake, dw: Warehouse) -> None:
    """Versions of one key within a second: the newest counts, also against a delete."""
    rows = [(1, "10:00:00.900000"), (2, "10:00:00.900000"), (3, "10:00:00.100000")]
    frame = lake.spark.createDataFrame(rows, "id INT, at STRING").selectExpr(
        "id", "CAST('2026-01-01 ' || at AS TIMESTAMP) AS at", "CAST('2026-01-01 ' || at AS TIMESTAMP_NTZ) AS shown"
    )
    gone = lake.spark.sql("SELECT id, TIMESTAMP '2026-01-01 10:00:00.5' AS at FROM VALUES (2), (3) AS deleted(id)")
    for _ in range(2):
        with lake.job() as job:
            job.write(frame, "dim").upsert(["id"], order_by="at", deletes=gone).jdbc("conn:dw", "made")
    found = dw.rows("SELECT id, at, shown FROM made ORDER BY id")
    assert [(number, at.microsecond, shown.microsecond) for number, at, shown in found] == [
        (1, 900_000, 900_000),
        (2, 900_000, 900_000),
    ]


def test_upsert_into_a_table_that_is_not_there_makes_it_with_the_key(lake: Lake, dw: Warehouse) -> None:
    for name in ("a", "b"):
        with lake.job() as job:
            job.write(people(lake, (1, name, 1)), "dim").upsert(["id"]).jdbc("conn:dw", "dim")
    assert dw.rows("SELECT id, name FROM dim") == [(1, "b")]


@pytest.mark.parametrize("count_rows", [False, pytest.param(True, marks=pytest.mark.needs("observations"))])
def test_flagged_rows_of_an_increment_are_deleted_and_the_others_come(
    lake: Lake, dw: Warehouse, count_rows: bool
) -> None:
    lake.put("a.csv", "1,ann,1,false", "2,bob,1,false", "3,cid,1,false")
    dw.run("CREATE TABLE dim (id int PRIMARY KEY, name varchar(20) NOT NULL, version int, is_deleted boolean)")
    for more in ((), ("1,ann,2,true", "2,bobby,2,false", "3,cid,2,true", "3,cid,3,false", "9,zoe,2,true")):
        if more:
            lake.put("b.csv", *more)
        with lake.job() as job:
            reader = job.read("raw", deleted_when="is_deleted", count_rows=count_rows)
            frame: Any = reader.schema("id INT, name STRING, version INT, is_deleted BOOLEAN").csv(lake.path("raw"))
            clean = frame.withColumn("name", F.upper("name"))
            write = job.write(clean, "dim").upsert(["id"], order_by="version", deletes=frame.deletes)
            write.jdbc("conn:dw", "dim")
    assert sorted(dw.rows("SELECT id, name, version FROM dim")) == [(2, "BOBBY", 2), (3, "CID", 3)]
    assert dw.tables() == ["_bookmarks_tokens", "dim"]
    assert job.summary is not None
    assert (job.summary["outputs"]["dim"]["rows"], job.summary["outputs"]["dim"]["removed_keys"]) == (2, 3)
    assert job.summary["contexts"]["raw"]["rows"] == (5 if count_rows else None)
    run = lake.store.run("copy", next(run.key for run in lake.store.runs("copy") if run.key.number == 2))
    assert run is not None
    assert run.outputs["dim"].stats["removed_keys"] == 3


def test_delete_set_makes_no_column_in_a_table_that_is_not_there(lake: Lake, dw: Warehouse) -> None:
    with lake.job() as job:
        gone = lake.spark.createDataFrame([(7,)], "id INT")
        job.write(people(lake, (1, "a", 1)), "dim").upsert("id", deletes=gone).jdbc("conn:dw", "dim")
    assert dw.rows("SELECT * FROM dim") == [(1, "a", 1)]


def test_overwrite_replaces_all_rows_in_the_publish(lake: Lake, dw: Warehouse) -> None:
    dw.run("CREATE TABLE dim (id int, name varchar(20), version int)", "INSERT INTO dim VALUES (9, 'old', 0)")
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1)), "dim").mode("overwrite").jdbc("conn:dw", "dim")
        assert dw.rows("SELECT id FROM dim") == [(9,)]
    assert dw.rows("SELECT id FROM dim") == [(1,)]


def test_odd_names_and_columns_in_another_order_find_their_places(lake: Lake, dw: Warehouse) -> None:
    mark = "`" if dw.login.dialect == "mariadb" else '"'
    table, first, second = (f"{mark}{name}{mark}" for name in ("Dim é 2013", "Größe in cm", "select"))
    dw.run(f"CREATE TABLE {table} ({first} int, {second} varchar(20), other int)")
    with lake.job() as job:
        frame = lake.spark.createDataFrame([("a", 1)], "`select` STRING, `Größe in cm` INT")
        job.write(frame, "dim").jdbc("conn:dw", '"Dim é 2013"')
    assert dw.rows(f"SELECT * FROM {table}") == [(1, "a", None)]


def test_types_of_the_table_are_kept_where_spark_has_no_such_type(lake: Lake, pg: Warehouse) -> None:
    pg.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE dim (u uuid, j jsonb, m mood, n numeric(38, 10), d date, at timestamptz, local timestamp, "
        "b bytea)",
    )
    schema = "u STRING, j STRING, m STRING, n DECIMAL(38,10), d DATE, at TIMESTAMP, local TIMESTAMP_NTZ, b BINARY"
    moment = datetime.fromisoformat("2013-01-31T23:59:58.123456+00:00")
    number = Decimal("1234567890123456789012345678.0123456789")
    row = ("0b2f4c4e-8e1c-4a5e-9d7f-000000000001", '{"a": 1}', "happy", number, date(2013, 1, 31), moment)
    local = datetime(2013, 1, 31, 23, 59, 58, 123456)  # noqa: DTZ001 (a time without a zone)
    with lake.job() as job:
        frame = lake.spark.createDataFrame([(*row, local, bytearray(b"\x00\xff"))], schema)
        job.write(frame, "dim").jdbc("conn:dw", "public.dim")
    query = "SELECT u::text, j->>'a', m::text, n, d, at, local, b FROM dim"
    assert pg.rows(query) == [(row[0], "1", "happy", number, row[4], moment, local, b"\x00\xff")]


CONVERTED = {
    "postgresql": [
        ("tinyint", "1", "smallint"),
        ("smallint", "2", "integer"),
        ("int", "3", "bigint"),
        ("int", "4", "numeric(10,2)"),
        ("int", "5", "double precision"),
        ("int", "6", "text"),
        ("bigint", "7", "integer"),
        ("float", "1.5", "double precision"),
        ("double", "2.5", "real"),
        ("double", "3.0", "integer"),
        ("decimal(10,4)", "1.25", "numeric(20,10)"),
        ("decimal(38,0)", "12", "bigint"),
        ("boolean", "true", "boolean"),
        ("boolean", "true", "text"),
        ("string", "'a'", "text"),
        ("string", "'a'", "varchar(3)"),
        ("string", "'a'", "char(3)"),
        ("string", "'1.25'", "numeric(50,2)"),
        ("string", "'2026-01-31'", "date"),
        ("string", "'2026-01-31 10:00:00'", "timestamp"),
        ("string", "'true'", "boolean"),
        ("string", "'0b2f4c4e-8e1c-4a5e-9d7f-000000000001'", "uuid"),
        ("string", "'[1]'", "jsonb"),
        ("string", "'10.0.0.1'", "inet"),
        ("int", "8", "age"),
        ("string", "'9'", "age"),
        ("date", "DATE '2026-01-31'", "timestamp"),
        ("date", "DATE '2026-01-31'", "text"),
        ("timestamp", "TIMESTAMP '2026-01-31 10:00:00'", "timestamptz"),
        ("timestamp", "TIMESTAMP '2026-01-31 10:00:00'", "timestamp(3)"),
        ("timestamp", "TIMESTAMP '2026-01-31 10:00:00'", "date"),
        ("timestamp_ntz", "TIMESTAMP_NTZ '2026-01-31 10:00:00'", "timestamptz"),
        ("binary", "X'00FF'", "bytea"),
        ("binary", "X'00FF'", "text"),
        ("array<int>", "array(1, 2)", "int[]"),
        ("array<string>", "array('a')", "text[]"),
    ],
    "mariadb": [
        ("tinyint", "1", "smallint"),
        ("smallint", "2", "int"),
        ("int", "3", "bigint unsigned"),
        ("int", "4", "decimal(10,2)"),
        ("int", "5", "double"),
        ("int", "6", "varchar(20)"),
        ("int", "2026", "year"),
        ("int", "20260131", "date"),
        ("bigint", "7", "int"),
        ("float", "1.5", "double"),
        ("double", "3.0", "int"),
        ("decimal(10,4)", "1.25", "decimal(20,10)"),
        ("boolean", "true", "boolean"),
        ("boolean", "true", "int"),
        ("boolean", "true", "varchar(5)"),
        ("string", "'a'", "text"),
        ("string", "'a'", "char(3)"),
        ("string", "'a'", "enum('a','b')"),
        ("string", "'1.25'", "decimal(50,2)"),
        ("string", "'2026-01-31'", "date"),
        ("string", "'2026-01-31 10:00:00'", "datetime(6)"),
        ("string", "'[1]'", "json"),
        ("date", "DATE '2026-01-31'", "datetime"),
        ("timestamp", "TIMESTAMP '2026-01-31 10:00:00'", "timestamp(6)"),
        ("timestamp", "TIMESTAMP '2026-01-31 10:00:00'", "date"),
        ("timestamp_ntz", "TIMESTAMP_NTZ '2026-01-31 10:00:00'", "datetime(6)"),
        ("binary", "X'00FF'", "blob"),
        ("binary", "X'3132'", "varchar(3)"),
    ],
}


def test_types_that_the_database_converts_still_go_through(lake: Lake, dw: Warehouse) -> None:
    """Each of these was written before types were compared."""
    columns = CONVERTED[dw.login.dialect]
    if dw.login.dialect == "postgresql":
        dw.run("CREATE DOMAIN age AS int CHECK (VALUE > 0)")
    dw.run(f"CREATE TABLE dim ({', '.join(f'c{at} {kind}' for at, (*_, kind) in enumerate(columns))})")
    frame = lake.spark.sql(f"SELECT {', '.join(f'CAST({v} AS {t}) AS c{at}' for at, (t, v, _) in enumerate(columns))}")
    nulls = lake.spark.sql(f"SELECT {', '.join(f'CAST(NULL AS {t}) AS c{at}' for at, (t, *_) in enumerate(columns))}")
    with lake.job() as job:
        job.write(frame.union(nulls), "dim").jdbc("conn:dw", "dim")
    rows = dw.rows("SELECT * FROM dim")
    assert len(rows) == 2
    assert sorted([value is None for value in row] for row in rows) == [[each] * len(columns) for each in (False, True)]


REFUSED = {
    "postgresql": [
        ("'a' AS id", "id int", "'id' is string there and integer in the table.*withColumn, cast"),
        ("'7' AS id", "id bigint", "'id' is string there and bigint in the table"),
        ("'7' AS id", "id double precision", "'id' is string there and double precision"),
        ("true AS id", "id int", "'id' is boolean there and integer"),
        ("1 AS id", "id boolean", "'id' is int there and boolean"),
        ("1 AS id, 2L AS at", "id int, at timestamptz", r"table public\.dim|'at' is bigint there and timestamp with"),
        ("1.5D AS id", "id uuid", "'id' is double there and uuid"),
        ("DATE '2026-01-31' AS id", "id int", "'id' is date there and integer"),
        ("TIMESTAMP '2026-01-31 10:00:00' AS id", "id numeric", "'id' is timestamp there and numeric"),
        ("X'00' AS id", "id int", "'id' is binary there and integer"),
        ("'a' AS id, true AS n", "id int, n int", "'id' is string there .*cast"),
        ("struct(1 AS a) AS id", "id text", r"tables of postgresql have no type for 'id' \(struct<a:int>\)"),
        ("1 AS id, 'x' AS more", "id int", r"has no column 'more' \(string\); it has 'id'"),
        (
            "1 AS id",
            "id int, kind text NOT NULL",
            r"no NULL in 'kind' \(text\), has no default.*give the column a default",
        ),
    ],
    "mariadb": [
        ("'a' AS id", "id int", r"'id' is string there and int\(11\) in the table"),
        ("'12.7' AS id", "id bigint unsigned", "'id' is string there and bigint"),
        ("true AS id", "id date", "'id' is boolean there and date"),
        ("DATE '2026-01-31' AS id", "id int", "'id' is date there and int"),
        ("TIMESTAMP '2026-01-31 10:00:00' AS id", "id decimal(20,0)", "'id' is timestamp there and decimal"),
        ("array(1) AS id", "id text", r"tables of mariadb have no type for 'id' \(array<int>\)"),
        ("map(1, 1) AS id", "id text", "tables of mariadb have no type for 'id'"),
        ("1 AS id, 'x' AS more", "id int", r"has no column 'more' \(string\)"),
        ("1 AS id", "id int, kind int NOT NULL", r"no NULL in 'kind' \(int\(11\)\), has no default"),
    ],
}


def test_types_that_do_not_fit_are_refused_before_anything_is_staged(lake: Lake, dw: Warehouse) -> None:
    for at, (selected, columns, why) in enumerate(REFUSED[dw.login.dialect]):
        dw.run("DROP TABLE IF EXISTS dim", f"CREATE TABLE dim ({columns})")
        with (
            pytest.raises(MisuseError, match="was not written"),
            lake.job(f"job{at}") as job,
            pytest.raises(OptionError, match=why) as caught,
        ):
            job.write(lake.spark.sql(f"SELECT {selected}"), "dim").jdbc("conn:dw", "dim")
        assert "Nothing was written or committed." in str(caught.value)
        assert dw.tables() == ["dim"]
        assert lake.store.head(f"job{at}").run_number == 0


@pytest.mark.parametrize("kind", mostly_thorough(["append", "upsert"], "upsert"))
def test_column_that_gets_its_value_in_the_table_need_not_be_in_the_frame(lake: Lake, dw: Warehouse, kind: str) -> None:
    filled = {
        "postgresql": (
            "CREATE TABLE dim (id int PRIMARY KEY, a int NOT NULL DEFAULT 1, n int GENERATED ALWAYS AS IDENTITY, "
            "s bigserial, g int NOT NULL GENERATED ALWAYS AS (id + 1) STORED, byhand text NOT NULL)",
            "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.byhand := 'filled'; RETURN NEW; END $$",
            "CREATE TRIGGER fill BEFORE INSERT ON dim FOR EACH ROW EXECUTE FUNCTION fill()",
        ),
        "mariadb": (
            "CREATE TABLE dim (id int PRIMARY KEY, a int NOT NULL DEFAULT 1, n int NOT NULL AUTO_INCREMENT UNIQUE, "
            "g int AS (id + 1) STORED, e enum('a','b') NOT NULL, at timestamp NOT NULL DEFAULT current_timestamp)",
        ),
    }
    dw.run(*filled[dw.login.dialect])
    with lake.job() as job:
        writer = job.write(lake.spark.sql("SELECT 1 AS id"), "dim")
        (writer if kind == "append" else writer.upsert("id")).jdbc("conn:dw", "dim")
    assert dw.rows("SELECT id, a FROM dim") == [(1, 1)]


def test_column_that_triggers_of_partitions_fill_need_not_be_in_the_frame(lake: Lake, pg: Warehouse) -> None:
    pg.run(
        "CREATE TABLE dim (id int, kind text NOT NULL) PARTITION BY RANGE (id)",
        "CREATE TABLE dim_1 PARTITION OF dim FOR VALUES FROM (0) TO (10)",
        "CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.kind := 'x'; RETURN NEW; END $$",
        "CREATE TRIGGER fill BEFORE INSERT ON dim_1 FOR EACH ROW EXECUTE FUNCTION fill()",
    )
    with lake.job() as job:
        job.write(lake.spark.sql("SELECT 1 AS id"), "dim").jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == [(1, "x")]


def test_stage_and_tokens_lie_in_the_schema_that_is_named(lake: Lake, pg: Warehouse) -> None:
    pg.run("CREATE SCHEMA scratch", "CREATE TABLE dim (id int, name text, version int)")
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1)), "dim", staging="scratch").jdbc("conn:dw", "public.dim")
        staged = pg.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'scratch' ORDER BY 1")
        assert [name[:4] for (name,) in staged] == ["_bm_", "_boo"]
        assert pg.tables() == ["dim"]
    assert pg.rows("SELECT id FROM dim") == [(1,)]
    assert pg.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'scratch'") == [("_bookmarks_tokens",)]


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb"])
def test_login_with_the_rights_of_the_guide_reads_and_writes(
    lake: Lake, request: pytest.FixtureRequest, dialect: str
) -> None:
    with Place.made(request.getfixturevalue(f"{dialect}_server")) as place:
        place.grant(RIGHTS[dialect])
        lake.store.databases = OneLogin(place.login)
        for _ in range(2):
            with lake.job() as job:
                orders = job.read("orders").jdbc("conn:dw", place.named("crm.orders"), keys=["id"])
                frame = orders.withColumn("version", F.lit(1))
                gone = lake.spark.createDataFrame([(9,)], "id INT")
                writer = job.write(frame, "dim", staging=place.schemas["scratch"]).upsert("id", deletes=gone)
                writer.jdbc("conn:dw", place.named("dw.dim"))
        assert sorted(place.rows(f"SELECT id FROM {place.named('dw.dim')}")) == [(1,), (2,), (3,)]


def test_missing_right_says_which_output_needs_it_and_what_to_do(lake: Lake, postgresql_server: DatabaseServer) -> None:
    with Place.made(postgresql_server) as place:
        lake.store.databases = OneLogin(place.login)  # which has been granted nothing
        why = r"permission denied.*That was for job '.*', output 'dim'\. Nothing was committed or published\. Mend"
        with pytest.raises(PublishError, match=why), lake.job() as job:
            job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", place.named("dw.dim"))


@pytest.mark.often
def test_run_that_dies_before_its_publish_is_finished_by_the_next(
    lake: Lake, pg: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg.run("CREATE TABLE dim (id int, name text, version int)")

    class DeathError(BaseException):
        """The end of a process."""

    def die(self: TablePublication, *args: object) -> int:
        raise DeathError

    with monkeypatch.context() as patch:
        patch.setattr(TablePublication, "publish", die)
        with pytest.raises(DeathError), lake.job() as job:
            job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == []
    with lake.job():
        assert pg.rows("SELECT id FROM dim") == [(1,)]
    assert pg.tables() == ["_bookmarks_tokens", "dim"]


def test_publish_that_a_constraint_refuses_stays_due_and_keeps_its_rows(lake: Lake, pg: Warehouse) -> None:
    pg.run("CREATE TABLE dim (id int, name text, version int CHECK (version > 0))")
    why = r"dim_version_check.*stay in the table public\._bm_.*stays due"
    with pytest.raises(PublishError, match=why), lake.job() as job:
        job.write(people(lake, (1, "a", 1), (2, "b", 0)), "dim").jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == []
    run = lake.store.run("copy", lake.head().publishing)  # type: ignore[arg-type]
    assert run is not None
    assert run.state is RunState.COMMITTED
    pg.run("ALTER TABLE dim DROP CONSTRAINT dim_version_check")
    with lake.job():
        pass
    assert sorted(pg.rows("SELECT id FROM dim")) == [(1,), (2,)]


@pytest.mark.often
def test_password_is_neither_in_state_nor_in_the_log(
    lake: Lake, pg: Warehouse, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG, "airflow_bookmarks")  # that of py4j shows what Spark is given
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", "dim")
    password = pg.login.password
    assert password
    (path,) = tmp_path.glob("bookmarks.db")
    with closing(sqlite3.connect(path)) as database:
        state = "\n".join(database.iterdump())
    assert "conn:dw#public.dim" in state
    assert password not in state
    assert password not in caplog.text


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda job, frame: job.write(frame, "o").jdbc("conn:dw", "lacking"), "has no column 'version'"),
        (lambda job, frame: job.write(frame, "o").upsert("name").jdbc("conn:dw", "dim"), "whose unique keys are: id"),
        (lambda job, frame: job.write(frame, "o").upsert("no").jdbc("conn:dw", "dim"), "names the column 'no'"),
        (lambda job, frame: job.write(frame, "o").upsert([]), "give the names of columns"),
        (lambda job, frame: job.write(frame, "o").upsert("id").mode("overwrite").jdbc("conn:dw", "dim"), "deletes all"),
        (lambda job, frame: job.write(frame, "o").upsert("id").save("/lake/o"), "can't be done with files"),
        (
            lambda job, frame: job.write(frame, "o").upsert("id", deletes=frame).save("/lake/o"),
            r"deletes=\.\.\.\) can't be done with files",
        ),
        (lambda job, frame: job.write(frame, "o").upsert("id", deletes=["id"]), "expected a DataFrame"),
        (lambda job, frame: job.write(frame, "o").upsert("id", deletes=frame.id), "expected a DataFrame"),
        (
            lambda job, frame: job.write(frame, "o").upsert("id", deletes=frame.select("name")).jdbc("conn:dw", "dim"),
            "needs the columns 'id' in the delete set, and it has no 'id'; it has 'name'",
        ),
        (
            lambda job, frame: (
                job.write(frame, "o").upsert("id", "version", deletes=frame.select("id")).jdbc("conn:dw", "dim")
            ),
            "it has no 'version'; .* leave out order_by",
        ),
        (
            lambda job, frame: (
                job.write(frame, "o").upsert("id", deletes=frame.selectExpr("'1' AS id")).jdbc("conn:dw", "dim")
            ),
            "'id' is int in the frame and string in the delete set",
        ),
        (lambda job, frame: job.write(frame, "o").partitionBy("id").jdbc("conn:dw", "dim"), "has no folders"),
        (lambda job, frame: job.write(frame, "o").jdbc("conn:nowhere", "dim"), "AIRFLOW_CONN_NOWHERE"),
        (
            lambda job, frame: job.write(frame, "o").jdbc("jdbc:postgresql://u:p@h/d", "dim"),
            "holds a user or a password",
        ),
        (lambda job, frame: job.write(frame, "o").jdbc("conn:dw", "a.b.c"), "is no name of a table"),
        (
            lambda job, frame: job.write(frame, "o").jdbc("conn:dw", "dim", properties={"password": "x"}),
            "has to find the login",
        ),
        (lambda job, frame: job.write(frame, "o").option("truncate", True).jdbc("conn:dw", "dim"), "truncate"),
    ],
)
def test_write_that_can_t_be_done_is_refused_before_anything_is_written(
    lake: Lake, pg: Warehouse, write: Callable[[Any, DataFrame], object], why: str
) -> None:
    pg.run("CREATE TABLE dim (id int PRIMARY KEY, name text, version int)", "CREATE TABLE lacking (id int, name text)")
    with (
        pytest.raises(MisuseError, match="was not written"),
        lake.job() as job,
        pytest.raises(OptionError, match=why),
    ):
        write(job, people(lake, (1, "a", 1)))
    assert pg.tables() == ["dim", "lacking"]
    assert lake.head().run_number == 0


@pytest.mark.parametrize("first", ["append", "upsert"])
def test_upsert_is_the_only_output_of_its_run_that_goes_to_a_table(lake: Lake, pg: Warehouse, first: str) -> None:
    pg.run("CREATE TABLE dim (id int PRIMARY KEY, name text, version int)")
    job = lake.job().begin()
    writer = job.write(people(lake, (1, "a", 1)), "rows")
    (writer.upsert("id") if first == "upsert" else writer).jdbc("conn:dw", "dim")
    with pytest.raises(OptionError, match=r"two outputs of one run .*replaces rows by their keys.*one union of both"):
        job.write(people(lake, (1, "corrected", 2)), "corrections").upsert("id").jdbc("conn:dw", "public.dim")
    job.abort("refused")
    assert pg.rows("SELECT * FROM dim") == []


def test_upsert_that_was_refused_may_be_mended_and_written_anew(lake: Lake, pg: Warehouse) -> None:
    pg.run("CREATE TABLE dim (id int PRIMARY KEY, name text, version int)")
    for name in ("a", "b"):
        with lake.job() as job:
            rows = people(lake, (1, name, 1))
            with pytest.raises(OptionError, match="has no column 'more'"):
                job.write(rows.withColumn("more", F.lit(1)), "dim").upsert("id").jdbc("conn:dw", "dim")
            job.write(rows, "dim").upsert("id").jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == [(1, "b", 1)]


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_without_a_commit_writes_to_no_table(lake: Lake, pg: Warehouse, option: str) -> None:
    with pytest.raises(OptionError, match="makes rows visible after a commit alone"), lake.job(option=option) as job:
        job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", "dim")
    assert pg.tables() == []


@pytest.mark.parametrize(
    ("rows", "order_by", "why"),
    [
        ([(None, "a", 1), (2, "b", 1)], None, "1 row for .* has NULL in a key"),
        ([(1, "a", 1), (1, "b", 1), (2, "c", 1)], None, "1 key .* has several rows"),
    ],
)
def test_rows_that_no_key_tells_block_the_commit(
    lake: Lake, pg: Warehouse, rows: list[Any], order_by: str | None, why: str
) -> None:
    pg.run("CREATE TABLE dim (id int PRIMARY KEY, name text, version int)")
    with pytest.raises(PublishError, match=why), lake.job() as job:
        job.write(people(lake, *rows), "dim").upsert("id", order_by=order_by).jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == []
    assert lake.head().run_number == 0


def test_failed_task_leaves_nothing_visible_and_its_tables_are_swept(lake: Lake, pg: Warehouse) -> None:
    pg.run("CREATE TABLE dim (id int, name text, version int)")
    frame = people(lake, (1, "a", 1), (2, "b", 2)).selectExpr(
        "id", "name", "IF(id = 2, raise_error('boom'), version) AS version"
    )
    with pytest.raises(Exception, match="boom"), lake.job() as job:
        job.write(frame, "dim").jdbc("conn:dw", "dim")
    assert pg.rows("SELECT * FROM dim") == []
    assert [name for name in pg.tables() if name.startswith("_bm_")] != []
    with lake.job():
        assert pg.tables() == ["_bookmarks_tokens", "dim"]


def test_job_that_lost_its_bookmark_does_not_lose_rows_silently(lake: Lake, pg: Warehouse) -> None:
    for _ in range(2):
        with lake.job() as job:
            job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", "dim")
    pg.run("UPDATE _bookmarks_tokens SET fence = 1000")  # as if the store had been restored from an old backup
    with (
        pytest.raises(PublishError, match=r"a run of fence 1000 has published.*its bookmark was lost"),
        lake.job() as job,
    ):
        job.write(people(lake, (1, "a", 1)), "dim").jdbc("conn:dw", "dim")
    assert len(pg.rows("SELECT * FROM dim")) == 2
