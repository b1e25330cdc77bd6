"""Promises on Delta tables as outputs (TABLE-2, SINK-5, SINK-11, RUN-8, RUN-9), with Spark and the real Delta Lake.

`test_delta_sink.py` runs them in a process of its own: the jars of Delta have to be there when Spark starts.
"""

from __future__ import annotations

import itertools
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    CleanRefusedError,
    ExpectationError,
    FencedError,
    MisuseError,
    OptionError,
    PartlyLandedError,
    SinkUnknownError,
    SourceError,
    StoreUnavailableError,
)
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE, RunIdentity
from airflow_bookmarks.core.option import Settlement
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.changes.settle import settle
from airflow_bookmarks.lifecycle.inspect.lineage import lineage
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.sinks.delta.log_tail import LogTail
from airflow_bookmarks.sinks.delta.sink import DeltaSink
from airflow_bookmarks.sinks.delta.target import DeltaOutput, DeltaTarget
from airflow_bookmarks.sinks.delta.token import DeltaToken, application_of
from airflow_bookmarks.sinks.sink import StoredOutput
from airflow_bookmarks.sinks.staging import Mode, StagingRequest
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import cores_of
from airflow_bookmarks.spark.sinks.delta_session import SessionTables, append, options_of
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import DriverTable, SimulatedCrash
from airflow_bookmarks.testing.sink_conformance import JOB, CommittingSinkConformance
from tests.spark.drivers import Drivers, dies_at
from tests.spark.following import follow
from tests.spark.lake import Lake, OpenSession
from tests.spark.statements import statements_of
from tests.thorough import mostly_thorough
from tools.jars import fetch_for_spark

