"""Delta tables as a source: `test_delta_source.py` runs these in a process whose Spark has Delta."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.core.errors import (
    OptionError,
    PartitionsFailedError,
    SchemaChangedError,
    SourceError,
    SourceSwitchedError,
)
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.driver import DriverStore
from tests.spark.following import copied_by_region, in_copy
from tests.spark.lake import LISTING_KEY, Lake
from tests.thorough import mostly_thorough
from tools.jars import fetch_for_spark

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Start Spark with Delta."""
    return delta_conf()


def delta_conf() -> dict[str, str]:
    """Return what a Spark with Delta is started with."""
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(fetch_for_spark("delta").glob("*.jar"))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",  # Spark 3.5 writes no old times without
        LISTING_KEY: "2",  # VACUUM lists by as many tasks
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    }


@dataclass
class Orders:
    """A Delta table with an id and a price."""

    spark: SparkSession
    path: str

    def sql(self, statement: str) -> None:
        """Run a statement in which {t} is the table."""
        self.spark.sql(statement.format(t=f"delta.`{self.path}`"))

    def make(self, *properties: str, columns: str = "id BIGINT, price INT", more: str = "") -> Orders:
        of_table = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        self.sql(f"CREATE TABLE {{t}} ({columns}) USING DELTA {more} {of_table}")
        return self

    def add(self, *ids: int) -> None:
        """Append rows whose price is ten times their id."""
        rows = self.spark.createDataFrame([(number, 10 * number) for number in ids], "id BIGINT, price INT")
        rows.coalesce(1).write.format("delta").mode("append").save(self.path)

    def log(self, version: int) -> Path:
        return Path(self.path, "_delta_log", f"{version:020}.json")

    @property
    def version(self) -> int:
        return max(int(file.name[:20]) for file in Path(self.path, "_delta_log").glob("0*.json"))

    def clean_before(self, version: int) -> None:
        """Remove older commits, as the retention of the log does, behind a checkpoint."""
        for file in Path(self.path, "_delta_log").glob("0*.json"):
            if int(file.name[:20]) < version:
                file.unlink()


FEED = "'delta.enableChangeDataFeed' = 'true'"


@pytest.fixture
def orders(lake: Lake) -> Orders:
    return Orders(lake.spark, lake.path("orders"))


def read(job: BookmarkedJob, table: str, **how: Any) -> DataFrame:
    of_all = {name: how.pop(name) for name in ("on_schema_change", "on_source_change", "count_rows") if name in how}
    return job.read("orders", **of_all).delta(table, **how)


def run(lake: Lake, table: str | None = None, *, job: Mapping[str, Any] | None = None, **how: Any) -> list[Any]:
    """Make one whole run; return the ids that it has read."""
    with lake.job(**(job or {})) as running:
        return sorted(row["id"] for row in read(running, table or lake.path("orders"), **how).collect())


def changes(lake: Lake, **how: Any) -> list[tuple[Any, ...]]:
    """Make one whole run over the change feed; return id, price and change of each row, in order."""
    with lake.job() as running:
        frame = read(running, lake.path("orders"), changes=True, **how)
        rows = frame.orderBy("_commit_version", "id", "price").collect()
    return [(row["id"], row["price"], row["_change_type"]) for row in rows]


# ---- appends


@pytest.mark.often
def test_second_run_reads_exactly_what_was_appended_since(lake: Lake, orders: Orders) -> None:
    orders.make().add(1, 2)
    assert [run(lake), run(lake)] == [[1, 2], []]
    orders.add(3)
    orders.add(4, 5)
    assert [run(lake), run(lake)] == [[3, 4, 5], []]
    assert lake.head().contexts["orders"].watermark == "3"
    assert examine(lake.store) == []


