"""Iceberg tables as a source: `test_iceberg_source.py` runs these in a process whose Spark has Iceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import (
    OptionError,
    PartitionsFailedError,
    SchemaChangedError,
    SourceChangedError,
    SourceError,
    SourceMissingError,
    SourceSwitchedError,
)
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.sources.iceberg.look import PyIcebergTable
from airflow_bookmarks.sources.iceberg.position import WholeTable
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.iceberg.session import IcebergSession
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.driver import DriverStore
from tests.spark.following import copied_by_region, in_copy
from tests.spark.iceberg import Table, iceberg_conf
from tests.spark.lake import Lake

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Put Iceberg beside Spark's own jars."""
    return iceberg_conf(tmp_path_factory.mktemp("warehouse"))


@dataclass
class Orders(Table):
    """An Iceberg table with an id and a price, which is ten times the id."""

    def create(self, more: str = "", **properties: str) -> Orders:
        self.make("id INT NOT NULL, price INT", more, **properties)
        return self

    def add(self, *ids: int) -> None:
        """Append rows in one file."""
        values = ", ".join(f"({number}, {10 * number})" for number in ids)
        self.run(f"INSERT INTO {{table}} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")

    @property
    def ids(self) -> list[int]:
        """The ids of the snapshots, oldest first."""
        return [int(each["snapshot_id"]) for each in self.snapshots()]

    def compact(self) -> None:
        self.run("CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")

    def expire(self, keep: int = 1) -> None:
        older = "older_than => TIMESTAMP '2100-01-01 00:00:00'"
        self.run(f"CALL lake.system.expire_snapshots(table => '{{table}}', {older}, retain_last => {keep})")


@pytest.fixture
def orders(lake: Lake) -> Orders:
    """Name a table that is not there."""
    return Orders(lake.spark, f"lake.shop.t_{lake.root.parent.name.replace('-', '_')}_{lake.root.name}")


def read(job: BookmarkedJob, table: str, **how: Any) -> DataFrame:
    of_all = {name: how.pop(name) for name in ("on_schema_change", "on_source_change", "count_rows") if name in how}
    return job.read("orders", **of_all).iceberg(table, **how)


def run(lake: Lake, orders: Orders, *, job: Mapping[str, Any] | None = None, **how: Any) -> list[Any]:
    """Make one whole run; return the ids that it has read."""
    with lake.job(**(job or {})) as running:
        return sorted(row["id"] for row in read(running, orders.name, **how).collect())


def changes(lake: Lake, orders: Orders) -> list[tuple[Any, ...]]:
    """Make one whole run over the changes; return id, price and change of each row, in order."""
    with lake.job() as running:
        rows = read(running, orders.name, changes=True).orderBy("_change_ordinal", "id", "price").collect()
    return [(row["id"], row["price"], row["_change_type"]) for row in rows]


def skipped(lake: Lake) -> Mapping[str, int]:
    return next(iter(lake.store.runs("copy", reverse=True))).plans["orders"].stats["skipped"]  # type: ignore[no-any-return]


# ---- appends


@pytest.mark.often
def test_second_run_reads_exactly_what_was_appended_since(lake: Lake, orders: Orders) -> None:
    orders.create().add(1, 2)
    assert [run(lake, orders), run(lake, orders)] == [[1, 2], []]
    orders.add(3)
    orders.compact()
    orders.add(4, 5)
    assert [run(lake, orders), run(lake, orders)] == [[3, 4, 5], []]
    last = orders.snapshots()[-1]["committed_at"].astimezone(UTC)
    assert lake.head().contexts["orders"].watermark == last.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert examine(lake.store) == []


