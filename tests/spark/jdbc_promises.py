"""Tables through Spark's own JDBC source: `test_jdbc.py` runs these in a process with the drivers of databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError, SchemaChangedError
from airflow_bookmarks.databases.dialects import registered
from airflow_bookmarks.lifecycle.changes.change import rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.spark import BookmarkedJob
from tests.databases.servers import new_database, new_sqlite
from tests.databases.sqlite_dialect import SQLite, read_orders
from tests.sources.jdbc.key_types import CASES, Case, create, is_exact
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.spark.lake import Lake, rows_of
from tools.jars import fetch

pytestmark = pytest.mark.spark

DIALECTS = ("postgresql", "mariadb")
INSTANT = {"postgresql": "timestamptz", "mariadb": "timestamp(6)"}


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Start Spark with the drivers."""
    jars = [str(jar) for name in (*DIALECTS, "sqlite") for jar in sorted(fetch(name).glob("*.jar"))]
    return {"spark.jars": ",".join(jars)}


@pytest.fixture(params=DIALECTS)
def shop(request: pytest.FixtureRequest, lake: Lake) -> Iterator[Shop]:
    """Make a database with some orders, whose login the store knows."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        lake.store.databases = KnownLogin(login)
        made.run(
            f"CREATE TABLE orders (id int PRIMARY KEY, at {INSTANT[login.dialect]}, region varchar(9), amount int)"
        )
        add(made, 1, 2, 3)
        yield made


def add(shop: Shop, *ids: int) -> None:
    rows = ", ".join(f"({each}, '2013-01-31 00:00:00.00000{each % 10}', 'r{each % 3}', {each})" for each in ids)
    shop.run(f"INSERT INTO orders VALUES {rows}")


def read(job: BookmarkedJob, *table: str, **how: Any) -> DataFrame:
    return job.read("orders").jdbc("conn:shop", *(table or ("orders",)), **{"keys": ["id"], **how})


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def run(lake: Lake, **how: Any) -> list[int]:
    with lake.job() as job:
        return ids(read(job, **how))


def test_each_row_is_read_once(lake: Lake, shop: Shop) -> None:
    assert [run(lake), run(lake)] == [[1, 2, 3], []]
    add(shop, 4)
    assert run(lake) == [4]


def test_each_action_reads_the_same_window(lake: Lake, shop: Shop) -> None:
    with lake.job() as job:
        frame = read(job)
        add(shop, 4)
        assert [ids(frame), frame.count()] == [[1, 2, 3], 3]
    assert run(lake) == [4]


def test_rows_land_in_a_managed_sink_once(lake: Lake, shop: Shop) -> None:
    for _ in range(2):
        with lake.job() as job:
            job.write(read(job), "copy").parquet(lake.path("copy"))
    assert ids(lake.spark.read.parquet(lake.path("copy"))) == [1, 2, 3]


@pytest.mark.parametrize(
    "how",
    [
        {"partitions": 3},
        {"partitions": 3, "partition_column": "amount"},
        {"partitions": 3, "hash_field": "region"},
        {"partitions": 3, "hash_expression": "id + 1"},
        {"partitions": 40},
        {"partitions": 3, "keys": ["at", "id"]},
    ],
    ids=str,
)
def test_parts_hold_each_row_once(lake: Lake, shop: Shop, how: dict[str, Any]) -> None:
    shop.run("INSERT INTO orders (id, at) VALUES (-5, '2013-01-30'), (900, '2013-01-30')")  # nothing to split them by
    with lake.job() as job:
        frame = read(job, **how)
        assert ids(frame) == [-5, 1, 2, 3, 900]


def test_filters_and_columns_are_pushed_into_the_query(
    lake: Lake, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    with lake.job() as job:
        read(job).where("amount > 2").select("region").explain()
        plan = capsys.readouterr().out
    assert "GreaterThan(amount,2)" in plan
    assert "ReadSchema: struct<region:string>" in plan


def test_rows_are_found_in_whatever_zone_the_session_is(lake: Lake, shop: Shop) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    assert run(lake, keys=["at", "id"]) == [1, 2, 3]
    shop.run("INSERT INTO orders (id, at) VALUES (4, '2013-01-31 00:00:00.000003')")  # tied with number 3
    assert run(lake, keys=["at", "id"]) == [4]


TYPES = [
    pytest.param(name, case, id=f"{name}-{case.declared}")
    for name in DIALECTS
    for case in CASES[name]
    if (name, case.declared) != ("mariadb", "uuid")  # of which Spark's JDBC source knows nothing
]


@pytest.mark.parametrize(("dialect", "case"), TYPES)
def test_column_of_each_type_is_a_key_or_refused_as_the_page_says(
    lake: Lake, dialect: str, case: Case, request: pytest.FixtureRequest
) -> None:
    with new_database(request.getfixturevalue(f"{dialect}_server")) as login:
        shop = Shop(login)
        lake.store.databases = KnownLogin(login)
        create(shop, case)
        for number, value in enumerate(case.values):
            shop.run(f"INSERT INTO t VALUES ({value}, {number})")
        if not is_exact(dialect, case):
            with pytest.raises(OptionError, match="have no exact order here"):
                of_type(lake, "copy")
            return
        every = list(range(len(case.values)))
        assert [of_type(lake, "copy"), of_type(lake, "copy")] == [every, []]
        first = of_type(lake, "parts", max_rows=1)
        assert [first, of_type(lake, "parts", partitions=3)] == [every[:1], every[1:]]


def of_type(lake: Lake, name: str, **how: Any) -> list[int]:
    with lake.job(name) as job:
        return ids(read(job, "t", keys=["k"], zone="UTC", **how))


def test_query_in_place_of_a_table(lake: Lake, shop: Shop) -> None:
    query = "SELECT id, amount * 2 AS twice FROM orders WHERE region <> 'r0';"
    if shop.login.dialect == "mariadb":
        with pytest.raises(OptionError, match="Make a view of it"), lake.job() as job:
            job.read("orders").jdbc("conn:shop", query=query, keys=["id"])
        return
    with lake.job() as job:
        assert rows_of(job.read("orders").jdbc("conn:shop", query=query, keys=["id"])) == [(1, 2), (2, 4)]


@pytest.mark.parametrize("name", ["dbtable", "partitionColumn", "sessionInitStatement", "query", "lowerBound"])
def test_property_that_would_change_which_rows_are_read_is_refused(lake: Lake, shop: Shop, name: str) -> None:
    with pytest.raises(OptionError, match=f"property '{name}' can't be used under a bookmark"), lake.job() as job:
        read(job, properties={name: "1"})


def test_columns_that_change_stop_the_run(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("ALTER TABLE orders DROP COLUMN amount")
    shop.run("INSERT INTO orders (id) VALUES (4)")
    with pytest.raises(SchemaChangedError, match="amount"):
        run(lake)


def test_loop_reads_in_parts_each_with_its_own_commit(lake: Lake, shop: Shop) -> None:
    found = []
    for batch in lake.job().batches(max_rows=2):
        with batch as job:
            found.append(ids(read(job)))
    assert found == [[1, 2], [3]]


def test_pending_rewind_and_set_know_tables(lake: Lake, shop: Shop) -> None:
    run(lake)
    add(shop, 4, 5)
    (waiting,) = pending(lake.store, "copy").contexts
    assert (waiting.amount_in_words, waiting.unknown) == ("2 rows", None)
    assert run(lake) == [4, 5]
    rewind(lake.store, "copy", 1, reason="a test", who="ada")
    assert run(lake) == [4, 5]
    set_position(lake.store, "copy", "orders", "2", reason="a test", who="ada")
    assert run(lake) == [3, 4, 5]
    assert lake.store.head("copy").contexts["orders"].watermark == "5"


LATE_BY = timedelta(hours=1)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"partitions": 3},
        {"partitions": 3, "partition_column": "amount"},
        {"partitions": 3, "hash_field": "region"},
        {"keys": ["at", "id"]},
        {"partitions": 3, "keys": ["at", "id"]},
        {"partitions": 3, "keys": ["at"]},
    ],
    ids=str,
)
def test_late_row_is_read_once_in_whatever_parts(lake: Lake, shop: Shop, how: dict[str, Any]) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    assert run(lake, lookback=LATE_BY, **how) == [1, 2, 3]
    shop.run("INSERT INTO orders (id, at) VALUES (-5, '2013-01-30 23:30:00.000001'), (900, '2013-01-31 00:30:00')")
    with lake.job() as job:
        frame = read(job, lookback=LATE_BY, **how)
        shop.run("INSERT INTO orders (id, at) VALUES (-6, '2013-01-30 23:45:00'), (800, '2013-01-31 00:15:00')")
        assert [ids(frame), frame.count()] == [[-5, 900], 2]
    assert [run(lake, lookback=LATE_BY, **how) for _ in range(2)] == [[-6, 800], []]


def test_thousands_of_rows_are_read_by_their_names(lake: Lake, shop: Shop) -> None:
    numbers = (
        "generate_series(4, 6000) g" if shop.login.dialect == "postgresql" else "(SELECT seq g FROM seq_4_to_6000) s"
    )
    shop.run(f"INSERT INTO orders SELECT g, '2013-01-31 00:00:00.000009', 'r', g FROM {numbers}")
    how: dict[str, Any] = {"keys": ["at", "id"], "partitions": 3, "lookback": LATE_BY}
    assert [run(lake, **how), run(lake, **how)] == [list(range(1, 6001)), []]


def test_late_rows_are_pending_and_land_once_in_a_sink(lake: Lake, shop: Shop) -> None:
    def play() -> None:
        with lake.job() as job:
            job.write(read(job, lookback=LATE_BY), "copy").parquet(lake.path("copy"))

    play()
    add(shop, -1, 4)
    (waiting,) = pending(lake.store, "copy").contexts
    assert (waiting.amount_in_words, waiting.unknown) == ("2 rows", None)
    play()
    (waiting,) = pending(lake.store, "copy").contexts
    assert waiting.amount_in_words == "0 rows"
    assert ids(lake.spark.read.parquet(lake.path("copy"))) == [-1, 1, 2, 3, 4]


def test_rewind_set_replay_and_pause_know_late_rows(lake: Lake, shop: Shop) -> None:
    run(lake, lookback=LATE_BY)
    add(shop, -1, 4)
    assert run(lake, lookback=LATE_BY) == [-1, 4]
    add(shop, -2)
    assert run(lake, lookback=LATE_BY) == [-2]
    add(shop, -3)
    with lake.job(option="pause", from_run="1", to_run="3") as job:
        assert ids(read(job, lookback=LATE_BY)) == [-2, -1, 4]
    rewind(lake.store, "copy", 1, reason="a test", who="ada")
    assert run(lake, lookback=LATE_BY) == [-3, -2, -1, 4]
    set_position(lake.store, "copy", "orders", "2", reason="a test", who="ada")
    assert run(lake, lookback=LATE_BY) == [3, 4]
    add(shop, -4)
    assert run(lake, lookback=LATE_BY) == [-4]
    assert examine(lake.store) == []


def test_loop_reads_late_rows_within_its_bound(lake: Lake, shop: Shop) -> None:
    run(lake, lookback=LATE_BY)
    add(shop, -1, -2, -3, 4)
    found = []
    for batch in lake.job().batches(max_rows=2):
        with batch as job:
            found.append(ids(read(job, lookback=LATE_BY)))
    assert found == [[-3, -2], [-1, 4]]


def test_no_secret_is_in_the_state(lake: Lake, shop: Shop, tmp_path: Path) -> None:
    run(lake)
    state: bytes = b"".join(path.read_bytes() for path in tmp_path.glob("bookmarks.db*"))
    assert b"conn:shop" in state
    assert str(shop.login.password).encode() not in state


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("reads_first", [True, False])
def test_table_that_a_run_reads_is_no_output_of_it(lake: Lake, shop: Shop, mode: str, reads_first: bool) -> None:
    rows = lake.spark.createDataFrame([(9,)], "id INT")

    def play(job: BookmarkedJob) -> None:
        if reads_first:
            read(job)
        job.write(rows, "copy").jdbc("conn:shop", "orders", mode=mode)
        read(job)

    with pytest.raises(OptionError, match="the next run would read its own output"), lake.job() as job:
        play(job)
    assert shop.rows("SELECT count(*) FROM orders") == [(3,)]


def test_login_among_the_properties_is_refused(lake: Lake, shop: Shop) -> None:
    with pytest.raises(OptionError, match=r"property 'password'.*conn:<id>"), lake.job() as job:
        read(job, properties={"password": "hunter2"})


def test_table_of_an_own_dialect_is_read_once(lake: Lake, tmp_path: Path) -> None:
    shop = Shop(new_sqlite(tmp_path / "shop.db"))
    shop.run("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
    found = []
    with registered(SQLite()):
        for rows in ("(1, 10), (2, 20)", "(3, 30), (40, 40)"):
            shop.run(f"INSERT INTO orders VALUES {rows}")
            with lake.job() as job:
                frame = read_orders(job, f"jdbc:sqlite:{shop.login.database}", settle=timedelta(0), partitions=2)
                found.append(ids(frame))

    assert found == [[1, 2], [3, 40]]
