"""Tables that are compared whole: `test_jdbc_snapshot.py` runs these in a process with the drivers of databases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.database.dialect import SharedSnapshot
from airflow_bookmarks.core.errors import (
    OptionError,
    SchemaChangedError,
    SourceChangedError,
    SourceError,
    SourceSwitchedError,
)
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.sources.jdbc.queries import Queries
from airflow_bookmarks.sources.snapshot.snapshot import opened
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.driver import DriverStore
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tests.sources.jdbc.test_conformance import KnownLogin
from tests.spark.jdbc_promises import DIALECTS, WIDE, more_conf
from tests.spark.lake import Lake
from tests.thorough import mostly_thorough

__all__ = ["more_conf"]

pytestmark = pytest.mark.spark


@pytest.fixture
def store(tmp_path: Path) -> BookmarkStore:
    """Open a fresh store with a place for artifacts."""
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test", state_uri=str(tmp_path / "state"))
    store.init()
    return store


@pytest.fixture(params=DIALECTS)
def shop(request: pytest.FixtureRequest, lake: Lake) -> Iterator[Shop]:
    """Make a database with two articles, whose login the store knows."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        lake.store.databases = KnownLogin(login)
        made.run("CREATE TABLE prices (id int, label varchar(20), price int)")
        made.run("INSERT INTO prices VALUES (1, 'one', 10), (2, 'two', 20)")
        yield made


def read(job: BookmarkedJob, table: str = "prices", ctx: str = "prices", **how: Any) -> DataFrame:
    of_all = {name: how.pop(name) for name in ("on_schema_change", "deleted_when", "count_rows") if name in how}
    how = {"keys": ["id"], "compare": "snapshot", **how}
    where = {"query": how.pop("query")} if "query" in how else {"table": table}
    return job.read(ctx, **of_all).jdbc("conn:shop", **where, **how)