def test_frame_reads_the_same_rows_in_each_action_though_the_table_goes_on(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    for more in (2, 3):
        with lake.job() as job:
            frame = read(job, orders.name, on_change="ignore")
            before = [tuple(row) for row in frame.collect()]
            orders.add(more)
            orders.run("UPDATE {table} SET price = 0")
            assert [tuple(row) for row in frame.collect()] == before
    assert before == [(2, 20)]


def test_table_without_rows_and_run_without_news_have_its_columns(lake: Lake, orders: Orders) -> None:
    orders.create()
    assert run(lake, orders) == []
    orders.add(1)
    assert run(lake, orders) == [1]
    with lake.job() as job:
        assert read(job, orders.name).columns == ["id", "price"]


# ---- changes of rows


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("UPDATE {table} SET price = 1 WHERE id = 1", "overwrite"),
        pytest.param("DELETE FROM {table} WHERE id = 1", "overwrite", marks=pytest.mark.thorough),
        pytest.param("DELETE FROM {table}", "delete", marks=pytest.mark.thorough),
        pytest.param("INSERT OVERWRITE {table} VALUES (9, 90)", "overwrite", marks=pytest.mark.thorough),
    ],
)
def test_change_of_rows_stops_the_run_which_names_snapshot_and_operation(
    lake: Lake, orders: Orders, statement: str, operation: str
) -> None:
    orders.create().add(1, 2)
    run(lake, orders)
    orders.run(statement)
    orders.add(3)
    with pytest.raises(RowsChangedError, match=rf"snapshot {orders.ids[1]} \({operation}\).* changed rows \(.* file"):
        run(lake, orders)
    assert run(lake, orders, on_change="ignore") == [3]
    assert set(skipped(lake)) <= {"rewritten", "removed"}
    assert skipped(lake)