pytestmark = pytest.mark.spark

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Put Delta's jars beside Spark's own, as `--packages` does."""
    jars = sorted(map(str, fetch_for_spark("delta").glob("*.jar")))
    return {**DELTA_CONF, "spark.driver.extraClassPath": ":".join(jars)}


@dataclass
class Table:
    """A Delta table, as somebody sees it who has nothing to do with the job."""

    spark: SparkSession
    path: str

    @property
    def sql(self) -> str:
        return f"delta.`{self.path}`"

    def run(self, statement: str) -> None:
        self.spark.sql(statement.format(table=self.sql))

    def frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)

    def lines(self) -> list[str]:
        return sorted(str(row["value"]) for row in self.frame().collect())

    def history(self) -> list[tuple[str, str | None]]:
        """Return operation and run of each version, oldest first."""
        rows = self.spark.sql(f"DESCRIBE HISTORY {self.sql}").select("version", "operation", "userMetadata").collect()
        tokens = [(row[1], DeltaToken.parse(row[2] or "")) for row in sorted(rows, key=lambda row: int(row[0]))]
        return [(operation, None if token is None else token.run) for operation, token in tokens]

    def put(self, *lines: str) -> None:
        """Append rows as another writer does."""
        self.spark.createDataFrame([(line,) for line in lines], "value STRING").write.format("delta").mode(
            "append"
        ).save(self.path)


@pytest.fixture
def table(lake: Lake) -> Table:
    """Name a table that is not there."""
    return Table(lake.spark, lake.path("orders"))


def write(job: BookmarkedJob, lake: Lake, mode: str = "append", **options: Any) -> None:
    job.write(lake.read(job), "out").mode(mode).delta(lake.path("orders"), **options)


def run(lake: Lake, mode: str = "append", given: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    with lake.job(**(given or {})) as job:
        write(job, lake, mode, **options)
    assert job.summary is not None
    return job.summary


# ---- what lands


@pytest.mark.often
def test_each_row_is_appended_once_by_two_runs(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a", "b")
    run(lake)
    lake.put("b.txt", "c")
    run(lake)
    assert table.lines() == ["a", "b", "c"]
    assert lake.head().published == 2


@pytest.mark.thorough  # of Delta itself
def test_spark_leaves_the_number_of_files_beside_each_version(lake: Lake, table: Table) -> None:
    for name in ("a", "b"):
        lake.put(f"{name}.txt", name)
        run(lake)
    assert [LogTail(table.path).files(version) for version in (0, 1, 2)] == [0, 1, 2]


def test_append_asks_spark_for_the_table_once_and_for_no_history(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.txt", "a")
    run(lake)
    lake.put("b.txt", "b")
    asked = statements_of(lake, monkeypatch, lambda: run(lake))
    assert asked == ["DESCRIBE TABLE EXTENDED"]
    assert table.lines() == ["a", "b"]


@pytest.mark.thorough
def test_history_is_asked_where_the_files_of_the_log_do_not_tell(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.txt", "a")
    run(lake)
    lake.put("b.txt", "b")
    monkeypatch.setattr(LogTail, "newest", lambda tail: None)
    monkeypatch.setattr(LogTail, "commit", lambda tail, token, after: None)
    asked = statements_of(lake, monkeypatch, lambda: run(lake))
    assert asked[2:] == ["DESCRIBE HISTORY", "DESCRIBE HISTORY"]
    assert table.lines() == ["a", "b"]
    assert lake.head().published == 2


@pytest.mark.parametrize(
    ("given", "files", "most"),
    [
        pytest.param(None, None, None, marks=pytest.mark.thorough),
        pytest.param(None, 10_000, 1, marks=pytest.mark.thorough),
        (None, 10_001, 2),
        pytest.param("7", 1, 7, marks=pytest.mark.thorough),
    ],
)
def test_partitions_of_the_state_of_a_table_are_few_for_a_write_and_then_as_before(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch, given: str | None, files: int | None, most: int | None
) -> None:
    monkeypatch.setattr(LogTail, "files", lambda tail, version: files)
    name = "spark.databricks.delta.snapshotPartitions"
    before = lake.spark.conf.get(name, None)
    (lake.spark.conf.unset(name) if given is None else lake.spark.conf.set(name, given))
    seen: list[str | None] = []

    def seen_append(*args: Any) -> None:
        seen.append(lake.spark.conf.get(name, None))
        append(*args)

    monkeypatch.setattr("airflow_bookmarks.spark.sinks.delta.append", seen_append)
    lake.put("a.txt", "a")
    try:
        run(lake)
        assert lake.spark.conf.get(name, None) == given
    finally:
        lake.spark.conf.unset(name) if before is None else lake.spark.conf.set(name, before)
    limits = [each for each in (most, None if given else cores_of(lake.spark)) if each is not None]
    assert seen == [str(min(limits)) if limits else None]
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_path_may_have_any_name(lake: Lake) -> None:
    table = Table(lake.spark, lake.path("my orders", "day=1%20 `new`"))
    for name in ("a", "b"):
        lake.put(f"{name}.txt", name)
        with lake.job() as job:
            job.write(lake.read(job), "out").delta(table.path)
    assert table.lines() == ["a", "b"]


def test_commit_that_is_tried_again_lands_nothing_again(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.txt", "a")
    job = lake.job().begin()
    write(job, lake)
    with monkeypatch.context() as patched:
        patched.setattr(lake.store, "commit", _unavailable)
        with pytest.raises(StoreUnavailableError):
            job.commit()
    job.commit()
    assert table.lines() == ["a"]
    assert lake.head().published == 1


def _unavailable(*_: object) -> None:
    raise StoreUnavailableError("the store did not answer, because the test asked for it")


def test_rows_land_when_the_block_ends_and_not_before(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        write(job, lake)
        assert table.lines() == []
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_block_that_fails_after_the_write_lands_nothing(lake: Lake, table: Table) -> None:
    def fails(job: BookmarkedJob, how: Callable[[BookmarkedJob], object]) -> None:
        with job:
            write(job, lake)
            how(job)

    lake.put("a.txt", "a")
    with pytest.raises(ZeroDivisionError):
        fails(lake.job(), lambda job: 1 / 0)
    with pytest.raises(ExpectationError):
        fails(lake.job(), lambda job: job.expect(False, "never"))
    assert table.lines() == []
    run(lake)
    assert table.lines() == ["a"]


def test_record_of_a_run_tells_versions_rows_and_files(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a", "b")
    run(lake)
    table.put("foreign")
    lake.put("b.txt", "c")
    summary = run(lake)
    (last,) = [each for each in lake.store.runs("copy") if each.key.number == 2]
    stats = last.outputs["out"].stats
    assert (stats["version_before"], stats["rows"], stats["files"]) == (2, 1, 1)
    assert (stats["version_after"], stats["format"], stats["mode"]) == (3, "delta", "append")
    assert stats["bytes"] > 0
    assert summary["outputs"]["out"]["rows"] == 1
    assert table.history()[-1] == ("WRITE", f"run {last.key}")


def test_run_without_new_input_writes_no_version(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    for mode in ("append", "overwrite"):
        summary = run(lake, mode)
        assert summary["is_empty"]
    assert len(table.history()) == 2
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_run_without_new_input_writes_what_it_is_asked_to(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    with lake.job() as job:
        job.write(lake.read(job), "out", when_empty="publish").mode("overwrite").delta(table.path)
    assert table.lines() == []


def test_overwrite_replaces_the_table_and_keeps_its_partitions(lake: Lake, table: Table) -> None:
    for name, letters in (("a", "ab"), ("b", "c")):
        lake.put(f"{name}.txt", *letters)
        with lake.job() as job:
            frame = lake.read(job).withColumn("p", F.lit(name))
            job.write(frame, "out").mode("overwrite").partitionBy("p").format("delta").save(table.path)
    assert table.lines() == ["c"]
    detail = SessionTables(lake.spark).detail(DeltaTarget(table.path, is_path=True))
    assert detail is not None
    assert detail.partitions == ("p",)


def _by_first_letter(lake: Lake, job: BookmarkedJob) -> DataFrame:
    return lake.read(job).withColumn("p", F.substring("value", 1, 1))


@pytest.mark.parametrize("by", ["path", pytest.param("name", marks=pytest.mark.thorough)])
def test_dynamic_overwrite_replaces_the_partitions_that_have_rows(lake: Lake, table: Table, by: str) -> None:
    target = table.path
    if by == "name":
        table.run(f"CREATE OR REPLACE TABLE dynamic_{by} (value STRING, p STRING) USING delta PARTITIONED BY (p)")
        target = f"dynamic_{by}"
    for lines in (("a1", "b1"), ("b2",)):
        lake.put(f"{lines[0]}.txt", *lines)
        with lake.job() as job:
            writer = job.write(_by_first_letter(lake, job), "out").mode("overwrite").partitionBy("p")
            writer.option("partitionOverwriteMode", "dynamic").delta(target)
    found = table.frame() if by == "path" else lake.spark.table(target)
    assert sorted(row["value"] for row in found.collect()) == ["a1", "b2"]


@pytest.mark.parametrize("by", ["path", "name"])
def test_static_overwrite_replaces_all_rows_though_the_session_says_dynamic(lake: Lake, table: Table, by: str) -> None:
    target = table.path if by == "path" else "static_by_name"
    lake.put("a.txt", "a1", "b1")
    with lake.job() as job:
        job.write(_by_first_letter(lake, job), "out").partitionBy("p").delta(target)
    lake.put("b.txt", "b2")
    lake.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        with lake.job() as job:
            writer = job.write(_by_first_letter(lake, job), "out").mode("overwrite")
            writer.option("partitionOverwriteMode", "static").delta(target)
    finally:
        lake.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    found = table.frame() if by == "path" else lake.spark.table(target)
    assert [row["value"] for row in found.collect()] == ["b2"]


@pytest.mark.parametrize("by", ["path", pytest.param("name", marks=pytest.mark.thorough)])
def test_replace_where_replaces_the_rows_of_its_condition(lake: Lake, table: Table, by: str) -> None:
    target = table.path if by == "path" else "replaced_where"
    lake.put("a.txt", "a1", "b1")
    with lake.job() as job:
        job.write(_by_first_letter(lake, job), "out").delta(target)
    lake.put("b.txt", "b2")
    with lake.job() as job:
        job.write(_by_first_letter(lake, job), "out").mode("overwrite").delta(target, replaceWhere="p = 'b'")
    found = table.frame() if by == "path" else lake.spark.table(target)
    assert sorted(row["value"] for row in found.collect()) == ["a1", "b2"]


def test_table_by_its_name_is_appended_and_overwritten(lake: Lake) -> None:
    for mode, letter in (("append", "a"), ("append", "b"), ("overwrite", "c")):
        lake.put(f"{letter}.txt", letter)
        with lake.job() as job:
            writer = job.write(lake.read(job), "out").format("delta").mode(mode)
            writer.saveAsTable("by_name")
    assert [row["value"] for row in lake.spark.table("by_name").collect()] == ["c"]
    (last, *_) = [each for each in lake.store.runs("copy") if each.key.number == 3]
    assert last.outputs["out"].target == "spark_catalog.default.by_name"
    found = lineage(lake.store, "copy", 3)
    assert found is not None
    assert [written.location.rpartition("/")[2] for written in found.writes] == ["by_name"]


@pytest.mark.thorough
def test_new_columns_are_taken_where_the_script_says_so(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    lake.put("b.txt", "b")
    with pytest.raises(OptionError, match=r"has no column 'n'.*mergeSchema"), lake.job() as job:
        job.write(lake.read(job).withColumn("n", F.lit(1)), "out").delta(table.path)
    assert table.lines() == ["a"]
    with lake.job() as job:
        job.write(lake.read(job).withColumn("n", F.lit(1)), "out").delta(table.path, mergeSchema=True)
    assert table.lines() == ["a", "b"]
    lake.put("c.txt", "c")
    with lake.job() as job:
        job.write(lake.read(job), "out").mode("overwrite").delta(table.path, overwriteSchema=True)
    assert (table.lines(), table.frame().columns) == (["c"], ["value"])


def test_what_others_do_to_the_table_in_between_changes_nothing(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    table.put("foreign")
    table.run("OPTIMIZE {table}")
    lake.put("b.txt", "b")
    run(lake)
    assert table.lines() == ["a", "b", "foreign"]
    table.run("DELETE FROM {table}")
    lake.put("c.txt", "c")
    run(lake)
    assert table.lines() == ["c"]


@pytest.mark.thorough
def test_files_are_staged_first_whatever_the_order_of_the_script(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        lines = lake.read(job)
        job.write(lines, "out").delta(table.path)
        job.write(lines, "files").text(lake.path("copy"))
        assert (table.lines(), lake.visible()) == ([], [])
    assert (table.lines(), len(lake.visible())) == (["a"], 1)


@pytest.mark.parametrize("is_upsert", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["append", "upsert"])
@pytest.mark.needs("observations")
def test_what_is_written_at_the_end_counts_as_used(lake: Lake, table: Table, is_upsert: bool) -> None:
    lake.put("a.txt", "a", "b")
    with lake.job(on_unused="error") as job:
        writer = job.write(lake.read(job, count_rows=True), "out")
        (writer.upsert("value") if is_upsert else writer).delta(table.path)
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["rows"] == 2
    assert table.lines() == ["a", "b"]


@pytest.mark.thorough
@pytest.mark.needs("observations")
def test_input_that_nothing_uses_keeps_rows_from_landing(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    job = lake.job(on_unused="error").begin()
    lake.read(job)
    job.write(lake.spark.createDataFrame([("x",)], "value STRING"), "out").delta(table.path)
    with pytest.raises(MisuseError, match="no action of this script has read"):
        job.commit()
    job.abort("not used")
    assert table.lines() == []


# ---- upserts


def people(lake: Lake, *rows: tuple[int, str, int | None]) -> DataFrame:
    return lake.spark.createDataFrame(list(rows), "id INT, name STRING, version INT").repartition(2)


def people_in(table: Table) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, table.frame().collect()))


@pytest.mark.needs("own sessions")
@pytest.mark.often
def test_upsert_replaces_rows_of_a_key_by_the_greatest_and_deletes(lake: Lake, table: Table) -> None:
    people(lake, (1, "old", 0), (3, "other", 0), (4, "gone", 0)).write.format("delta").save(table.path)
    rows = people(lake, (1, "a", 1), (1, "c", 3), (1, "b", None), (2, "d", 1), (5, "e", 4), (6, "f", 1))
    gone = people(lake, (4, "", 1), (5, "", 4), (6, "", 2), (7, "", 1))
    with lake.job() as job:
        job.write(rows, "dim").upsert("id", order_by="version", deletes=gone).delta(table.path)
    assert people_in(table) == [(1, "c", 3), (2, "d", 1), (3, "other", 0), (5, "e", 4)]
    stats = next(iter(lake.store.runs("copy"))).outputs["dim"].stats
    assert (stats["rows"], stats["removed_keys"], stats["upsert_keys"]) == (3, 1, ["id"])


@pytest.mark.thorough
@pytest.mark.needs("own sessions")
def test_upsert_leaves_the_conf_of_the_session_alone(lake: Lake, table: Table) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1)), "dim").upsert("id").delta(table.path)
    names = [f"spark.databricks.delta.{name}" for name in ("write.txnAppId", "commitInfo.userMetadata")]
    assert [lake.spark.conf.get(name, None) for name in names] == [None, None]
    assert lake.spark.catalog.listTables("global_temp") == []


@pytest.mark.parametrize("rows", [[(9, "", 1)], []])
@pytest.mark.thorough
@pytest.mark.needs("own sessions")
def test_upsert_that_changes_nothing_is_committed(
    lake: Lake, table: Table, rows: list[tuple[int, str, int | None]]
) -> None:
    people(lake, (1, "a", 1)).write.format("delta").save(table.path)
    with lake.job() as job:
        writer = job.write(people(lake), "dim").upsert("id", deletes=people(lake, *rows))
        writer.delta(table.path)
    assert people_in(table) == [(1, "a", 1)]
    assert lake.head().published == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, "a", 1), (1, "b", 2)], "more than once"),
        pytest.param([(None, "a", 1)], "is NULL", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.needs("own sessions")
def test_upsert_without_certain_keys_is_refused(
    lake: Lake, table: Table, rows: list[tuple[Any, str, int]], said: str
) -> None:
    frame = lake.spark.createDataFrame(rows, "id INT, name STRING, version INT")
    job = lake.job().begin()
    job.write(frame, "dim").upsert("id").delta(table.path)
    with pytest.raises(OptionError, match=said):
        job.commit()
    job.abort("refused")
    assert people_in(table) == []


@pytest.mark.thorough
@pytest.mark.needs("own sessions")
def test_upsert_by_a_driver_that_was_overtaken_changes_nothing(lake: Lake, table: Table) -> None:
    places: list[Failpoint] = []

    def upsert(attempt: int, name: str, at: Callable[[Failpoint], None]) -> None:
        with runs_in(lambda _: RunEnvironment(at=at)), lake.job(run_id="task", attempt=attempt) as job:
            job.write(people(lake, (1, name, 1)), "dim").upsert("id").delta(table.path)

    def overtaken(point: Failpoint) -> None:
        if point is Failpoint.PLACED:
            places.append(point)
            upsert(2, "newer", lambda _: None)

    with pytest.raises(FencedError, match="took no row"):
        upsert(1, "older", overtaken)
    assert (places, people_in(table)) == ([Failpoint.PLACED], [(1, "newer", 1)])


@pytest.mark.needs("own sessions")
def test_upsert_whose_driver_died_after_it_is_taken_over(lake: Lake, table: Table) -> None:
    for attempt, at in ((1, dies_at(Failpoint.STAGED)), (2, lambda _: None)):
        driver = DriverTable(lake.store.table)
        store = BookmarkStore(driver, lake.store.namespace)
        lake.put("a.txt", "a")

        def hook(point: Failpoint, at: Callable[[Failpoint], None] = at, driver: DriverTable = driver) -> None:
            try:
                at(point)
            except SimulatedCrash:
                driver.is_dead = True
                raise

        with (
            suppress(SimulatedCrash),
            runs_in(lambda _, hook=hook: RunEnvironment(at=hook)),  # type: ignore[misc]
            BookmarkedJob(lake.spark, "copy", store=store, run_id="task", attempt=attempt) as job,
        ):
            job.write(lake.read(job), "dim").upsert("value").delta(table.path)
    assert table.lines() == ["a"]
    assert [operation for operation, told in table.history() if told == "run 1.1"] == ["MERGE"]
    assert lake.head().published == 2


# ---- two tables in one run


def to_both(job: BookmarkedJob, lines: DataFrame, lake: Lake) -> None:
    job.write(lines, "out").delta(lake.path("orders"))
    job.write(lines, "region").upsert("value").delta(lake.path("region"))


def drivers_of_both(lake: Lake) -> Drivers:
    return Drivers(lake, lambda job, lines: to_both(job, lines, lake), {"on_partial": "ask"})


@pytest.mark.needs("observations")
@pytest.mark.parametrize("option", mostly_thorough(["enable", "disable"]))
def test_run_that_may_ask_writes_two_tables_each_once(lake: Lake, table: Table, option: str) -> None:
    lake.put("a.txt", "a")
    with lake.job(on_partial="ask", option=option, on_unused="error") as job:
        job.write(lake.read(job), "region").delta(lake.path("region"))
        job.write(lake.spark.createDataFrame([("x",)], "value STRING"), "out").delta(table.path)
    assert (table.lines(), Table(lake.spark, lake.path("region")).lines()) == (["x"], ["a"])


@pytest.mark.needs("own sessions")
@pytest.mark.thorough
def test_row_that_the_second_table_refuses_lands_in_neither(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a", "a")
    with pytest.raises(OptionError, match="come more than once"), lake.job(on_partial="ask") as job:
        to_both(job, lake.read(job), lake)
    assert table.lines() == []
    lake.put("a.txt", "b")
    with lake.job(on_partial="ask") as job:
        to_both(job, lake.read(job), lake)
    assert (table.lines(), Table(lake.spark, lake.path("region")).lines()) == (["b"], ["b"])


@pytest.mark.needs("own sessions")
@pytest.mark.thorough  # test_run_without_new_input_writes_no_version has one
def test_nothing_new_is_written_to_neither_of_two_tables(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    for _ in range(2):
        with lake.job(on_partial="ask") as job:
            to_both(job, lake.read(job), lake)
    assert [len(Table(lake.spark, lake.path(name)).history()) for name in ("orders", "region")] == [2, 2]


@pytest.mark.needs("own sessions")
@pytest.mark.parametrize(
    ("settled_as", "in_first", "in_second"),
    [
        ("committed", ["a", "b"], ["b"]),
        pytest.param("given-up", ["a", "a", "b"], ["a", "b"], marks=pytest.mark.thorough),
    ],
)
def test_driver_that_died_between_two_tables_is_settled_by_a_person(
    lake: Lake, table: Table, settled_as: Settlement, in_first: list[str], in_second: list[str]
) -> None:
    drivers = drivers_of_both(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))  # files are staged first, then the first table is written
    lake.put("b.txt", "b")
    with pytest.raises(PartlyLandedError, match=r"its rows are in output 'out' .*, and not in output 'region'"):
        drivers.attempt(2)
    assert drivers.files() == []
    settle(lake.store, "copy", 1, settled_as, reason="a test", who="me")
    drivers.attempt(3)
    drivers.attempt(1, run_id="next")
    assert (table.lines(), Table(lake.spark, lake.path("region")).lines()) == (in_first, in_second)
    assert drivers.files() == ["a", "b"]


@pytest.mark.needs("own sessions")
@pytest.mark.thorough
@pytest.mark.parametrize(("point", "nth"), [(Failpoint.PLACED, 2), (Failpoint.STAGED, 3), (Failpoint.COMMITTED, 1)])
def test_driver_that_died_beside_both_tables_needs_nobody(lake: Lake, table: Table, point: Failpoint, nth: int) -> None:
    drivers = drivers_of_both(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(point, nth))
    drivers.attempt(2)
    assert (table.lines(), Table(lake.spark, lake.path("region")).lines(), drivers.files()) == (["a"], ["a"], ["a"])


@pytest.mark.thorough
def test_second_table_that_lacks_a_column_is_refused_before_the_first_is_written(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    lake.spark.createDataFrame([], "value STRING").write.format("delta").save(lake.path("region"))
    wide = lake.spark.createDataFrame([("x", 1)], "value STRING, more INT")
    job = lake.job(on_partial="ask").begin()
    job.write(lake.read(job), "out").delta(table.path)
    job.write(wide, "region").delta(lake.path("region"))
    with pytest.raises(OptionError, match="has no column 'more'"):
        job.commit()
    job.abort("refused")
    assert table.lines() == []


def test_run_whose_second_table_refuses_its_rows_says_that_the_first_has_landed(
    lake: Lake, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    lake.put("a.txt", "a")
    lake.spark.createDataFrame([], "value INT").write.format("delta").save(lake.path("region"))
    rows = lake.spark.createDataFrame([("x",)], "value STRING")
    job = lake.job(on_partial="ask").begin()
    job.write(lake.read(job), "out").delta(table.path)
    job.write(rows, "region").delta(lake.path("region"))
    with pytest.raises(PySparkException):
        job.commit()
    job.abort("refused")
    assert "output 'region' has not landed, and 'out' has: the next run of the job stops" in caplog.text
    with pytest.raises(PartlyLandedError, match="run 1 ended between its tables"):
        lake.job().begin()


# ---- what is refused


@pytest.mark.needs("own sessions")
@pytest.mark.parametrize(
    ("in_frame", "in_table", "is_taken"),
    [
        ("STRING", "INT", False),
        pytest.param("DOUBLE", "INT", False, marks=pytest.mark.thorough),
        pytest.param("BIGINT", "INT", False, marks=pytest.mark.thorough),
        ("INT", "BIGINT", True),
        pytest.param("DECIMAL(9, 2)", "DECIMAL(12, 3)", True, marks=pytest.mark.thorough),
        pytest.param("DECIMAL(12, 3)", "DECIMAL(12, 2)", False, marks=pytest.mark.thorough),
    ],
)
def test_key_of_another_type_than_that_of_the_table_is_refused(
    lake: Lake, table: Table, in_frame: str, in_table: str, is_taken: bool
) -> None:
    table.run(f"CREATE TABLE {{table}} (id {in_table}, v STRING) USING delta")
    rows = lake.spark.sql(f"SELECT CAST('1' AS {in_frame}) AS id, 'x' AS v")
    job = lake.job().begin()
    if not is_taken:
        with pytest.raises(OptionError, match=r"two keys of the frame could be one of the table.*\.cast\("):
            job.write(rows, "out").upsert("id").delta(table.path)
        job.abort("refused")
        return
    job.write(rows, "out").upsert("id").delta(table.path)
    job.commit()
    assert [row["v"] for row in table.frame().collect()] == ["x"]


@pytest.mark.needs("own sessions")
@pytest.mark.thorough
def test_key_that_the_table_has_not_is_refused(lake: Lake, table: Table) -> None:
    table.run("CREATE TABLE {table} (v STRING) USING delta")
    job = lake.job().begin()
    with pytest.raises(OptionError, match="has no such column"):
        job.write(lake.spark.sql("SELECT 1 AS id, 'x' AS v"), "out").upsert("id").delta(table.path)
    job.abort("refused")


@pytest.mark.needs("own sessions")
@pytest.mark.thorough
def test_update_of_a_key_takes_the_old_row_along(lake: Lake, table: Table) -> None:
    source = Table(lake.spark, lake.path("source"))
    source.run("CREATE TABLE {table} (id INT, v STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    source.run("INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    for change in ("UPDATE {table} SET v = 'c' WHERE id = 2", "UPDATE {table} SET id = 5 WHERE id = 1", None):
        with lake.job() as job:
            feed = job.read("source").delta(source.path, changes=True)
            new = feed.where("_change_type IN ('insert', 'update_postimage')")
            asked = job.write(new.drop("_change_type", "_commit_timestamp"), "out")
            asked.upsert("id", order_by="_commit_version", deletes=cast("Any", feed).deletes).delta(table.path)
        if change is not None:
            source.run(change)
    assert sorted((row["id"], row["v"]) for row in table.frame().collect()) == [(2, "c"), (5, "a")]


@pytest.mark.needs("own sessions")
@pytest.mark.thorough
def test_key_with_a_dot_in_its_name_is_merged_by_it(lake: Lake, table: Table) -> None:
    for value in ("x", "y"):
        with lake.job() as job:
            job.write(lake.spark.sql(f"SELECT 1 AS `i.d`, '{value}' AS v"), "out").upsert("i.d").delta(table.path)
    assert [row["v"] for row in table.frame().collect()] == ["y"]


def test_second_output_that_commits_by_itself_is_refused_before_anything_lands(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    job = lake.job().begin()
    write(job, lake)
    with pytest.raises(MisuseError, match="commits by itself"):
        job.write(lake.spark.range(1), "more").delta(lake.path("more"))
    with pytest.raises(MisuseError, match="output 'more' was not written"):
        job.commit()
    job.abort("refused")
    assert table.lines() == []


@pytest.mark.thorough
def test_table_that_forgets_who_wrote_is_refused(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    table.put()
    table.run("ALTER TABLE {table} SET TBLPROPERTIES ('delta.setTransactionRetentionDuration' = 'interval 7 days')")
    with pytest.raises(OptionError, match="UNSET TBLPROPERTIES"):
        run(lake)
    table.run("ALTER TABLE {table} UNSET TBLPROPERTIES ('delta.setTransactionRetentionDuration')")
    run(lake)
    assert table.lines() == ["a"]


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("append", {"txnAppId": "mine"}, "the job sets it"),
        pytest.param("append", {"userMetadata": "mine"}, "the job sets it", marks=pytest.mark.thorough),
        ("append", {"replaceWhere": "value = 'a'"}, "no effect in mode 'append'"),
        ("overwrite", {"replaceWhere": "value = 'a'", "partitionOverwriteMode": "dynamic"}, "say two things"),
        pytest.param(
            "append", {"partitionOverwriteMode": "dynamic"}, "no effect in mode 'append'", marks=pytest.mark.thorough
        ),
        pytest.param("append", {"partitionBy": "value"}, "is partitioned by", marks=pytest.mark.thorough),
    ],
)
def test_option_that_cannot_be_used_is_refused(
    lake: Lake, table: Table, mode: str, options: Mapping[str, Any], said: str
) -> None:
    table.put("there")
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=f"(?i){said}"):
        run(lake, mode, **options)
    assert table.lines() == ["there"]


def test_what_is_no_delta_table_is_refused(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.spark.sql("CREATE TABLE IF NOT EXISTS of_parquet (value STRING) USING parquet")
    lake.spark.sql("CREATE OR REPLACE TEMP VIEW a_view AS SELECT 1")
    for name in ("of_parquet", "a_view"):
        with pytest.raises(OptionError, match="Nothing was written or committed"), lake.job() as job:
            job.write(lake.read(job), "out").delta(name)


def test_options_of_a_delta_table_are_refused_for_files(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match="one of a Delta table"), lake.job() as job:
        job.write(lake.read(job), "out").mode("overwrite").option("replaceWhere", "1 = 1").text(lake.path("copy"))


def test_replay_and_clean_are_refused_with_the_reason(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    with pytest.raises(ChangeRefusedError, match="can't take rows back"):
        run(lake, given={"replay": 1})
    with pytest.raises(CleanRefusedError, match="Delta table"):
        reset(lake.store, "copy", reason="a test", who="me", clean=True)
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_preview_names_the_tables_that_would_hold_rows_twice(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    for name, mode in (("appends", "append"), ("replaces", "overwrite")):
        with lake.job(name) as job:
            job.write(lake.read(job), "out").mode(mode).delta(f"{table.path}-{name}")
    twice = [preview(lake.store, name, Change("reset", None)) for name in ("appends", "replaces")]
    assert [list(each.as_dict()["written_twice"]) for each in twice] == [[f"{table.path}-appends"], []]


# ---- read by the next job


def test_next_job_reads_exactly_what_each_run_has_written(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a", "b")
    run(lake)
    table.put("foreign")
    assert follow(lake) == ["a", "b"]
    assert follow(lake) == []
    for name, line in (("b.txt", "c"), ("c.txt", "d")):
        lake.put(name, line)
        run(lake)
    table.run("DELETE FROM {table} WHERE value = 'c'")
    table.run("OPTIMIZE {table}")
    assert follow(lake) == ["c", "d"]  # what the runs wrote, whatever became of it in the table
    assert follow(lake) == []


def test_next_job_reads_of_an_overwrite_what_it_brought_and_not_what_it_replaced(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    lake.put("b.txt", "b")
    run(lake, "overwrite")
    assert follow(lake) == ["b"]


@pytest.mark.thorough
def test_next_job_reads_partitions_new_columns_and_odd_values(lake: Lake, table: Table) -> None:
    for number, value in enumerate(("x/y", "50% & more", "")):
        lake.put(f"{number}.txt", f"line {number}")
        with lake.job() as job:
            frame = lake.read(job).withColumn("p", F.lit(value)).withColumn(f"more_{number}", F.lit(number))
            job.write(frame, "out").partitionBy("p").delta(table.path, mergeSchema="true")
    with lake.job("after") as job:
        frame = job.read("copied").upstream("copy")
        found = sorted((row["value"], row["p"], row["more_0"], row["more_2"]) for row in frame.collect())
    assert found == [("line 0", "x/y", 0, None), ("line 1", "50% & more", None, None), ("line 2", None, None, 2)]


@pytest.mark.thorough
def test_next_job_that_died_reads_the_same_again(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    with suppress(SimulatedCrash), runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.STAGED))):
        follow(lake, run_id="task")
    assert lake.head("after").version == 0
    lake.put("b.txt", "b")
    run(lake)
    table.run("OPTIMIZE {table}")
    follow(lake, run_id="task", attempt=2)
    follow(lake)
    kept = [Path(lake.path("after"), name).read_text().split() for name in lake.visible("after")]
    assert sorted(itertools.chain(*kept)) == ["a", "b"]


@pytest.mark.thorough
def test_table_of_an_upstream_may_have_a_name(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out").format("delta").saveAsTable("read_by_the_next")
    assert follow(lake) == ["a"]


def test_what_is_new_for_the_next_job_is_known_without_spark(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    follow(lake)
    lake.put("b.txt", "b")
    run(lake)
    (found,) = pending(lake.store, "after").contexts
    assert found.files == 1


def _made_anew(table: Table) -> None:
    shutil.rmtree(table.path)
    table.put("foreign")
    table.put("foreign")


def _log_removed(table: Table) -> None:
    for _ in range(2):
        table.put("more")
    for version in (0, 1):
        Path(table.path, "_delta_log", f"{version:020}.json").unlink()


def _vacuumed(table: Table) -> None:
    for path in Path(table.path).glob("*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            _made_anew,
            "another writer has made now: the table was made anew",
            marks=pytest.mark.thorough,
        ),
        (_log_removed, "version 1 .* is no longer in its log"),
        pytest.param(_vacuumed, "that upstream 'copy' published are gone", marks=pytest.mark.thorough),
    ],
)
def test_next_job_is_told_where_what_a_run_wrote_is_gone(
    lake: Lake, table: Table, change: Callable[[Table], None], words: str
) -> None:
    lake.put("a.txt", "a")
    run(lake)
    change(table)
    with pytest.raises(SourceError, match=f"{words}.*Nothing was read or changed"):
        follow(lake)


@pytest.mark.needs("own sessions")
def test_next_job_is_told_to_read_the_changes_of_an_upsert(lake: Lake, table: Table) -> None:
    with lake.job() as job:
        job.write(people(lake, (1, "a", 1)), "out").upsert("id").delta(table.path)
    with pytest.raises(SourceError, match=r"wrote to the Delta table .* by key.*changes=True"):
        follow(lake)


@pytest.mark.thorough
def test_next_job_does_not_say_how_a_table_is_read(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    job = lake.job("after").begin()
    with pytest.raises(OptionError, match=r"schema: the table .* to which upstream 'copy' wrote has its own"):
        job.read("copied").schema("value STRING").upstream("copy")
    job.abort("refused")


# ---- pause and disable


@pytest.mark.parametrize("option", ["pause", pytest.param("disable", marks=pytest.mark.thorough)])
def test_detached_run_appends_under_a_token_of_its_own(lake: Lake, table: Table, option: str) -> None:
    lake.put("a.txt", "a")
    run(lake)
    lake.put("b.txt", "b")
    before = lake.state()
    with lake.job(option=option) as job:
        job.write(lake.read(job), "out").delta(table.path)
    assert lake.state() == before
    assert str(table.history()[-1][1]).startswith("pause or disable run")
    run(lake)
    assert table.lines() == sorted(["a", "b", "b", *(["a"] if option == "disable" else [])])


@pytest.mark.thorough
def test_detached_run_overwrites_only_what_it_is_asked_to(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake)
    with pytest.raises(OptionError, match="overwrite_published=True"), lake.job(option="disable") as job:
        job.write(lake.spark.createDataFrame([("x",)], "value STRING"), "out").mode("overwrite").delta(table.path)
    assert table.lines() == ["a"]
    with lake.job(option="disable") as job:
        frame = lake.spark.createDataFrame([("x",)], "value STRING")
        job.write(frame, "out", overwrite_published=True).mode("overwrite").delta(table.path)
    assert table.lines() == ["x"]


# ---- recovery


def drivers_of(lake: Lake) -> Drivers:
    return Drivers(lake, lambda job, lines: job.write(lines, "out").delta(lake.path("orders")))


# The second place is that of the table, since files are staged first; and so is what is staged second.
DEATHS = [
    pytest.param(point, nth, id=f"{point}-{nth}", marks=[] if nth == 2 else pytest.mark.thorough)
    for point, nth in [
        (Failpoint.PLANNED, 1),
        (Failpoint.PLACED, 1),
        (Failpoint.STAGED, 1),
        (Failpoint.PLACED, 2),
        (Failpoint.STAGED, 2),
        (Failpoint.BEFORE_COMMIT, 1),
        (Failpoint.COMMITTED, 1),
        (Failpoint.PUBLISHING, 1),
        (Failpoint.MOVED, 1),
        (Failpoint.PUBLISHED, 1),
        (Failpoint.MARKED, 1),
        (Failpoint.SWEPT, 1),
    ]
]


@pytest.mark.parametrize(("point", "nth"), DEATHS)
@pytest.mark.often
def test_driver_that_died_anywhere_leaves_each_row_once(lake: Lake, table: Table, point: Failpoint, nth: int) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a", "b")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(point, nth))
    lake.put("b.txt", "c")
    drivers.attempt(2)
    assert (table.lines(), drivers.files()) == (["a", "b", "c"], ["a", "b", "c"])
    head = lake.head()
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
    assert lake.store.open_runs("copy", head) == []
    assert lake.staged("copy") == []


@pytest.mark.thorough
def test_run_that_is_taken_over_is_recorded_with_what_landed(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a", "b")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))
    drivers.attempt(2)
    runs = {each.state: each for each in lake.store.runs("copy") if each.key.number == 1}
    stats = runs[RunState.PUBLISHED].outputs["out"].stats
    assert (stats["version_before"], stats["version_after"], stats["rows"]) == (0, 1, 2)
    assert table.lines() == ["a", "b"]


@pytest.mark.thorough
def test_heir_that_dies_between_burn_and_look_leaves_each_row_once(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))
    burn = SessionTables.burn

    def burn_and_die(tables: SessionTables, target: DeltaTarget, token: DeltaToken) -> None:
        burn(tables, target, token)
        raise SimulatedCrash(Failpoint.TAKEN)

    monkeypatch.setattr(SessionTables, "burn", burn_and_die)
    with pytest.raises(SimulatedCrash):
        drivers.attempt(2)
    monkeypatch.setattr(SessionTables, "burn", burn)
    drivers.attempt(3)
    assert (table.lines(), drivers.files()) == (["a"], ["a"])


def test_driver_that_was_overtaken_before_its_write_lands_nothing(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    places: list[Failpoint] = []

    def overtaken(point: Failpoint) -> None:
        places.append(point)
        if point is Failpoint.PLACED and places.count(point) == 2:
            drivers.attempt(2)

    with pytest.raises(FencedError, match="took no row"):
        drivers.attempt(1, overtaken)
    assert (table.lines(), drivers.files()) == (["a"], ["a"])
    assert lake.head().run_number == 1


@pytest.mark.often
def test_driver_that_is_overtaken_while_it_writes_lands_nothing(lake: Lake, table: Table, tmp_path: Path) -> None:
    """Its write meets the burn, and Delta lets it fail."""
    lake.put("a.txt", "a")
    begun, goes_on = tmp_path / "begun", tmp_path / "goes_on"
    errors: list[BaseException] = []

    def slow(value: str) -> str:
        begun.touch()
        while not goes_on.exists():
            threading.Event().wait(0.05)
        return value

    def write_slowly() -> None:
        # A thread's error would end in pytest's warnings; the one that counts, that of the commit, is kept and judged.
        with suppress(BaseException), lake.job(run_id="task", attempt=1) as job:
            frame = lake.read(job).select(F.udf(slow, "string")("value").alias("value"))
            job.write(frame, "out").delta(table.path)
            try:
                job.commit()
            except BaseException as error:  # a simulated death is no Exception
                errors.append(error)
                raise

    zombie = threading.Thread(target=write_slowly)
    zombie.start()
    try:
        while not begun.exists() and zombie.is_alive():
            zombie.join(0.05)
        run(lake, given={"run_id": "task", "attempt": 2})
    finally:
        goes_on.touch()
        zombie.join()
    assert [type(error) for error in errors] == [FencedError]
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_foreign_commits_around_a_death_change_nothing(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))
    table.put("foreign")
    table.run("OPTIMIZE {table}")
    drivers.attempt(2)
    assert table.lines() == ["a", "foreign"]


@pytest.mark.thorough
def test_landed_rows_of_a_run_that_a_reset_undid_come_again_and_are_counted(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    drivers.attempt(1, run_id="first")
    lake.put("b.txt", "b")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))
    rewind(lake.store, "copy", 1, reason="a test", who="me", force=True)
    drivers.attempt(2)
    assert table.lines() == ["a", "b"]


def test_process_without_spark_leaves_such_a_run_open(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED, 2))
    with pytest.raises(SinkUnknownError, match="no Spark session"):
        ActiveRun.begin(lake.store, "copy", RunIdentity("task", 2), RunEnvironment())
    assert [each.state for each in lake.store.open_runs("copy", lake.head())] == [RunState.PLANNED]
    drivers.attempt(3)
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_open_run_whose_table_is_gone_is_refused_and_kept(lake: Lake, table: Table) -> None:
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.PLACED, 2))
    Path(table.path).rename(f"{table.path}-away")
    with pytest.raises(SourceError, match="not there any more"):
        drivers.attempt(2)
    assert [each.state for each in lake.store.open_runs("copy", lake.head())] == [RunState.PLANNED]
    Path(f"{table.path}-away").rename(table.path)
    drivers.attempt(3)
    assert table.lines() == ["a"]


def cut_history(table: Table, *, below: int) -> None:
    """Remove commits from the log of a table, as log retention does once a checkpoint has all that they tell."""
    log = Path(table.path) / "_delta_log"
    for version in range(below):
        (log / f"{version:020}.json").unlink()
        (log / f".{version:020}.json.crc").unlink(missing_ok=True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "has_landed", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["landed", "not_landed"]
)
def test_run_whose_history_was_cut_is_told_by_the_last_number(lake: Lake, table: Table, has_landed: bool) -> None:
    table.put()
    table.run("ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '5')")
    drivers = drivers_of(lake)
    lake.put("a.txt", "a")
    drivers.attempt(1, run_id="before")
    lake.put("b.txt", "b")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.STAGED if has_landed else Failpoint.PLACED, 2))
    for number in range(6):
        table.put(f"foreign {number}")
    cut_history(table, below=5)
    drivers.attempt(2)
    assert [line for line in table.lines() if "foreign" not in line] == ["a", "b"]
    assert lake.store.open_runs("copy", lake.head()) == []


@pytest.mark.thorough
@pytest.mark.needs("identity columns")
def test_burn_spares_columns_that_the_table_makes_itself(lake: Lake) -> None:
    name = "with_identity"
    lake.spark.sql(
        f"CREATE OR REPLACE TABLE {name} (value STRING NOT NULL, k BIGINT GENERATED ALWAYS AS IDENTITY) USING delta"
    )
    target, territory = DeltaTarget(name, is_path=False), Territory("test", "job")
    SessionTables(lake.spark).burn(target, DeltaToken.of_burn(territory, "out", 3))
    (newest, *_) = SessionTables(lake.spark).commits(target)
    assert newest.told == str(DeltaToken.of_burn(territory, "out", 3))


# ---- the guide

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "delta-writing.md"


@pytest.mark.needs("classic")  # a server has its address in the environment of a script
def test_scripts_of_the_guide_do_what_it_says(lake: Lake, tmp_path: Path) -> None:
    first, second = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    place = tmp_path / "guide"
    BookmarkStore(SqliteTable(tmp_path / "guide.db"), DEFAULT_NAMESPACE).init()
    raw = {"orders/a.csv": "1,10,2026-01-01\n", "people/a.json": '{"id": 1, "name": "Ada", "seen": 1, "gone": false}\n'}
    more = {"orders/b.csv": "2,20,2026-01-02\n", "people/b.json": '{"id": 1, "name": "Ada", "seen": 2, "gone": true}\n'}
    found = []
    for files in (raw, more):
        for name, text in files.items():
            path = place / "lake" / "raw" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for script in (first, second):
            moved = script.replace("/tmp/lake", str(place / "lake")).replace(
                "/tmp/bookmarks.db", f"{tmp_path}/guide.db"
            )
            exec(compile(moved, str(GUIDE), "exec"), {})  # noqa: S102 (the guide's own scripts)
        frames = [lake.spark.read.format("delta").load(str(place / "lake" / name)) for name in ("orders", "people")]
        found.append([sorted(row[0] for row in frame.select("id").collect()) for frame in frames])
    assert found == [[[1], [1]], [[1, 2], []]]


# ---- the conformance suite


class DeltaGround:
    """A table of one column, written as the driver's writer does."""

    def __init__(self, spark: SparkSession, path: Path, blobs: BlobStore) -> None:
        self._spark, self.blobs = spark, blobs
        self._target = DeltaTarget(str(path / "table"), is_path=True)
        self._frame([]).write.format("delta").save(self._target.name)
        self.tables = SessionTables(spark)
        self.sink = DeltaSink(self.tables)
        self.request = StagingRequest(
            DeltaSink.kind, self._target.name, stats=DeltaOutput(Mode.APPEND, 0).stats(self._target)
        )

    def _frame(self, rows: Sequence[str]) -> DataFrame:
        return self._spark.createDataFrame([(row,) for row in rows], "value STRING")

    def write(self, output: StoredOutput, fence: int, rows: Sequence[str]) -> bool:
        application = application_of(JOB, output.name)
        token = DeltaToken(application, 2 * fence, f"run {output.run.key.number}.{fence}")
        before = len(self.tables.commits(self._target))
        append(self._frame(rows), self._target, options_of(token))
        return len(self.tables.commits(self._target)) > before

    def visible(self) -> list[str]:
        return sorted(row["value"] for row in self._spark.read.format("delta").load(self._target.name).collect())


@pytest.mark.often
class TestDeltaConformance(CommittingSinkConformance):
    @pytest.fixture
    def ground(self, open_session: OpenSession, tmp_path: Path, store: BookmarkStore) -> DeltaGround:
        return DeltaGround(open_session(), tmp_path, store.blobs)
