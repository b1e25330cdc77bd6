"""Tables through Spark's own JDBC source: `test_jdbc.py` runs these in a process with the drivers of databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import MisuseError, OptionError, PartitionsFailedError, SchemaChangedError
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.dialects import registered
from airflow_bookmarks.lifecycle.changes.change import rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import SPARK_ERRORS
from tests.databases.servers import new_database, new_sqlite
from tests.databases.sqlite_dialect import SQLite, read_orders
from tests.sources.jdbc.key_types import CASES, Case, create, is_exact
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.spark.lake import Lake, rows_of
from tests.thorough import each_once, mostly_thorough
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


@pytest.mark.often
def test_each_row_is_read_once(lake: Lake, shop: Shop) -> None:
    assert [run(lake), run(lake)] == [[1, 2, 3], []]
    add(shop, 4)
    assert run(lake) == [4]


@pytest.mark.parametrize("how", mostly_thorough([{}, {"partitions": 2}]), ids=str)
def test_limit_of_the_server_hides_no_rows(lake: Lake, mariadb_server: Any, how: dict[str, Any]) -> None:
    """MariaDB would return a part of the rows, and no error: those behind it would be lost."""
    with new_database(mariadb_server) as login:
        shop = Shop(login)
        shop.run("CREATE TABLE orders (id int PRIMARY KEY)")
        shop.run("INSERT INTO orders SELECT seq FROM seq_1_to_9")
        lake.store.databases = KnownLogin(replace(login, parameters={"sessionVariables": "sql_select_limit=2"}))
        assert run(lake, **how) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        assert run(lake, **how) == []


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
        pytest.param({"partitions": 40}, marks=pytest.mark.thorough),
        pytest.param({"partitions": 3, "keys": ["at", "id"]}, marks=pytest.mark.thorough),
    ],
    ids=str,
)
@pytest.mark.often
def test_parts_hold_each_row_once(lake: Lake, shop: Shop, how: dict[str, Any]) -> None:
    shop.run("INSERT INTO orders (id, at) VALUES (-5, '2013-01-30'), (900, '2013-01-30')")  # nothing to split them by
    with lake.job() as job:
        frame = read(job, **how)
        assert ids(frame) == [-5, 1, 2, 3, 900]


@pytest.mark.parametrize(
    ("how", "by"),
    [
        ({"partition_column": "amount"}, "'amount'"),
        ({"hash_field": "region"}, "'region'"),
        ({"hash_expression": "id + amount"}, "'id + amount'"),
        ({}, None),
        ({"partition_column": "id"}, None),
        ({"hash_field": "id"}, None),
        ({"hash_expression": "id % 7"}, None),
        ({"hash_field": "amount", "keys": ["id", "amount"]}, None),
    ],
    ids=str,
)
def test_parts_between_which_a_row_may_move_are_warned_of(
    lake: Lake, shop: Shop, caplog: pytest.LogCaptureFixture, how: dict[str, Any], by: str | None
) -> None:
    assert run(lake, partitions=3, **how) == [1, 2, 3]
    assert run(lake, partitions=3, **how) == []
    warned = [each.getMessage() for each in caplog.records if "each part is read at another time" in each.getMessage()]
    assert len(warned) == (by is not None)  # not where nothing is read
    assert all(f"parts by {by}" in each and "Split by a key (id)" in each for each in warned)


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


# What the others are made of is asked without Spark, in tests/sources/jdbc/test_keys.py.
FEW_TYPES = ("bigint", "numeric", "timestamptz", "text", "uuid", "double precision")
TYPES = [
    pytest.param(
        name,
        case,
        id=f"{name}-{case.declared}",
        marks=() if case.declared in FEW_TYPES else pytest.mark.thorough,
    )
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


def test_rewind_with_clean_behind_a_column_that_was_added_reads_updates_again(lake: Lake, shop: Shop) -> None:
    how = {"lookback": timedelta(hours=1)}
    assert run(lake, **how) == [1, 2, 3]
    shop.run("UPDATE orders SET amount = 7 WHERE id = 2")
    assert run(lake, **how) == [2]
    shop.run("ALTER TABLE orders ADD COLUMN note varchar(9)")
    shop.run("INSERT INTO orders (id) VALUES (4)")
    assert run(lake, **how) == [4]
    rewind(lake.store, "copy", 1, clean=True, reason="a test", who="ada")
    assert run(lake, **how) == [2, 4]


def test_query_in_place_of_a_table(lake: Lake, shop: Shop) -> None:
    query = "SELECT id, amount * 2 AS twice FROM orders WHERE region <> 'r0' ORDER BY twice DESC -- two of three;"
    for expected in ([(1, 2), (2, 4)], []):
        with lake.job() as job:
            assert rows_of(job.read("orders").jdbc("conn:shop", query=query, keys=["id"])) == expected
    add(shop, 4, 5, 6)
    with lake.job() as job:
        frame = job.read("orders").jdbc("conn:shop", query=query, keys=["id"], partitions=2)
        assert [rows_of(frame), rows_of(frame)] == [[(4, 8), (5, 10)]] * 2


def test_query_that_joins_tables_is_read_by_a_time_and_text(lake: Lake, shop: Shop) -> None:
    binary = {"postgresql": "varchar(9)", "mariadb": "varchar(9) COLLATE utf8mb4_bin"}[shop.login.dialect]
    shop.run(f"CREATE TABLE line (id int, sku {binary}, PRIMARY KEY (id, sku))")
    shop.run("INSERT INTO line VALUES (1, 'a'), (1, 'B'), (3, 'c')")
    query = """
        WITH sold AS (SELECT o.at, o.id, l.sku FROM orders o LEFT JOIN line l ON l.id = o.id)
        SELECT * FROM sold  # or all
    """.replace("#", "--" if shop.login.dialect == "postgresql" else "#")
    how: dict[str, Any] = {"query": query, "keys": ["at", "sku"], "on_null": "skip"}
    found = []
    for _ in range(2):
        with lake.job() as job:
            found.append(rows_of(job.read("orders").jdbc("conn:shop", **how).select("id", "sku")))
    assert found == [[(1, "B"), (1, "a"), (3, "c")], []]


WIDE = {"postgresql": ("numeric", "1e30", "decimal(38,18)"), "mariadb": ("decimal(65)", "1e60", "decimal(38,0)")}


@pytest.mark.parametrize("how", mostly_thorough([{"keys": ["id"]}, {"keys": ["total"]}]), ids=["value", "key"])
def test_number_that_spark_does_not_hold_ends_the_run_and_names_its_column(
    lake: Lake, shop: Shop, how: dict[str, Any]
) -> None:
    declared, value, kind = WIDE[shop.login.dialect]
    shop.run(f"CREATE TABLE sold (id int PRIMARY KEY, total {declared}, tax decimal(9, 2))")
    shop.run(f"INSERT INTO sold VALUES (1, {value}, 1)")
    with pytest.raises(SPARK_ERRORS) as raised, lake.job() as job:
        job.write(read(job, "sold", **how), "copy").parquet(lake.path("copy"))
    (note,) = raised.value.__notes__
    assert f"one of: total ({kind}). Nothing was committed" in note
    assert "customSchema': 'total string'" in note
    assert lake.state()[1] == 0
    for expected in ([1], []):
        with lake.job() as job:  # Spark does not read a column that is not asked for
            assert ids(read(job, "sold", **how)) == expected
    with lake.job("text") as job:
        frame = read(job, "sold", **how, properties={"customSchema": "total string"})
        assert [row.total for row in frame.collect()] == [f"1{'0' * int(value.partition('e')[2])}"]


def test_nan_ends_the_run_and_names_the_columns_that_may_have_it(lake: Lake, request: pytest.FixtureRequest) -> None:
    with new_database(request.getfixturevalue("postgresql_server")) as login:
        lake.store.databases = KnownLogin(login)
        Shop(login).run("CREATE TABLE sold AS SELECT 1 AS id, CAST('NaN' AS numeric(9, 2)) AS \"net price\"")
        with pytest.raises(SPARK_ERRORS) as raised, lake.job() as job:
            read(job, "sold").collect()
    (note,) = raised.value.__notes__
    assert "is NaN, which no number is in" in note
    assert "customSchema': '`net price` string'" in note


def test_url_as_whom_spark_is_not_let_in_says_how_a_login_is_given(
    lake: Lake, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_database(request.getfixturevalue("postgresql_server")) as login:
        Shop(login).run("CREATE TABLE orders (id int PRIMARY KEY)")
        lake.store.databases = EnvironmentAccess()
        monkeypatch.setenv("PGUSER", login.user or "")  # as the planner is let in
        monkeypatch.setenv("PGPASSWORD", login.password or "")
        said = r"Spark can't enter the database \(.*password.*give conn:<id>"
        with pytest.raises(OptionError, match=said), lake.job() as job:
            job.read("orders").jdbc(login.jdbc_url, "orders", keys=["id"])


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


def test_change_of_columns_is_accepted_or_begun_again_as_the_read_says(lake: Lake, shop: Shop) -> None:
    def run_that(on_schema_change: Any) -> list[int]:
        with lake.job() as job:
            return ids(job.read("orders", on_schema_change=on_schema_change).jdbc("conn:shop", "orders", keys=["id"]))

    assert run(lake) == [1, 2, 3]
    shop.run("ALTER TABLE orders DROP COLUMN amount")
    shop.run("INSERT INTO orders (id) VALUES (4)")
    assert run_that("accept") == [4]
    shop.run("ALTER TABLE orders ADD COLUMN amount varchar(9)")
    shop.run("INSERT INTO orders (id) VALUES (5)")
    assert run(lake) == [5]  # what is added stops nothing
    shop.run("ALTER TABLE orders DROP COLUMN amount")
    assert run_that("reset") == [1, 2, 3, 4, 5]


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
        *(
            pytest.param(how, marks=pytest.mark.thorough)
            for how in (
                {"partitions": 3},
                {"partitions": 3, "partition_column": "amount"},
                {"partitions": 3, "hash_field": "region"},
                {"keys": ["at", "id"]},
                {"partitions": 3, "keys": ["at"]},
            )
        ),
        {"partitions": 3, "keys": ["at", "id"]},
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


@pytest.mark.often
def test_no_secret_is_in_the_state(lake: Lake, shop: Shop, tmp_path: Path) -> None:
    run(lake)
    state: bytes = b"".join(path.read_bytes() for path in tmp_path.glob("bookmarks.db*"))
    assert b"conn:shop" in state
    assert str(shop.login.password).encode() not in state


@pytest.mark.parametrize(("reads_first", "mode"), each_once([True, False], ["append", "overwrite"]))
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


def test_shares_of_a_table_are_disjoint_and_complete(lake: Lake, shop: Shop) -> None:
    add(shop, *range(4, 200))
    found: list[int] = []
    for shard in ("0/16", "1/16"):
        for job in lake.job(shard=shard).shards():
            with job:
                found += ids(read(job))
    assert len(found) == len(set(found)) > 5
    for shard in ("0/16", "2/17"):
        for job in lake.job(shard=shard).shards():
            with job:
                assert not set(ids(read(job, partitions=2))) & set(found)


def test_other_rule_for_shards_of_a_table_is_refused(lake: Lake, shop: Shop) -> None:
    for job in lake.job(shard=range(1)).shards():
        with job:
            read(job, shard_by="region").count()
    for job in lake.job(shard=range(1, 2)).shards():
        with pytest.raises(OptionError, match="has read it by shard_by='region'"), job:
            read(job)


# ---- value by value


def copied(lake: Lake, *failing: str | None, crash: str | None = None, **job: Any) -> list[str | None]:
    """Read value by value, and copy each; return the values that were read. What is in `failing` fails."""
    seen: list[str | None] = []
    for part in lake.job(**job).partitions("orders"):
        with part:
            frame = read(part, per="region")
            (value, *_) = [row.region for row in frame.select("region").collect()] or ["nothing"]
            seen.append(value)
            if value == crash:
                raise KeyboardInterrupt
            part.write(frame, "copy").parquet(lake.path("copy"))
            if value in failing:
                raise ValueError(f"{value} is wrong")
    return seen


def in_copy(lake: Lake) -> list[int]:
    return ids(lake.spark.read.parquet(lake.path("copy")))


def test_each_value_is_a_run_with_its_own_commit(lake: Lake, shop: Shop) -> None:
    assert copied(lake) == ["r0", "r1", "r2"]
    assert (in_copy(lake), lake.head("copy").run_number) == ([1, 2, 3], 3)
    assert copied(lake) == ["nothing"]
    add(shop, 4, 7)
    assert copied(lake) == ["r1"]
    assert in_copy(lake) == [1, 2, 3, 4, 7]
    assert lake.head("copy").lease is None


@pytest.mark.parametrize("failing", mostly_thorough(["r0", "r1", "r2"], "r1"))
def test_value_that_fails_is_named_and_its_retry_reads_it_alone(lake: Lake, shop: Shop, failing: str) -> None:
    with pytest.raises(PartitionsFailedError, match=f"1 partition failed.*region='{failing}': ValueError") as raised:
        copied(lake, failing, run_id="one", attempt=1)
    assert list(raised.value.failed) == [f"region='{failing}'"]
    assert isinstance(raised.value.__cause__, ExceptionGroup)
    assert [str(error) for error in raised.value.__cause__.exceptions] == [f"{failing} is wrong"]
    assert (len(in_copy(lake)), lake.head("copy").lease) == (2, None)
    execution = lake.store.snapshot("copy", "one").execution
    assert execution is not None
    assert not execution.is_finished
    add(shop, 4, 5, 6)
    assert copied(lake, run_id="one", attempt=2) == [failing]
    assert in_copy(lake) == [1, 2, 3]
    assert copied(lake, run_id="two") == ["r0", "r1", "r2"]
    assert in_copy(lake) == [1, 2, 3, 4, 5, 6]


@pytest.mark.thorough
def test_all_values_fail(lake: Lake, shop: Shop) -> None:
    with pytest.raises(PartitionsFailedError, match="3 partitions failed"):
        copied(lake, "r0", "r1", "r2", run_id="one", attempt=1)
    assert lake.head("copy").run_number == 0
    assert copied(lake, run_id="one", attempt=2) == ["r0", "r1", "r2"]


@pytest.mark.often
def test_killed_loop_is_taken_over_and_goes_on_where_it_was(lake: Lake, shop: Shop) -> None:
    with pytest.raises(KeyboardInterrupt):
        copied(lake, crash="r1", run_id="one", attempt=1)
    assert in_copy(lake) == [3]
    add(shop, 6)
    assert copied(lake, run_id="one", attempt=2) == ["r1", "r2"]
    assert in_copy(lake) == [1, 2, 3]
    assert copied(lake, run_id="two") == ["r0"]


def test_rewind_restores_what_each_value_had_read(lake: Lake, shop: Shop) -> None:
    copied(lake)
    rewind(lake.store, "copy", 2, reason="a test", who="ada")
    add(shop, 5)
    assert copied(lake, run_id="again") == ["r2"]  # 2 and 5: what was left after run 2, and what is new
    assert sorted(in_copy(lake)) == [1, 2, 2, 3, 5]


def test_replay_of_one_value_replaces_its_rows_alone(lake: Lake, shop: Shop) -> None:
    copied(lake)
    shop.run("UPDATE orders SET amount = 40 WHERE id = 1")
    assert copied(lake, replay=2) == ["r1"]
    rows = rows_of(lake.spark.read.parquet(lake.path("copy")).select("id", "amount"))
    assert rows == [(1, 40), (2, 2), (3, 3)]


def test_pause_and_disable_read_the_same_values_and_change_nothing(lake: Lake, shop: Shop) -> None:
    for option in ("pause", "disable"):
        seen = []
        for part in lake.job(option=option).partitions("orders"):
            with part:
                seen.append(ids(read(part, per="region")))
        assert seen == [[3], [1], [2]]
    with pytest.raises(PartitionsFailedError, match="region='r1'"):
        copied(lake, "r1", option="pause")
    assert copied(lake) == ["r0", "r1", "r2"]


def test_pause_over_runs_reads_what_they_have_read(lake: Lake, shop: Shop) -> None:
    copied(lake)
    add(shop, 4)
    for first, last, expected in ((0, 3, [1, 2, 3]), (1, 3, [1, 2]), (1, 2, [1])):
        seen = []
        for part in lake.job(option="pause", from_run=first, to_run=last).partitions("orders"):
            with part:
                seen += ids(read(part, per="region"))
        assert seen == expected


def test_consumer_sees_each_commit(lake: Lake, shop: Shop) -> None:
    with pytest.raises(PartitionsFailedError):
        copied(lake, "r1", run_id="one", attempt=1)

    def consume() -> list[int]:
        with lake.job("after") as job:
            return ids(job.read("in").upstream("copy"))

    assert consume() == [2, 3]
    copied(lake, run_id="one", attempt=2)
    assert consume() == [1]


def test_pending_counts_what_is_left_and_what_is_new(lake: Lake, shop: Shop) -> None:
    with pytest.raises(PartitionsFailedError):
        copied(lake, "r1")
    add(shop, 5)
    (waiting,) = pending(lake.store, "copy").contexts
    assert (waiting.amount_in_words, waiting.unknown) == ("2 rows", None)


def test_values_within_shards(lake: Lake, shop: Shop) -> None:
    add(shop, *range(4, 100))
    found: list[int] = []
    for job in lake.job(shard="0/32").shards():
        for part in job.partitions("orders"):
            with part:
                found += ids(read(part, per="region"))
    whole: list[int] = []
    for job in lake.job("whole", shard="0/32").shards():
        with job:
            whole += ids(read(job))
    assert sorted(found) == sorted(whole) != []


def in_loop(lake: Lake, do: Callable[[BookmarkedJob], object]) -> None:
    for part in lake.job().partitions("orders"):
        with part:
            do(part)


def test_error_before_anything_is_read_ends_the_loop(lake: Lake, shop: Shop) -> None:
    with pytest.raises(ZeroDivisionError):
        in_loop(lake, lambda part: 1 / 0)
    assert lake.head("copy").lease is None


ORDERS: Mapping[str, Any] = {"url": "conn:shop", "table": "orders", "keys": ["id"], "per": "region"}
REFUSED: list[tuple[Callable[[Any], object], str]] = [
    (lambda part: read(part), "a table without per"),
    (lambda part: part.read("other").jdbc(**ORDERS), "this loop is over"),
    (lambda part: part.read("orders").text("/lake/raw"), "files without per_partition=True in job.partitions"),
    (lambda part: part.read("orders").upstream("other"), "an upstream in job.partitions"),
    (
        lambda part: part.read("orders", on_schema_change="reset").jdbc(**ORDERS),
        "each part would start all of them over",
    ),
    (lambda part: part.batches(max_rows=1), "is a partition"),
    (lambda part: None, "did not read 'orders'"),
    (lambda part: part.write(part.spark.range(1), "c").mode("overwrite").parquet("/lake/c"), "by a partition would"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_no_loop_over_values_is_refused(lake: Lake, shop: Shop, place: int) -> None:
    wrong, why = REFUSED[place]
    with pytest.raises((OptionError, MisuseError), match=why):
        in_loop(lake, wrong)


def test_values_outside_of_a_loop_are_refused(lake: Lake, shop: Shop) -> None:
    with pytest.raises(OptionError, match=r"per='region' reads one part at a time"), lake.job() as job:
        read(job, per="region")