def changed(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def deletes_of(frame: DataFrame) -> DataFrame:
    deletes: Any = frame.deletes  # to Spark's types it is a column
    assert isinstance(deletes, type(frame))
    return deletes


def run(lake: Lake, name: str = "copy", *, job: Mapping[str, Any] | None = None, **how: Any) -> list[tuple[Any, ...]]:
    with lake.job(name, **(job or {})) as running:
        return changed(read(running, **how))


def folders(lake: Lake) -> list[Path]:
    return sorted(path.parent for path in Path(str(lake.store.blobs.state_uri)).glob("test/artifacts/*/*/*/_SUCCESS"))


FEW_STEPS = (Failpoint.PLANNED, Failpoint.COMMITTED)
MORE_STEPS = (Failpoint.TAKEN, Failpoint.PUBLISHED)
FIRST = [(1, "one", 10, "insert"), (2, "two", 20, "insert")]


# ---- changes


@pytest.mark.often
def test_inserts_updates_and_deletes_are_seen_once(lake: Lake, shop: Shop) -> None:
    assert [run(lake), run(lake)] == [FIRST, []]
    shop.run("INSERT INTO prices VALUES (3, 'three', 30)")
    shop.run("UPDATE prices SET price = 11 WHERE id = 1")
    shop.run("DELETE FROM prices WHERE id = 2")
    assert run(lake) == [(1, "one", 11, "update"), (2, "two", 20, "delete"), (3, "three", 30, "insert")]
    assert run(lake) == []


def test_limit_of_the_server_makes_no_deletes(lake: Lake, mariadb_server: Any) -> None:
    """MariaDB would return a part of the rows, and no error: the rest would pass for deleted."""
    with new_database(mariadb_server) as login:
        shop = Shop(login)
        shop.run("CREATE TABLE prices (id int PRIMARY KEY)")
        shop.run("INSERT INTO prices SELECT seq FROM seq_1_to_9")
        for limit in ({}, {"sessionVariables": "sql_select_limit=2"}):
            lake.store.databases = KnownLogin(replace(login, parameters=limit))
            found = run(lake)
        assert found == []


def test_update_to_the_same_value_and_a_row_that_comes_back_as_it_was_are_no_changes(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("UPDATE prices SET price = price")
    shop.run("DELETE FROM prices WHERE id = 2")
    shop.run("INSERT INTO prices VALUES (2, 'two', 20)")
    assert run(lake) == []
    shop.run("DELETE FROM prices WHERE id = 2")
    shop.run("INSERT INTO prices VALUES (2, 'two', 21)")
    assert run(lake) == [(2, "two", 21, "update")]
    shop.run("DELETE FROM prices WHERE id = 2")
    assert run(lake) == [(2, "two", 21, "delete")]
    shop.run("INSERT INTO prices VALUES (2, 'two', 21)")
    assert run(lake) == [(2, "two", 21, "insert")]


def test_null_is_a_value_like_others(lake: Lake, shop: Shop) -> None:
    shop.run("INSERT INTO prices VALUES (3, NULL, NULL)")
    run(lake)
    assert run(lake) == []
    shop.run("UPDATE prices SET label = NULL WHERE id = 1")
    shop.run("UPDATE prices SET price = 0, label = '' WHERE id = 3")
    assert run(lake) == [(1, None, 10, "update"), (3, "", 0, "update")]


def test_each_action_reads_the_same_whatever_becomes_of_the_table(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("UPDATE prices SET price = 11 WHERE id = 1")
    with lake.job() as job:
        frame = read(job)
        shop.run("DELETE FROM prices")
        assert [changed(frame), frame.count()] == [[(1, "one", 11, "update")], 1]
        assert frame.where("price = 11").select("label").collect()[0].label == "one"


def test_deletes_lie_beside_the_frame(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("DELETE FROM prices WHERE id = 2")
    shop.run("UPDATE prices SET price = 11 WHERE id = 1")
    with lake.job() as job:
        frame = read(job)
        assert changed(deletes_of(frame)) == [(2, "two", 20, "delete")]
        job.abort("only a look")
    with lake.job() as job:
        frame = read(job, deleted_when="_change_type = 'delete'")
        assert changed(frame) == [(1, "one", 11, "update")]
        assert changed(deletes_of(frame)) == [(2, "two", 20, "delete")]


def test_rows_without_keys_are_compared_by_how_often_they_are_there(lake: Lake, shop: Shop) -> None:
    shop.run("INSERT INTO prices VALUES (1, 'one', 10), (NULL, NULL, NULL), (NULL, NULL, NULL)")
    none = (None, None, None)
    assert run(lake, keys=()) == sorted(
        [*[(1, "one", 10, "insert")] * 2, (2, "two", 20, "insert"), *[(*none, "insert")] * 2], key=repr
    )
    assert run(lake, keys=()) == []
    shop.run("INSERT INTO prices VALUES (1, 'one', 10), (1, 'one', 10)")
    shop.run("DELETE FROM prices WHERE id IS NULL")
    shop.run("UPDATE prices SET price = 21 WHERE id = 2")
    assert run(lake, keys=()) == sorted(
        [*[(1, "one", 10, "insert")] * 2, (2, "two", 20, "delete"), (2, "two", 21, "insert"), *[(*none, "delete")] * 2],
        key=repr,
    )


def test_keys_of_several_columns_and_a_query_in_place_of_a_table(lake: Lake, shop: Shop) -> None:
    query = "SELECT id, label, price * 2 AS twice FROM prices;"
    run(lake, query=query, keys=["label", "id"])
    shop.run("UPDATE prices SET price = 11, label = 'uno' WHERE id = 1")
    shop.run("UPDATE prices SET price = 21 WHERE id = 2")
    assert run(lake, query=query, keys=["label", "id"]) == [
        (1, "one", 20, "delete"), (1, "uno", 22, "insert"), (2, "two", 42, "update")
    ]  # fmt: skip


def test_names_of_columns_are_taken_letter_by_letter(lake: Lake, shop: Shop) -> None:
    quote = shop.dialect.quote
    own = {"postgresql": 'h"i', "mariadb": "f`g"}[shop.login.dialect]  # which Spark 3.5 does not quote
    odd = ["a b", "c,;{}()=", "d.e", "Größe", "f`g", 'h"i', "c0", "held", "count"]
    odd = [each for each in odd if each != own or not lake.spark.version.startswith("3.")]
    names = ", ".join(f"{quote(each)} int" for each in odd)
    shop.run(f"CREATE TABLE odd ({names})")
    shop.run(f"INSERT INTO odd VALUES ({', '.join(map(str, range(len(odd))))})")
    (row,) = run(lake, table="odd", keys=["a b"])
    assert row == (*range(len(odd)), "insert")
    shop.run(f"UPDATE odd SET {quote('d.e')} = 99")
    with lake.job() as job:
        frame = read(job, "odd", keys=["a b"])
        assert frame.columns == [*odd, "_change_type"]
        assert [row[2] for row in frame.collect()] == [99]


# ---- what is refused


def refused(lake: Lake, expected: str, kind: type[Exception] = OptionError, **how: Any) -> None:
    before = folders(lake)
    with pytest.raises(kind, match=expected), lake.job() as job:
        read(job, **how)
    assert folders(lake) == before


@pytest.mark.parametrize("keys", mostly_thorough([["id"], ["total"], []]), ids=str)
def test_number_that_spark_does_not_hold_is_refused_and_names_its_column(
    lake: Lake, shop: Shop, keys: list[str]
) -> None:
    declared, value, kind = WIDE[shop.login.dialect]
    shop.run(f"CREATE TABLE sold (id int, total {declared}, tax decimal(9, 2))")
    shop.run(f"INSERT INTO sold VALUES (1, {value}, 1)")
    expected = rf"is too large for .*one of: total {re.escape(f'({kind})')}\. Nothing was committed.*'total string'"
    refused(lake, expected, SourceError, table="sold", keys=keys)
    found = run(lake, "text", table="sold", keys=keys, properties={"customSchema": "total string"})
    assert [row[-1] for row in found] == ["insert"]


def test_keys_that_are_none_are_refused_and_leave_no_folder(lake: Lake, shop: Shop) -> None:
    refused(lake, "keys=\\['id', 'id'\\]: a key is named twice", keys=["id", "id"])
    refused(lake, "key 'ID' is no column here; there are id, label, price", SourceError, keys=["ID"])
    shop.run("INSERT INTO prices VALUES (2, 'deux', 20)")
    refused(lake, r"2 rows have the keys 2 \(id\)", SourceError)
    shop.run("UPDATE prices SET id = NULL WHERE label = 'deux'")
    refused(lake, r"1 row with NULL in a key \(id\)", SourceError)


def test_column_of_the_name_of_the_change_type_is_refused(lake: Lake, shop: Shop) -> None:
    shop.run("CREATE TABLE taken (id int, _Change_Type int)")
    refused(lake, "(?i)the table has a column '_change_type'", table="taken")


def test_option_that_means_nothing_is_refused(lake: Lake, shop: Shop) -> None:
    refused(lake, "order, max_rows with compare='snapshot'", order="desc", max_rows=5)
    refused(lake, "compare='hash': ", compare="hash")
    refused(lake, "on_emptied='no': ", on_emptied="no")
    with pytest.raises(OptionError, match="on_emptied='accept' without compare='snapshot'"), lake.job() as job:
        read(job, compare=None, on_emptied="accept")

    def loop() -> None:
        for batch in lake.job().batches(max_rows=2):
            with batch as job:
                read(job)

    with pytest.raises(OptionError, match=r"job\.batches\(max_rows=\.\.\.\) with compare='snapshot'"):
        loop()
    with pytest.raises(OptionError, match="start='2013-01-31T00:00:00\\+00:00' of a table that is compared whole"):
        run(lake, job={"start": "2013-01-31T00:00:00Z"})


def test_store_without_a_place_is_refused_before_anything_is_read(lake: Lake, shop: Shop, tmp_path: Path) -> None:
    store = BookmarkStore(SqliteTable(tmp_path / "other.db"), "test")
    store.init()
    store.databases = KnownLogin(shop.login)
    shop.run("DROP TABLE prices")
    with (
        pytest.raises(OptionError, match="the store has no state_uri"),
        BookmarkedJob(lake.spark, "copy", store=store) as job,
    ):
        read(job)


def test_other_keys_than_before_and_a_context_read_by_key_are_refused(lake: Lake, shop: Shop) -> None:
    run(lake)
    refused(lake, "compares rows by id, and the keys are all columns now", SourceError, keys=())
    with pytest.raises(SourceSwitchedError), lake.job() as job:
        read(job, compare=None)


@pytest.mark.often
def test_table_that_becomes_empty_stops_the_run_unless_that_is_right(
    lake: Lake, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.run("DELETE FROM prices")
    assert run(lake) == []  # one that was empty all the while is no surprise
    shop.run("INSERT INTO prices VALUES (1, 'one', 10)")
    assert run(lake) == [(1, "one", 10, "insert")]
    shop.run("DELETE FROM prices")
    refused(lake, "no rows any more, so all 1 would count as deleted.*on_emptied='accept'", SourceError)
    assert run(lake, on_emptied="accept") == [(1, "one", 10, "delete")]
    assert "the table has no rows any more: all 1 count as deleted" in caplog.text
    assert run(lake) == []


# ---- several parts


@pytest.mark.parametrize("keys", [["id"], ["label", "id"]], ids=str)
def test_parts_by_the_keys_hold_each_row_once(lake: Lake, shop: Shop, keys: list[str]) -> None:
    shop.run("DELETE FROM prices")
    shop.run(f"INSERT INTO prices VALUES {', '.join(f'({n}, {n % 7}, {n})' for n in range(-50, 50))}")
    assert [row[0] for row in run(lake, keys=keys, partitions=4)] == sorted(range(-50, 50), key=lambda n: repr((n,)))
    shop.run("UPDATE prices SET price = 1000 WHERE id = 7")
    assert run(lake, keys=keys, partitions=3) == [(7, "0", 1000, "update")]


@pytest.mark.parametrize(
    "how",
    [{"partition_column": "price"}, {"hash_field": "label"}, {"hash_expression": "price + 1"}, {"keys": ()}],
    ids=str,
)
def test_parts_between_which_a_row_can_move_need_one_snapshot(lake: Lake, shop: Shop, how: dict[str, Any]) -> None:
    if shop.login.dialect == "mariadb" or how == {"keys": ()}:
        refused(lake, "parts by |without keys", partitions=3, **how)
        assert run(lake, partitions=3, partition_column="id") == FIRST
    else:
        assert run(lake, partitions=3, **how) == FIRST
        assert run(lake, partitions=3, hash_field="label", keys=["id"]) == []


@pytest.mark.parametrize("fetchsize", mostly_thorough(["0", "1"], "1"))
def test_parts_read_the_table_as_it_was_when_the_first_began(
    lake: Lake, shop: Shop, fetchsize: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any part is read, each row moves to another part, one goes and one comes."""
    if shop.login.dialect == "mariadb":
        pytest.skip("MariaDB has no snapshot that sessions share: parts by other columns than keys are refused")

    def opened_late(queries: Queries, shared: SharedSnapshot) -> str:
        opening = opened(queries, shared)
        shop.run("UPDATE prices SET price = 30 - price")
        shop.run("DELETE FROM prices WHERE id = 1")
        shop.run("INSERT INTO prices VALUES (3, 'three', 30)")
        return opening

    monkeypatch.setattr("airflow_bookmarks.sources.snapshot.source.opened", opened_late)
    how: dict[str, Any] = {"partitions": 2, "partition_column": "price", "properties": {"fetchsize": fetchsize}}
    assert run(lake, **how) == FIRST
    monkeypatch.undo()
    assert run(lake, **how) == [(1, "one", 10, "delete"), (2, "two", 10, "update"), (3, "three", 30, "insert")]


# ---- types


VALUES = {
    "postgresql": {
        "smallint": ["-32768", "32767"],
        "bigint": ["-9223372036854775808", "9223372036854775807"],
        "numeric(38, 10)": ["0.0000000001", "1234567890123456789012345678.0123456789"],
        "numeric": ["0.000000000000000001", "12345678901234567890.012345678901234567"],
        "real": ["'NaN'", "1e-30", "'Infinity'"],
        "double precision": ["'NaN'", "1e-300", "0.1", "'-Infinity'"],
        "boolean": ["true", "false"],
        "date": ["'0001-01-01'", "'1582-10-04'", "'1752-09-14'", "'9999-12-31'"],
        "timestamptz": ["'0001-01-01 00:00+00'", "'1582-10-04 01:02:03.000001+00'", "'9999-12-31 23:59:59.999999+00'"],
        "timestamp": ["'0001-01-01 00:00:00'", "'1900-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"],
        "time": ["'00:00:00'", "'23:59:59.999999'"],
        "interval": ["'1 day'", "'1 month -3 days'"],
        "uuid": ["'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
        "text": ["''", "' '", "'a'", "'A'", "'ä'", "'a\u0308'", "'\U0001f600'"],
        "char(3)": ["'a'", "'b'"],
        "bytea": ["''", "'\\x00ff'"],
        "jsonb": ["'{}'", "'{\"a\": 1}'"],
        "int[]": ["'{}'", "'{1,NULL}'"],
        "date[]": ["'{}'", "'{2013-01-31}'"],
    },
    "mariadb": {
        "tinyint unsigned": ["0", "255"],
        "bigint unsigned": ["0", "18446744073709551615"],
        "decimal(38, 10)": ["0.0000000001", "1234567890123456789012345678.0123456789"],
        "float": ["1.5", "1e-30"],
        "double": ["0.1", "1e-300"],
        "date": ["'0001-01-01'", "'1582-10-04'", "'9999-12-31'"],
        "datetime(6)": ["'0001-01-01 00:00:00'", "'1900-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"],
        "timestamp(6)": ["'1990-01-01 00:00:00.000001'", "'2013-01-31 23:59:59.999999'"],
        "year": ["1901", "2155"],
        "bit(60)": ["1", "1152921504606846975"],
        "varchar(20)": ["''", "'a'", "'A'", "'ä'", "'\U0001f600'"],
        "blob": ["''", "X'00ff'"],
        "enum('a', 'b')": ["'a'", "'b'"],
    },
}  # fmt: skip


def test_each_change_of_a_value_of_each_type_is_an_update_and_nothing_else_is(lake: Lake, shop: Shop) -> None:
    types = VALUES[shop.login.dialect]
    columns = ", ".join(f"v{place} {declared}" for place, declared in enumerate(types))
    shop.run(f"CREATE TABLE typed (id int, {columns})")
    for place, values in enumerate(types.values()):
        for number, value in enumerate(values):
            shop.run(f"INSERT INTO typed (id, v{place}) VALUES ({place * 100 + number}, {value})")
    assert ids_of_changes(lake) == {
        place * 100 + n: "insert" for place, each in enumerate(types.values()) for n in range(len(each))
    }
    assert ids_of_changes(lake) == {}
    expected = {}
    for place, values in enumerate(types.values()):
        for number, value in enumerate([*values[1:], values[0]]):
            shop.run(f"UPDATE typed SET v{place} = {value} WHERE id = {place * 100 + number}")
            expected[place * 100 + number] = "update"
    assert ids_of_changes(lake) == expected
    assert ids_of_changes(lake) == {}


def ids_of_changes(lake: Lake) -> dict[int, str]:
    """Make a run over all types; Python has not every value of them."""
    with lake.job() as job:
        found = read(job, "typed").select("id", "_change_type").collect()
    return {row[0]: row[1] for row in found}


def test_values_come_out_as_spark_reads_them(lake: Lake, shop: Shop) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    at = "timestamptz" if shop.login.dialect == "postgresql" else "timestamp(6)"
    shop.run(f"CREATE TABLE timed (id int, on_day date, at {at}, amount decimal(38, 10))")
    shop.run("INSERT INTO timed VALUES (1, '2013-03-10', '2013-03-10 07:30:00.123456', 0.0000000001)")
    shop.run("INSERT INTO timed VALUES (2, NULL, NULL, NULL)")
    with lake.job() as job:
        frame = read(job, "timed")
        plain = job.read("plain").jdbc("conn:shop", "timed", keys=["id"])
        assert frame.drop("_change_type").schema == plain.schema
        assert changed(frame.drop("_change_type")) == changed(plain)


def test_type_that_can_not_be_kept_is_refused_by_name(lake: Lake, shop: Shop) -> None:
    if shop.login.dialect == "mariadb":
        pytest.skip("MariaDB has no type that Spark reads as one without an order")
    refused(
        lake,
        r"columns whose values can't be kept or compared: label \(interval day to second\)",
        properties={"customSchema": "label INTERVAL DAY TO SECOND"},
    )


# ---- columns that change


def test_column_that_is_added_makes_updates_of_the_rows_that_have_a_value(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("ALTER TABLE prices ADD COLUMN stock int")
    assert run(lake) == []
    assert lake.head().contexts["prices"].run.number == 2  # the next run compares the new column too
    shop.run("UPDATE prices SET stock = 5 WHERE id = 1")
    assert run(lake) == [(1, "one", 10, 5, "update")]
    shop.run("ALTER TABLE prices ADD COLUMN more int NOT NULL DEFAULT 7")
    assert run(lake) == [(1, "one", 10, 5, 7, "update"), (2, "two", 20, None, 7, "update")]


def test_column_that_goes_stops_the_run_or_is_no_change_of_a_row(lake: Lake, shop: Shop) -> None:
    run(lake)
    shop.run("ALTER TABLE prices DROP COLUMN price")
    shop.run("DELETE FROM prices WHERE id = 2")
    with pytest.raises(SchemaChangedError, match="price"):
        run(lake)
    assert run(lake, on_schema_change="accept") == [(2, "two", "delete")]
    assert run(lake) == []
    shop.run("ALTER TABLE prices DROP COLUMN label")
    assert run(lake, on_schema_change="reset") == [(1, "insert")]
    assert run(lake) == []


def test_column_of_another_type_is_compared_by_its_values(lake: Lake, shop: Shop) -> None:
    shop.run("INSERT INTO prices VALUES (3, '03', 30), (4, NULL, 40), (5, 'x', 50)")
    run(lake)
    is_postgresql = shop.login.dialect == "postgresql"
    kind = "ALTER TABLE prices ALTER COLUMN {0} TYPE {1}" if is_postgresql else "ALTER TABLE prices MODIFY {0} {1}"
    shop.run(kind.format("price", "bigint"))
    assert run(lake) == []  # a wider type of the same values
    shop.run("UPDATE prices SET label = '1' WHERE id = 1")
    shop.run("UPDATE prices SET label = '2' WHERE id = 2")
    assert len(run(lake)) == 2
    shop.run("DELETE FROM prices WHERE id = 5")
    shop.run("UPDATE prices SET label = '20' WHERE id = 2")
    shop.run(kind.format("label", "int" + (" USING label::int" if is_postgresql else "")))
    with pytest.raises(SchemaChangedError, match="label"):
        run(lake)
    assert run(lake, on_schema_change="accept") == [
        (2, 20, 20, "update"), (3, 3, 30, "update"), (5, None, 50, "delete")
    ]  # fmt: skip
    refused_kind = "text" if is_postgresql else "varchar(20)"
    shop.run(kind.format("id", refused_kind))
    with pytest.raises(SourceError, match="key 'id' was int in the last snapshot, and is string now"):
        run(lake)


# ---- history


def change(shop: Shop, number: int) -> None:
    shop.run(f"UPDATE prices SET price = {number} WHERE id = 1")


def three_runs(lake: Lake, shop: Shop) -> None:
    run(lake)
    for number in (12, 13):
        change(shop, number)
        assert run(lake) == [(1, "one", number, "update")]


def test_rewind_compares_with_the_older_snapshot(lake: Lake, shop: Shop) -> None:
    three_runs(lake, shop)
    rewind(lake.store, "copy", 1, reason="a test", who="ada")
    assert run(lake) == [(1, "one", 13, "update")]
    reset(lake.store, "copy", reason="a test", who="ada")
    assert run(lake) == [(1, "one", 13, "insert"), FIRST[1]]


def test_replay_and_a_pause_over_runs_read_what_was_read_then(lake: Lake, shop: Shop) -> None:
    three_runs(lake, shop)
    change(shop, 14)
    with lake.job(replay=2) as job:
        assert changed(read(job)) == [(1, "one", 12, "update")]
    with lake.job(option="pause", from_run="1", to_run="3") as job:
        assert changed(read(job)) == [(1, "one", 13, "update")]
    with lake.job(option="pause", from_run="0", to_run="2") as job:
        assert changed(read(job)) == [(1, "one", 12, "insert"), FIRST[1]]
    with lake.job(option="pause", from_run="0", to_run="2") as job:
        frame = read(job, ctx="other")  # which these runs have not read
        assert (frame.columns, changed(frame)) == (["id", "label", "price", "_change_type"], [])
    assert run(lake) == [(1, "one", 14, "update")]


def test_pause_and_disable_change_nothing_and_what_they_keep_is_collected(lake: Lake, shop: Shop) -> None:
    run(lake)
    change(shop, 12)
    before, kept = lake.state(), folders(lake)
    assert len(kept) == 1
    with lake.job(option="pause") as job:
        assert changed(read(job)) == [(1, "one", 12, "update")]
    with lake.job(option="disable") as job:
        assert changed(read(job)) == [(1, "one", 12, "insert"), FIRST[1]]
    assert (lake.state(), len(folders(lake))) == (before, 3)
    collect(lake.store, clock=in_days(100))
    assert folders(lake) == kept
    assert run(lake) == [(1, "one", 12, "update")]


def in_days(days: int) -> Any:
    at: datetime = utc_now() + timedelta(days=days)
    return lambda: at


def test_one_snapshot_is_kept_for_each_retained_run_and_one_before(lake: Lake, shop: Shop) -> None:
    three_runs(lake, shop)
    run(lake)
    assert len(folders(lake)) == 3  # nothing new, so nothing more is kept
    collect(lake.store, clock=in_days(100))
    assert len(folders(lake)) == 2
    with lake.job(replay=3) as job:  # of the run that is left
        assert changed(read(job)) == [(1, "one", 13, "update")]
    change(shop, 14)
    assert run(lake) == [(1, "one", 14, "update")]
    assert [oct(path.stat().st_mode & 0o777) for path in folders(lake)] == ["0o700"] * 3


def test_snapshot_that_is_gone_stops_what_needs_it(lake: Lake, shop: Shop) -> None:
    three_runs(lake, shop)
    for file in folders(lake)[1].glob("*.parquet"):
        file.unlink()
    with pytest.raises(SourceChangedError, match="run 2 read have changed or are gone"), lake.job(replay=2) as job:
        read(job)
    for file in folders(lake)[2].glob("*.parquet"):
        file.write_bytes(b"")
    with pytest.raises(SourceError, match=r"1 file\(s\) of the last snapshot are gone or cut short"):
        run(lake)


def test_job_that_begins_now_takes_what_is_there_as_read(lake: Lake, shop: Shop) -> None:
    assert run(lake, job={"start": "now"}) == []
    change(shop, 12)
    assert run(lake) == [(1, "one", 12, "update")]


def test_two_contexts_and_two_jobs_have_snapshots_of_their_own(lake: Lake, shop: Shop) -> None:
    shop.run("CREATE TABLE stock (id int, pieces int)")
    shop.run("INSERT INTO stock VALUES (1, 5)")
    found: list[list[Any]] = [[FIRST, [(1, 5, "insert")]], [[], []]]
    for expected in found:
        with lake.job() as job:
            assert [changed(read(job)), changed(read(job, "stock", "stock"))] == expected
    shop.run("UPDATE stock SET pieces = 6")
    with lake.job() as job:
        assert [changed(read(job)), changed(read(job, "stock", "stock"))] == [[], [(1, 6, "update")]]
    assert run(lake, "other", table="stock", ctx="stock") == [(1, 6, "insert")]


def test_pending_set_and_doctor_say_that_they_do_not_know(lake: Lake, shop: Shop) -> None:
    run(lake)
    (waiting,) = pending(lake.store, "copy").contexts
    assert (waiting.amount_in_words, waiting.plan) == ("not known", None)
    assert "can't be looked at without its script" in str(waiting.unknown)
    for value in ("now", "2013-01-31T00:00:00Z", "1"):
        with pytest.raises(OptionError, match="can't be set to a value"):
            set_position(lake.store, "copy", "prices", value, reason="a test", who="ada")
    assert examine(lake.store) == []
    assert lake.store.head("copy").contexts["prices"].watermark is not None


# ---- crashes


def marks_of(point: Failpoint) -> list[pytest.MarkDecorator]:
    """Let `make test` play few points of a kill, and the matrix some more."""
    if point in FEW_STEPS:
        return []
    return [pytest.mark.seldom if point in MORE_STEPS else pytest.mark.thorough]


KILLS = [pytest.param(point, marks=marks_of(point)) for point in Failpoint]


@pytest.mark.parametrize("point", KILLS)
@pytest.mark.often
def test_killed_at_any_step_and_run_again_each_change_is_there_once(lake: Lake, shop: Shop, point: Failpoint) -> None:
    def play(store: BookmarkStore, attempt: int) -> None:
        store.databases = KnownLogin(shop.login)
        with BookmarkedJob(lake.spark, "copy", store=store, run_id="night", attempt=attempt) as job:
            job.write(read(job), "out").json(lake.path("out"))

    run(lake)
    change(shop, 12)
    driver = DriverStore(lake.store, point, lambda entry: None)
    with pytest.raises(SimulatedCrash):
        play(driver, 1)
    change(shop, 13)
    play(lake.store, 2)
    with lake.job() as job:
        job.write(read(job), "out").json(lake.path("out"))
    written = [json.loads(line)["price"] for file in Path(lake.path("out")).glob("*.json") for line in file.open()]
    assert sorted(written) in ([13], [12, 13])
    assert examine(lake.store) == []
    collect(lake.store, clock=in_days(100))
    named = {Path(uri) for uri in lake.head().contexts["prices"].artifacts}
    assert set(folders(lake)) == named
    assert run(lake) == []


@pytest.mark.thorough  # seconds
def test_hundred_thousand_rows(lake: Lake, shop: Shop) -> None:
    shop.run("DELETE FROM prices")
    shop.run("INSERT INTO prices VALUES (0, 'x', 0)")
    for power in range(17):
        shop.run(f"INSERT INTO prices SELECT id + {2**power}, label, id + {2**power} FROM prices")
    with lake.job() as job:
        assert read(job, partitions=4).count() == 2**17
    shop.run("UPDATE prices SET price = -1 WHERE id % 1000 = 0")
    shop.run("DELETE FROM prices WHERE id % 1000 = 1")
    with lake.job() as job:
        counts = {row[0]: row[1] for row in read(job, partitions=4).groupBy("_change_type").count().collect()}
    assert counts == {"update": 132, "delete": 132}