def test_delete_of_no_row_and_maintenance_are_no_news(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    run(lake, orders)
    orders.run("DELETE FROM {table} WHERE id = 77")
    orders.run("ALTER TABLE {table} ADD COLUMN note STRING")
    orders.run("CALL lake.system.rewrite_manifests('{table}')")
    orders.compact()
    with lake.job() as job:
        assert read(job, orders.name).collect() == []
    assert job.summary is not None
    assert skipped(lake) == {}


def test_changed_table_is_read_anew_where_that_is_asked_for(lake: Lake, orders: Orders) -> None:
    orders.create().add(1, 2)
    run(lake, orders)
    orders.run("DELETE FROM {table} WHERE id = 1")
    orders.add(3)
    assert [run(lake, orders, on_change="reload"), run(lake, orders, on_change="reload")] == [[2, 3], []]


def test_rollback_below_the_position_is_said_and_never_skipped(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    orders.add(2)
    run(lake, orders)
    first, second = orders.ids
    orders.run(f"CALL lake.system.rollback_to_snapshot('{{table}}', {first})")
    said = rf"rollback to snapshot {first} \(below the position {second}: rows that were read are gone\)"
    with pytest.raises(RowsChangedError, match=said):
        run(lake, orders)
    orders.add(3)
    with pytest.raises(RowsChangedError, match=said):
        run(lake, orders)
    assert run(lake, orders, on_change="ignore") == [3]
    assert run(lake, orders) == []


# ---- what went


def test_expired_snapshots_are_an_error_that_says_what_to_do(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    run(lake, orders)
    orders.add(2)
    orders.expire()
    assert run(lake, orders) == [2]  # the position itself may go
    orders.add(3)
    orders.add(4)
    orders.expire()
    with pytest.raises(VersionGoneError, match=r"have expired\. .*Reset the context.*on_change='reload'.*tag"):
        run(lake, orders)
    assert run(lake, orders, on_change="reload") == [1, 2, 3, 4]


def test_table_that_was_dropped_and_made_again_is_another_source(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    run(lake, orders)
    orders.run("DROP TABLE {table}")
    with pytest.raises(SourceMissingError, match="no Iceberg table"):
        run(lake, orders)
    orders.create().add(2)
    with pytest.raises(SourceSwitchedError, match="dropped and made again"):
        run(lake, orders)
    assert run(lake, orders, on_source_change="reset") == [2]


# ---- the changes


def test_changes_have_inserts_updates_and_deletes_with_both_values(lake: Lake, orders: Orders) -> None:
    orders.create().run("ALTER TABLE {table} SET IDENTIFIER FIELDS id")
    orders.add(1, 2)
    assert changes(lake, orders) == [(1, 10, "INSERT"), (2, 20, "INSERT")]
    orders.run("UPDATE {table} SET price = 11 WHERE id = 1")
    orders.run("DELETE FROM {table} WHERE id = 2")
    orders.add(3)
    with lake.job() as job:
        frame = read(job, orders.name, changes=True)
        rows = sorted((row["id"], row["price"], row["_change_type"]) for row in frame.collect())
        deletes: DataFrame = frame.deletes  # type: ignore[assignment]  # it is no column here
        gone = [row["id"] for row in deletes.collect()]
    assert rows == [(1, 10, "UPDATE_BEFORE"), (1, 11, "UPDATE_AFTER"), (2, 20, "DELETE"), (3, 30, "INSERT")]
    assert sorted(gone) == [1, 2]  # a row as it was before an update as well
    assert changes(lake, orders) == []


def test_changes_that_iceberg_can_not_tell_are_refused(lake: Lake, orders: Orders) -> None:
    orders.create(**{"write.delete.mode": "merge-on-read"}).add(1, 2)
    changes(lake, orders)
    orders.run("DELETE FROM {table} WHERE id = 1")
    with pytest.raises(SourceError, match=r"merge-on-read.*'write.delete.mode' = 'copy-on-write'"):
        changes(lake, orders)
    with pytest.raises(OptionError, match="on_change='ignore' with changes=True"), lake.job() as job:
        read(job, orders.name, changes=True, on_change="ignore")


# ---- bounds, positions, retries


@pytest.mark.parametrize("bound", ["max_versions", pytest.param("max_files", marks=pytest.mark.thorough)])
def test_bound_ends_a_run_between_snapshots(lake: Lake, orders: Orders, bound: str) -> None:
    orders.create().add(1)
    run(lake, orders)
    for number in (2, 3, 4):
        orders.add(number)
    how: dict[str, Any] = {bound: 2}
    assert [run(lake, orders, **how) for _ in range(3)] == [[2, 3], [4], []]


def test_rewind_and_start_name_runs_and_times(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    run(lake, orders)
    orders.add(2)
    between = datetime.now(UTC)
    orders.add(3)
    assert run(lake, orders) == [2, 3]
    rewind(lake.store, "copy", to_run=1, reason="a test", who="me", force=True)
    assert run(lake, orders) == [2, 3]
    reset(lake.store, "copy", reason="a test", who="me", force=True)
    assert run(lake, orders) == [1, 2, 3]
    with lake.job("later", start=between) as job:
        assert [row["id"] for row in read(job, orders.name).collect()] == [3]
    assert next(iter(lake.store.runs("later"))).plans["orders"].stats["skipped"]["before_start"] == 2


def test_set_and_pending_look_by_pyiceberg(lake: Lake, orders: Orders) -> None:
    pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")
    orders.create().add(1)
    orders.add(2)
    between = datetime.now(UTC)
    orders.add(3)
    run(lake, orders)
    for value, ids in ((str(orders.ids[1]), [3]), (between.isoformat(), [3]), ("now", [])):
        set_position(lake.store, "copy", "orders", value, reason="a test", who="me")
        assert (pending(lake.store, "copy").contexts[0].files, run(lake, orders)) == (len(ids), ids)
    with pytest.raises(OptionError, match="no such snapshot"):
        set_position(lake.store, "copy", "orders", "77", reason="a test", who="me")
    with pytest.raises(OptionError, match="neither 'now' nor the id of a snapshot"):
        set_position(lake.store, "copy", "orders", "soon", reason="a test", who="me")


@pytest.mark.often
def test_retry_after_a_kill_and_a_replay_read_what_was_planned(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)

    def copy(store: Any = None, **given: Any) -> list[int]:
        with BookmarkedJob(lake.spark, "copy", store=store or lake.store, **given) as job:
            job.write(read(job, orders.name), "out").parquet(lake.path("copy"))
        return sorted(row["id"] for row in lake.spark.read.parquet(lake.path("copy")).collect())

    assert copy() == [1]
    orders.add(2)
    with pytest.raises(SimulatedCrash):
        copy(DriverStore(lake.store, Failpoint.STAGED, lambda entry: None))
    orders.add(3)
    assert copy() == [1, 2, 3]
    orders.compact()
    orders.add(4)
    assert [copy(replay=number) for number in (1, 2)] == [[1, 2, 3], [1, 2, 3]]
    orders.expire()
    with pytest.raises(SourceChangedError, match="has expired since run 1 read it"):
        copy(replay=1)


@pytest.mark.thorough
def test_pause_over_runs_reads_what_they_have_read(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    for number in (2, 3):
        run(lake, orders)
        orders.add(number)
    run(lake, orders)
    with lake.job(option="pause", from_run=1, to_run=3) as job:
        assert sorted(row["id"] for row in read(job, orders.name).collect()) == [2, 3]


def test_new_column_is_taken_and_one_that_went_stops_the_run(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    run(lake, orders)
    orders.run("ALTER TABLE {table} ADD COLUMN note STRING")
    orders.run("INSERT INTO {table} VALUES (2, 20, 'new')")
    assert run(lake, orders) == [2]
    orders.run("ALTER TABLE {table} DROP COLUMN price")
    orders.run("INSERT INTO {table} VALUES (3, 'x')")
    with pytest.raises(SchemaChangedError, match="price"):
        run(lake, orders)


def test_options_that_mean_nothing_here_are_refused(lake: Lake, orders: Orders) -> None:
    orders.create().add(1)
    with lake.job() as job:
        wrong: list[tuple[Any, dict[str, Any], str]] = [
            (job.read("a").schema("id INT"), {}, "schema: an Iceberg table has its own"),
            (job.read("a").option("x", "y"), {}, "option"),
            (job.read("a"), {"on_change": "skip"}, "on_change"),
            (job.read("a"), {"max_versions": 0}, "max_versions"),
            (job.read("a").files(max_files=1), {}, "an Iceberg table has options of its own"),
        ]
        for reader, how, said in wrong:
            with pytest.raises(OptionError, match=said):
                reader.iceberg(orders.name, **how)
        with pytest.raises(OptionError, match=r"read an Iceberg table by \.iceberg"):
            job.read("a").format("iceberg")
        with pytest.raises(OptionError, match="knows no Iceberg catalog"):
            job.read("a").iceberg("nowhere.shop.orders")
        with pytest.raises(OptionError, match=re.escape("is no name of a table")):
            job.read("a").iceberg("/lake/orders")


# ---- value by value of a partition column


def by_region(orders: Orders, *rows: tuple[int, str | None]) -> None:
    """Append rows to a table by region."""
    frame = orders.spark.createDataFrame(rows, "id INT, region STRING").coalesce(1)
    frame.writeTo(orders.name).append()


@pytest.fixture
def regions(orders: Orders) -> Orders:
    """Make a table by region."""
    orders.make("id INT, region STRING", "PARTITIONED BY (region)")
    return orders


def copied(lake: Lake, table: Table, *failing: str | None, on_change: str = "error", **job: Any) -> list[list[int]]:
    """Read a table region by region: see `copied_by_region`."""
    how = {"per": "region", "on_change": on_change}
    return copied_by_region(lake, lambda part: read(part, table.name, **how), *failing, **job)


def test_each_value_of_a_partition_column_is_a_run_with_its_own_commit(lake: Lake, regions: Orders) -> None:
    by_region(regions, (1, "eu"), (2, "us"), (3, None), (4, "eu"))
    assert copied(lake, regions) == [[1, 4], [2], [3]]
    assert (in_copy(lake), lake.head().run_number) == ([1, 2, 3, 4], 3)
    assert copied(lake, regions) == []
    by_region(regions, (5, "us"))
    regions.compact()
    by_region(regions, (6, "us"), (7, "it's `odd`"), (8, ""))
    assert copied(lake, regions) == [[8], [7], [5, 6]]
    assert in_copy(lake) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_value_of_a_partition_column_that_fails_is_read_alone_by_its_retry(lake: Lake, regions: Orders) -> None:
    by_region(regions, (1, "eu"), (2, "us"))
    with pytest.raises(PartitionsFailedError, match=r"1 partition failed.*region='eu': ValueError"):
        copied(lake, regions, "eu", run_id="one", attempt=1)
    by_region(regions, (3, "us"))
    if find_spec("pyiceberg") is not None:
        (waiting,) = pending(lake.store, "copy").contexts
        assert waiting.files == 2
    assert copied(lake, regions, run_id="one", attempt=2) == [[1]]
    assert copied(lake, regions, run_id="two") == [[3]]
    assert in_copy(lake) == [1, 2, 3]


@pytest.mark.thorough
def test_killed_loop_over_a_table_goes_on_and_is_rewound_and_replayed_by_value(lake: Lake, regions: Orders) -> None:
    by_region(regions, (1, "eu"), (2, "us"))
    with pytest.raises(KeyboardInterrupt):
        copied(lake, regions, crash="us", run_id="one", attempt=1)
    by_region(regions, (3, "eu"))
    assert copied(lake, regions, run_id="one", attempt=2) == [[2]]
    assert copied(lake, regions, run_id="two") == [[3]]
    assert copied(lake, regions, replay=2) == [[2]]
    assert in_copy(lake) == [1, 2, 3]
    rewind(lake.store, "copy", 1, reason="a test", who="ada", clean=True)
    assert copied(lake, regions, run_id="again") == [[3], [2]]
    assert in_copy(lake) == [1, 2, 3]
    assert examine(lake.store) == []


@pytest.mark.thorough
def test_values_that_failed_before_a_rollback_are_read_from_where_the_table_went_on(
    lake: Lake, regions: Orders
) -> None:
    by_region(regions, (1, "eu"), (2, "us"))
    copied(lake, regions)
    by_region(regions, (3, "eu"), (4, "us"))
    copied(lake, regions)
    by_region(regions, (5, "eu"), (6, "us"))
    with pytest.raises(PartitionsFailedError):
        copied(lake, regions, "eu", run_id="one")
    regions.run(f"CALL lake.system.rollback_to_snapshot('{regions.name.removeprefix('lake.')}', {regions.ids[0]})")
    by_region(regions, (7, "eu"))
    with pytest.raises(RowsChangedError, match="a rollback to snapshot"):
        copied(lake, regions, run_id="two")
    assert copied(lake, regions, run_id="three", on_change="ignore") == [[7]]
    assert copied(lake, regions, run_id="four") == []


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("INT", ("9", "10")),
        ("DATE", ("2026-01-31", "2026-02-01")),
        ("BOOLEAN", ("false", "true")),
        ("DECIMAL(5,2)", ("1.50", "20.00")),
    ],
)
def test_values_of_other_types_are_told_apart(lake: Lake, orders: Orders, type: str, values: tuple[str, str]) -> None:
    orders.make(f"id INT, `the p` {type}", "PARTITIONED BY (`the p`)")
    for number, value in enumerate(values):
        orders.run(f"INSERT INTO {{table}} VALUES ({number}, CAST('{value}' AS {type}))")
    if find_spec("pyiceberg") is not None:
        detail = IcebergSession(lake.spark).detail(orders.name)
        told = PyIcebergTable(orders.name, detail.location if detail else "").parts("the p", WholeTable(orders.ids[-1]))
        assert set(told) == set(values)
    seen: list[list[str]] = []
    for part in lake.job().partitions("orders"):
        with part:
            rows = read(part, orders.name, per="the p").selectExpr("CAST(`the p` AS STRING) AS p").collect()
            seen += [[row["p"] for row in rows]] if rows else []
    assert seen == [[value] for value in sorted(values)]


def test_column_by_which_a_table_is_not_partitioned_is_refused(lake: Lake, orders: Orders) -> None:
    orders.make("id INT, seen TIMESTAMP, price DOUBLE", "PARTITIONED BY (days(seen), price)")
    part = next(iter(lake.job().partitions("orders"))).begin()
    for column, words in (("id", "partitioned by days(seen), price: name one"), ("price", "has the type double")):
        with pytest.raises(OptionError, match=re.escape(words)):
            read(part, orders.name, per=column)
    with pytest.raises(OptionError, match=r"an Iceberg table in job.partitions.*\.iceberg\(\.\.\., per="):
        read(part, orders.name)
    part.abort("refused")