@pytest.mark.thorough
def test_frame_reads_the_same_rows_in_each_action_though_the_table_goes_on(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    for step in (2, 4):
        with lake.job() as job:
            frame = read(job, orders.path)
            before = frame.count()
            orders.add(step, step + 1)
            orders.sql("UPDATE {t} SET price = 0") if step == 2 else None
            assert frame.count() == before
            rows = [row["price"] for row in frame.collect()]
        if step == 2:
            assert rows == [10]
            with lake.job() as job:
                read(job, orders.path, on_change="ignore").collect()
            orders.add(9)
        else:
            assert rows == [90]


def test_table_without_rows_and_run_without_news_have_its_columns(lake: Lake, orders: Orders) -> None:
    orders.make()
    for _ in range(2):
        with lake.job() as job:
            frame = read(job, orders.path)
            assert (frame.columns, frame.count()) == (["id", "price"], 0)
    orders.add(1)
    assert run(lake) == [1]


@pytest.mark.thorough
def test_only_the_planned_files_are_opened(lake: Lake, orders: Orders) -> None:
    """Each other file of the table is no Parquet any more: to open one would fail."""
    orders.make()
    for number in range(1, 6):
        orders.add(number)
    run(lake)
    old = set(Path(orders.path).glob("*.parquet"))
    orders.add(6)
    for file in old:
        file.write_bytes(b"x" * file.stat().st_size)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    assert run(lake) == [6]


@pytest.mark.thorough
def test_all_kinds_of_columns_are_read_as_delta_reads_them(lake: Lake) -> None:
    """Columns by name, one renamed, one added, one wider than when its rows were written; partitions of odd values."""
    orders = Orders(lake.spark, lake.path("a b%41")).make(
        "'delta.columnMapping.mode' = 'name'", "'delta.enableTypeWidening' = 'true'",
        columns="id BIGINT, part STRING, `odd name` STRING, n SMALLINT, at TIMESTAMP", more="PARTITIONED BY (part)",
    )  # fmt: skip
    orders.sql("INSERT INTO {t} VALUES (1, 'old', 'x', 1, TIMESTAMP '2013-01-31 00:00:00')")
    run(lake, orders.path)
    orders.sql("INSERT INTO {t} VALUES (2, 'a b/%41ü', 'two', 2, TIMESTAMP '1500-01-31 00:00:00.123456')")
    orders.sql("INSERT INTO {t} VALUES (3, NULL, NULL, NULL, NULL)")
    orders.sql("ALTER TABLE {t} RENAME COLUMN `odd name` TO label")
    orders.sql("ALTER TABLE {t} ALTER COLUMN n TYPE INT")
    orders.sql("ALTER TABLE {t} ADD COLUMN extra DOUBLE")
    orders.sql("INSERT INTO {t} VALUES (4, 'p', 'four', 1000000000, NULL, 0.5)")
    whole = {row["id"]: row for row in lake.spark.read.format("delta").load(orders.path).collect()}
    with lake.job() as job:
        frame = read(job, orders.path, on_schema_change="accept")
        assert {row["id"]: row for row in frame.collect()} == {id_: row for id_, row in whole.items() if id_ > 1}
        assert [row["id"] for row in frame.where("part = 'a b/%41ü'").collect()] == [2]
        assert [row["id"] for row in frame.where("part IS NULL").collect()] == [3]
        assert frame.schema == lake.spark.read.format("delta").load(orders.path).schema


FEATURES = {
    "times in commits": ["'delta.enableInCommitTimestamps' = 'true'"],
    "row ids": ["'delta.enableRowTracking' = 'true'"],
    "columns by id": ["'delta.columnMapping.mode' = 'id'"],
    "checkpoints with sidecars": ["'delta.checkpointPolicy' = 'v2'", "'delta.checkpointInterval' = '2'"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("feature", mostly_thorough(FEATURES, "checkpoints with sidecars"))
def test_table_with_a_feature_is_read_as_any(lake: Lake, orders: Orders, feature: str) -> None:
    orders.make(*FEATURES[feature]).add(1)
    assert run(lake) == [1]
    orders.add(2)
    orders.add(3)
    with lake.job() as job:
        frame = read(job, orders.path)
        assert (frame.count(), sorted(tuple(row) for row in frame.collect())) == (2, [(2, 20), (3, 30)])
    reset(lake.store, "copy", reason="anew", who="test")
    assert [run(lake, max_files=2), run(lake, max_files=2)] == [[1, 2], [3]]


@pytest.mark.thorough
def test_table_by_its_name_is_read_where_it_lies(lake: Lake) -> None:
    lake.spark.sql("CREATE DATABASE shop")
    try:
        lake.spark.sql("CREATE TABLE shop.`orders` USING DELTA AS SELECT 1L AS id")
        assert run(lake, "shop.`orders`") == [1]
        lake.spark.sql("INSERT INTO shop.`orders` VALUES (2)")
        assert "orders" in lake.head().contexts["orders"].fingerprint
        assert pending(lake.store, "copy").contexts[0].files == 1
        assert run(lake, "shop.`orders`") == [2]
        lake.spark.sql("CREATE TABLE shop.plain USING PARQUET AS SELECT 1L AS id")
        for name, why in (("shop.plain", "'parquet', and not of Delta"), ("shop.none", "knows no Delta table")):
            with pytest.raises(SourceError, match=why):
                run(lake, name)
    finally:
        lake.spark.sql("DROP DATABASE shop CASCADE")


def test_folder_that_is_no_delta_table_is_said_to_be_none(lake: Lake) -> None:
    lake.put("a.txt", "1")
    for path in ("raw", "nowhere"):
        with pytest.raises(SourceError, match="is no Delta table"):
            run(lake, lake.path(path))


# ---- rows that were changed


CHANGES = {
    "UPDATE": "UPDATE {t} SET price = 0 WHERE id = 1",
    "DELETE": "DELETE FROM {t} WHERE id = 1",
    "MERGE": "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = 0",
    "WRITE": "INSERT OVERWRITE {t} VALUES (1, 0)",
    "TRUNCATE": "TRUNCATE TABLE {t}",
}


@pytest.mark.parametrize("operation", mostly_thorough(CHANGES, "DELETE"))
def test_change_of_rows_stops_the_run_which_names_version_and_operation(
    lake: Lake, orders: Orders, operation: str
) -> None:
    orders.make().add(1, 2)
    run(lake)
    state = lake.state()
    orders.add(3)
    orders.sql(CHANGES[operation])
    with pytest.raises(RowsChangedError, match=rf"version 3 \({operation}\)"):
        run(lake)
    assert lake.state() == state
    assert run(lake, on_change="ignore") == [3]
    *_, last = lake.store.runs("copy")
    assert last.plans["orders"].stats["skipped"]["removed"] == (2 if operation in ("WRITE", "TRUNCATE") else 1)


@pytest.mark.thorough
def test_merge_that_inserts_only_is_an_append(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    orders.sql(
        "MERGE INTO {t} t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = 0 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert run(lake) == [2]


def test_changed_table_is_read_anew_where_that_is_asked_for(lake: Lake, orders: Orders) -> None:
    orders.make().add(1, 2)
    assert run(lake, on_change="reload") == [1, 2]
    orders.add(3)
    assert run(lake, on_change="reload") == [3]
    orders.sql("DELETE FROM {t} WHERE id = 1")
    orders.add(4)
    assert run(lake, on_change="reload") == [2, 3, 4]
    assert run(lake, on_change="reload") == []


@pytest.mark.thorough
@pytest.mark.parametrize("vectors", mostly_thorough(["false", "true"], "true"))
def test_what_was_appended_is_read_once_whatever_became_of_it_since(lake: Lake, orders: Orders, vectors: str) -> None:
    orders.make(f"'delta.enableDeletionVectors' = '{vectors}'").add(1, 2)
    run(lake)
    orders.add(3, 4)
    orders.sql("DELETE FROM {t} WHERE id = 3")
    assert run(lake, on_change="ignore") == [3, 4]  # 3 was appended, and then deleted


def test_restore_is_said_and_names_what_lies_below_the_position(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    orders.add(2)
    run(lake)
    orders.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    with pytest.raises(RowsChangedError, match=re.escape("version 3 (RESTORE to version 1, which lies below")):
        run(lake)
    assert run(lake, on_change="reload") == [1]


@pytest.mark.thorough
def test_restore_that_brings_rows_back_is_no_append(lake: Lake, orders: Orders) -> None:
    """It only adds files: as an append its rows would be read twice."""
    orders.make().add(1)
    run(lake)
    orders.sql("DELETE FROM {t}")
    orders.sql("RESTORE TABLE {t} TO VERSION AS OF 1")
    assert run(lake, on_change="ignore") == []
    actions = [json.loads(line) for line in orders.log(3).read_text().splitlines()]
    assert [name for action in actions for name in action if name in ("add", "remove")] == ["add"]


# ---- maintenance


def test_maintenance_is_no_news(lake: Lake, orders: Orders) -> None:
    orders.make("'delta.enableDeletionVectors' = 'true'").add(1, 2)
    orders.add(3)
    orders.sql("DELETE FROM {t} WHERE id = 2")
    run(lake)
    for statement in (
        "OPTIMIZE {t}", "OPTIMIZE {t} ZORDER BY (id)", "REORG TABLE {t} APPLY (PURGE)", "VACUUM {t} RETAIN 0 HOURS",
        "ALTER TABLE {t} SET TBLPROPERTIES ('note' = 'x')", "ALTER TABLE {t} ADD COLUMN more STRING",
    ):  # fmt: skip
        before = orders.version
        orders.sql(statement)
        assert orders.version > before or "ZORDER" in statement or "REORG" in statement, statement
        assert pending(lake.store, "copy").is_empty, statement
    assert run(lake, on_schema_change="accept") == []
    assert lake.head().contexts["orders"].watermark == str(orders.version)


@pytest.mark.thorough
def test_rows_that_were_compacted_since_are_read_from_their_own_files(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    orders.add(2)
    orders.add(3)
    orders.sql("OPTIMIZE {t}")
    assert run(lake) == [2, 3]


@pytest.mark.thorough
def test_vacuum_of_what_was_not_read_yet_is_an_error_that_says_what_to_do(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    orders.add(2)
    orders.sql("OPTIMIZE {t}")
    orders.sql("VACUUM {t} RETAIN 0 HOURS")
    with pytest.raises(VersionGoneError, match=r"removed by a VACUUM.*deletedFileRetentionDuration"):
        run(lake)
    orders.add(3)
    reset(lake.store, "copy", reason="vacuumed", who="test")
    assert run(lake) == [1, 2, 3]


@pytest.mark.thorough
def test_log_that_was_cleaned_past_the_position_is_an_error_that_says_what_to_do(lake: Lake, orders: Orders) -> None:
    orders.make("'delta.checkpointInterval' = '3'").add(1)
    run(lake)
    for number in range(2, 8):
        orders.add(number)
    orders.clean_before(6)
    with pytest.raises(VersionGoneError, match=r"version 2 .*logRetentionDuration"):
        run(lake)
    assert run(lake, on_change="reload") == [1, 2, 3, 4, 5, 6, 7]
    orders.add(8)
    assert run(lake) == [8]


@pytest.mark.thorough
def test_checkpoint_is_read_by_spark_where_pyarrow_is_missing(
    lake: Lake, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_bookmarks.spark.delta.context.arrow", lambda: None)
    orders.make("'delta.checkpointInterval' = '3'", "'delta.enableDeletionVectors' = 'true'").add(1, 2)
    orders.sql("DELETE FROM {t} WHERE id = 2")
    orders.add(3)
    orders.clean_before(3)
    assert run(lake, max_files=1) == [1]  # with its deletion vector, which lies beside the table
    assert run(lake, max_files=1) == [3]


# ---- another table


def test_table_that_was_dropped_and_made_again_is_another_source(lake: Lake, orders: Orders) -> None:
    orders.make().add(1, 2)
    run(lake)
    shutil.rmtree(orders.path)
    orders.make().add(3)
    with pytest.raises(SourceSwitchedError, match="reset"):
        run(lake)
    assert run(lake, on_source_change="reset") == [3]
    orders.add(4)
    assert run(lake) == [4]


@pytest.mark.thorough
def test_table_that_was_moved_goes_on_where_that_is_said(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    Path(orders.path).rename(lake.path("moved"))
    moved = Orders(lake.spark, lake.path("moved"))
    moved.add(2)
    with pytest.raises(SourceSwitchedError):
        run(lake, moved.path)
    assert run(lake, moved.path, on_source_change="keep") == [2]


# ---- changes


def test_change_feed_has_inserts_updates_and_deletes_with_both_values(lake: Lake, orders: Orders) -> None:
    orders.make(FEED).add(1, 2)
    assert changes(lake) == [(1, 10, "insert"), (2, 20, "insert")]
    orders.add(3)
    orders.sql("UPDATE {t} SET price = 11 WHERE id = 1")
    orders.sql("DELETE FROM {t} WHERE id = 2")
    orders.sql("OPTIMIZE {t}")
    assert changes(lake) == [
        (3, 30, "insert"), (1, 10, "update_preimage"), (1, 11, "update_postimage"), (2, 20, "delete")
    ]  # fmt: skip
    assert changes(lake) == []
    orders.sql("OPTIMIZE {t}")
    orders.sql("VACUUM {t}")
    assert changes(lake) == []


@pytest.mark.thorough
def test_change_feed_of_first_and_later_runs_has_the_same_columns(lake: Lake, orders: Orders) -> None:
    orders.make(FEED)
    schemas = []
    for number in (1, 2):
        orders.add(number)
        with lake.job() as job:
            frame = read(job, orders.path, changes=True)
            schemas.append([(each.name, each.dataType) for each in frame.schema])
            deletes: Any = frame.deletes
            assert (frame.count(), deletes.count()) == (1, 0)
            assert frame.select("_commit_version").collect()[0][0] == number
            time = frame.select("_commit_timestamp").collect()[0][0]
            assert abs(time.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds() < 3600
    with lake.job() as job:
        schemas.append([(each.name, each.dataType) for each in read(job, orders.path, changes=True).schema])
    assert schemas[1:] == [schemas[0]] * 2


def test_table_without_a_change_feed_is_refused_with_the_statement_that_turns_it_on(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    with pytest.raises(OptionError, match="enableChangeDataFeed = true") as refused:
        changes(lake)
    statement = re.search(r"ALTER TABLE .*?\)", str(refused.value))
    assert statement is not None
    lake.spark.sql(statement[0])
    assert changes(lake) == [(1, 10, "insert")]


# ---- bounds


@pytest.mark.thorough
def test_first_read_within_a_bound_takes_several_runs_over_one_version(lake: Lake, orders: Orders) -> None:
    orders.make("'delta.enableDeletionVectors' = 'true'").add(1, 2)
    orders.add(3)
    orders.add(4)
    orders.sql("DELETE FROM {t} WHERE id = 2")
    found = [run(lake, max_files=2)]
    orders.add(5)
    found += [run(lake, max_files=2) for _ in range(3)]
    assert sorted(found[0] + found[1]) == [1, 3, 4]
    assert found[2:] == [[5], []]


@pytest.mark.parametrize("bound", mostly_thorough(["max_versions", "max_files", "max_bytes"], "max_versions"))
def test_bound_ends_a_run_between_versions(lake: Lake, orders: Orders, bound: str) -> None:
    orders.make().add(1)
    run(lake)
    for number in (2, 3, 4):
        orders.add(number)
    orders.sql("OPTIMIZE {t}")
    how: dict[str, Any] = {bound: 1}
    assert [run(lake, **how) for _ in range(4)] == [[2], [3], [4], []]


@pytest.mark.thorough
def test_loop_drains_a_backlog(lake: Lake, orders: Orders) -> None:
    orders.make()
    for number in (1, 2, 3):
        orders.add(number)
    found = []
    for batch in BookmarkedJob(lake.spark, "copy", store=lake.store).batches(max_files=1):
        with batch as job:
            found += [row["id"] for row in read(job, orders.path).collect()]
    assert found == [1, 2, 3]


# ---- history


def test_rewind_set_and_start_name_versions_and_times(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    orders.add(2)
    assert run(lake, job={"start": "now"}) == []
    orders.add(3)
    assert run(lake) == [3]
    rewind(lake.store, "copy", 1, reason="again", who="test")
    assert run(lake) == [3]
    set_position(lake.store, "copy", "orders", "1", reason="a version", who="test")
    assert run(lake) == [2, 3]
    set_position(lake.store, "copy", "orders", "now", reason="now", who="test")
    assert run(lake) == []
    written = datetime.fromtimestamp(orders.log(3).stat().st_mtime_ns // 1_000_000 / 1000, UTC)
    set_position(lake.store, "copy", "orders", written.isoformat(), reason="a time", who="test")
    assert run(lake) == [3]
    with pytest.raises(OptionError, match="versions 0 to 3"):
        set_position(lake.store, "copy", "orders", "99", reason="too far", who="test")


@pytest.mark.often
def test_retry_after_a_kill_and_a_replay_read_what_was_planned(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    with lake.job() as job:
        job.write(read(job, orders.path), "out").parquet(lake.path("copy"))
    orders.add(2)
    driver = DriverStore(lake.store, Failpoint.STAGED, lambda entry: None)
    with pytest.raises(SimulatedCrash), BookmarkedJob(lake.spark, "copy", store=driver) as job:
        job.write(read(job, orders.path), "out").parquet(lake.path("copy"))
    orders.add(3)
    with lake.job() as job:
        job.write(read(job, orders.path), "out").parquet(lake.path("copy"))
    assert sorted(row["id"] for row in lake.spark.read.parquet(lake.path("copy")).collect()) == [1, 2, 3]
    orders.sql("OPTIMIZE {t}")
    orders.add(4)
    for number in (1, 2):
        with lake.job(replay=number) as job:
            job.write(read(job, orders.path), "out").parquet(lake.path("copy"))
        assert sorted(row["id"] for row in lake.spark.read.parquet(lake.path("copy")).collect()) == [1, 2, 3]


@pytest.mark.thorough
def test_pause_over_runs_reads_what_they_have_read(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    for number in (2, 3):
        orders.add(number)
        run(lake)
    orders.sql("OPTIMIZE {t}")
    pause = {"option": "pause"}
    assert run(lake, job={**pause, "from_run": "1", "to_run": "3"}) == [2, 3]
    assert run(lake, job={**pause, "from_run": "0", "to_run": "3"}) == [1, 2, 3]


@pytest.mark.needs("classic")
def test_action_on_few_new_files_computes_no_state_in_fifty_partitions(lake: Lake, orders: Orders) -> None:
    name = "spark.databricks.delta.snapshotPartitions"
    before = lake.spark.conf.get(name)
    orders.make().add(1)
    run(lake)
    orders.add(2)
    lake.spark.conf.unset(name)
    try:
        with lake.job() as job:
            frame = read(job, orders.path)
            assert lake.spark.conf.get(name, None) is None
            lake.spark.sparkContext.setJobGroup("first action", "of a frame over new files")
            assert frame.count() == 1
    finally:
        lake.spark.conf.set(name, str(before))
        lake.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # takes it away
    tracker = lake.spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("first action")]
    stages = [tracker.getStageInfo(stage) for each in jobs if each is not None for stage in each.stageIds]
    assert max(each.numTasks for each in stages if each is not None) <= 2


# ---- options


def test_new_column_is_taken_and_one_of_another_type_stops_the_run(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    run(lake)
    orders.sql("ALTER TABLE {t} ADD COLUMN more STRING")
    orders.sql("INSERT INTO {t} VALUES (2, 20, 'x')")
    with lake.job() as job:
        assert [tuple(row) for row in read(job, orders.path).collect()] == [(2, 20, "x")]
    lake.spark.sql("SELECT 3L AS id, 'text' AS price").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(orders.path)
    with pytest.raises(SchemaChangedError):
        run(lake, on_change="reload")


def test_options_that_mean_nothing_here_are_refused(lake: Lake, orders: Orders) -> None:
    orders.make().add(1)
    with lake.job() as job:
        wrong: list[tuple[Any, dict[str, Any]]] = [
            (job.read("a").schema("id BIGINT"), {}),
            (job.read("a").option("header", True), {}),
            (job.read("a").files(max_files=1), {}),
            (job.read("a"), {"on_change": "skip"}),
            (job.read("a"), {"changes": True, "on_change": "ignore"}),
            (job.read("a"), {"max_versions": 0}),
            (job.read("a"), {"max_versions": "many"}),
        ]
        for reader, how in wrong:
            with pytest.raises(OptionError):
                reader.delta(orders.path, **how)
        with pytest.raises(OptionError):
            job.read("b").delta("  ")


# ---- value by value of a partition column


def by_region(lake: Lake, *rows: tuple[int, str | None]) -> None:
    """Append rows to a table by region, and make it if need be."""
    frame = lake.spark.createDataFrame(rows, "id BIGINT, region STRING").coalesce(1)
    frame.write.format("delta").mode("append").partitionBy("region").save(lake.path("orders"))


def copied(lake: Lake, *failing: str | None, **job: Any) -> list[list[int]]:
    """Read the table region by region: see `copied_by_region`."""
    return copied_by_region(lake, lambda part: read(part, lake.path("orders"), per="region"), *failing, **job)


def test_each_value_of_a_partition_column_is_a_run_with_its_own_commit(lake: Lake) -> None:
    by_region(lake, (1, "eu"), (2, "us"), (3, None), (4, "eu"))
    assert copied(lake) == [[1, 4], [2], [3]]
    assert (in_copy(lake), lake.head().run_number) == ([1, 2, 3, 4], 3)
    assert copied(lake) == []
    by_region(lake, (5, "us"))
    by_region(lake, (6, "us"), (7, "a/b=c"))
    assert copied(lake) == [[7], [5, 6]]
    assert in_copy(lake) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.thorough
def test_value_of_a_partition_column_that_fails_is_read_alone_by_its_retry(lake: Lake) -> None:
    by_region(lake, (1, "eu"), (2, "us"))
    with pytest.raises(PartitionsFailedError, match=r"1 partition failed.*region='eu': ValueError"):
        copied(lake, "eu", run_id="one", attempt=1)
    by_region(lake, (3, "us"))
    (waiting,) = pending(lake.store, "copy").contexts
    assert waiting.files == 2
    assert copied(lake, run_id="one", attempt=2) == [[1]]
    assert copied(lake, run_id="two") == [[3]]
    assert in_copy(lake) == [1, 2, 3]


@pytest.mark.thorough
def test_killed_loop_over_a_table_goes_on_and_is_rewound_and_replayed_by_value(lake: Lake) -> None:
    by_region(lake, (1, "eu"), (2, "us"))
    with pytest.raises(KeyboardInterrupt):
        copied(lake, crash="us", run_id="one", attempt=1)
    by_region(lake, (3, "eu"))
    assert copied(lake, run_id="one", attempt=2) == [[2]]
    assert copied(lake, run_id="two") == [[3]]
    assert copied(lake, replay=2) == [[2]]
    assert in_copy(lake) == [1, 2, 3]
    rewind(lake.store, "copy", 1, reason="a test", who="ada", clean=True)
    assert copied(lake, run_id="again") == [[3], [2]]
    assert in_copy(lake) == [1, 2, 3]
    assert examine(lake.store) == []


def test_partition_column_is_read_in_a_loop_alone(lake: Lake) -> None:
    by_region(lake, (1, "eu"))
    with pytest.raises(OptionError, match=r"per='region' reads one part at a time"), lake.job() as job:
        read(job, lake.path("orders"), per="region")
    part = next(iter(lake.job().partitions("orders"))).begin()
    with pytest.raises(OptionError, match=r"a Delta table in job.partitions.*\.delta\(\.\.\., per="):
        read(part, lake.path("orders"))
    part.abort("refused")
