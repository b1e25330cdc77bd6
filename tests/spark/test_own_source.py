"""Promises of a kind of source of a user's own in Spark: it is read, replayed and refused as any other."""

# ruff: noqa: PT012 - what raises here is the end of a loop

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    OptionError,
    SchemaChangedError,
    SourceChangedError,
)
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.sources.registry import register, registered
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.bounded_keys import BoundedKeys
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, connected, make_table, put, remove
from tests.spark.lake import Lake, reader_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class KeyReader:
    """Makes a frame of the rows that a plan names."""

    def frame(self, spark: SparkSession, plan: KeyPlan, schema: StructType | None) -> DataFrame:
        query = "SELECT id, name FROM people WHERE id > ? AND id <= ? ORDER BY id"
        with connected(plan.database) as connection:
            rows = [] if plan.is_empty else connection.execute(query, [plan.after, plan.until]).fetchall()
        return spark.createDataFrame(rows, schema or "id BIGINT, name STRING")


class TakenKind(KeyKind):
    """Keys that are gone once they are read."""

    def why_not_again(self, plan: KeyPlan) -> str:
        return "what was taken from the queue is not there any more"


class Named(KeySource):
    """Keys with a name that is none."""

    def ref(self) -> Any:
        return self.database


@pytest.fixture
def known() -> Iterator[None]:
    """Make the kind known for a test."""
    with registered(KeyKind()):
        yield


@pytest.fixture
def table(lake: Lake) -> str:
    """Make a table with the keys 1 and 2."""
    database = lake.path("crm.db")
    make_table(database)
    put(database, 1, 2)
    return database


def copy_people(spark: SparkSession, database: str, target: str, **bookmark: Any) -> None:
    register(KeyKind())
    with BookmarkedJob(spark, **bookmark) as job:
        people = job.read("people", count_rows=True).source(KeySource(database), KeyReader())
        job.write(people, "copy").parquet(target)


def copy(lake: Lake, database: str, **how: Any) -> list[int]:
    """Make one whole run; return the keys that it adds to the target, or writes there again."""
    before = set(lake.visible())
    copy_people(lake.spark, database, lake.path("copy"), name="copy", store=lake.store, **how)
    new = sorted(set(lake.visible()) - before)
    return keys(lake.spark.read.schema("id BIGINT").parquet(*[lake.path("copy", name) for name in new])) if new else []


def keys(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def copied(lake: Lake) -> list[int]:
    return keys(lake.spark.read.parquet(lake.path("copy")))


@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
def test_each_row_is_read_once_and_counted(lake: Lake, table: str) -> None:
    first = copy(lake, table)
    put(table, 3)

    assert (first, copy(lake, table), copy(lake, table)) == ([1, 2], [3], [])
    assert copied(lake) == [1, 2, 3]
    run = lake.store.committed_run("copy", 1)
    assert run is not None
    assert run.metrics["contexts"]["people"]["rows"] == 2
    assert lake.head().contexts["people"].watermark == "3"


@pytest.mark.seldom
@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
def test_pause_over_runs_reads_their_plans(lake: Lake, table: str) -> None:
    copy(lake, table)
    put(table, 3)
    copy(lake, table)
    with lake.job(option="pause", from_run="0", to_run="1") as job:
        assert keys(job.read("people").source(KeySource(table), KeyReader())) == [1, 2]


@pytest.mark.seldom
@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
def test_replay_reads_the_stored_plan_and_replaces_what_its_run_published(lake: Lake, table: str) -> None:
    copy(lake, table)
    put(table, 3)
    copy(lake, table)
    put(table, 4)

    assert copy(lake, table, replay=1) == [1, 2]
    assert copied(lake) == [1, 2, 3]
    run = lake.store.committed_run("copy", 1)
    assert run is not None
    assert run.revision == 1
    assert copy(lake, table) == [4]


@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
def test_replay_of_rows_that_have_gone_is_refused(lake: Lake, table: str) -> None:
    copy(lake, table)
    remove(table, 1)
    with pytest.raises(SourceChangedError, match=r"some planned keys that run 1 read have changed or are gone"):
        copy(lake, table, replay=1)
    assert copied(lake) == [1, 2]


def test_replay_is_refused_by_the_kind_that_reads_once(lake: Lake, table: str) -> None:
    why = "run 1 can't be replayed: what was taken from the queue is not there"
    with registered(TakenKind()):
        with lake.job() as job:
            job.read("people").source(KeySource(table), KeyReader())
        with pytest.raises(ChangeRefusedError, match=why), lake.job(replay=1) as job:
            job.read("people").source(KeySource(table), KeyReader())
    assert lake.head().lease is None


@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
def test_row_that_goes_while_it_is_read_stops_the_commit(lake: Lake, table: str) -> None:
    job = lake.job().begin()
    job.read("people").source(KeySource(table), KeyReader())
    remove(table, 1)
    with pytest.raises(SourceChangedError, match="some planned keys changed or went while they were read"):
        job.commit()
    job.abort("its input has changed")
    assert copy(lake, table) == [2]


@pytest.mark.usefixtures("known")
def test_columns_are_held_to_those_of_the_run_before(lake: Lake, table: str) -> None:
    def read(schema: str, **how: Any) -> list[str]:
        with lake.job() as job:
            return job.read("people", **how).schema(schema).source(KeySource(table), KeyReader()).columns

    assert read("id BIGINT, name STRING") == ["id", "name"]
    put(table, 3)
    with pytest.raises(SchemaChangedError, match="name"):
        read("id BIGINT, nick STRING")
    assert read("id BIGINT, nick STRING", on_schema_change="accept") == ["id", "nick"]
    with lake.job() as job:  # nothing is new: the columns are those of the run before
        assert job.read("people").source(KeySource(table), KeyReader()).columns == ["id", "nick"]


@pytest.mark.needs("observations")
@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_files", 3),
        ("on_missing", "skip"),
        ("on_corrupt", "quarantine"),
        ("on_published", "delete"),
        ("moved_from", "/raw"),
        ("read_by", "paths"),
    ],
)
def test_option_of_files_is_refused_by_name(lake: Lake, table: str, option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"{option}: an option of files; a source of your own"), lake.job() as job:
        reader_of(job, "people", **{option: value}).source(KeySource(table), KeyReader())


@pytest.mark.usefixtures("known")
@pytest.mark.needs("observations")
def test_watermark_of_a_column_is_refused_where_the_kind_has_its_own(lake: Lake, table: str) -> None:
    with pytest.raises(OptionError, match="watermark_column: no option of kind 'sqlite_keys'"), lake.job() as job:
        job.read("people", watermark_column="id").source(KeySource(table), KeyReader())


@pytest.mark.seldom
@pytest.mark.usefixtures("known")
def test_loop_drains_a_source_that_takes_its_bound(lake: Lake, table: str) -> None:
    put(table, 3, 4, 5)
    read = []
    for batch in lake.job().batches(max_rows=2):
        with batch:
            read.append(keys(batch.read("people").source(BoundedKeys(table), KeyReader())))

    assert read == [[1, 2], [3, 4], [5]]
    runs = {run.key.number: run.plans["people"].stats for run in lake.store.runs("copy")}
    assert [runs[number]["skipped"] for number in (1, 2, 3)] == [{"over_bound": 3}, {"over_bound": 1}, {}]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("source", "bound", "says"),
    [
        (KeySource, {"max_rows": 2}, r"batches\(max_rows=...\) with a source of kind 'sqlite_keys': it takes none"),
        (BoundedKeys, {"max_rows": 2, "max_files": 1}, r"batches\(max_files=..., max_rows=...\).*it takes max_rows"),
    ],
)
def test_bound_of_a_loop_that_a_source_does_not_take_is_refused(
    lake: Lake, table: str, source: type[KeySource], bound: dict[str, Any], says: str
) -> None:
    with pytest.raises(OptionError, match=says):
        for batch in lake.job().batches(**bound):
            with batch:
                batch.read("people").source(source(table), KeyReader())
    assert lake.head().run_number == 0


class OtherKeys(BoundedKeys):
    """Keys whose parts are no parts of them."""

    part: Any = None

    def bounded(self, bound: Bound) -> Any:
        return self.part


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("part", [None, KeySource("/another.db"), Named("oops")], ids=["none", "another", "no name"])
def test_part_of_a_source_that_is_another_source_is_refused(lake: Lake, table: str, part: Any) -> None:
    source = OtherKeys(table)
    source.part = part
    with pytest.raises(OptionError, match=r"bounded\(\) of a source of kind 'sqlite_keys' returned another source"):
        for batch in lake.job().batches(max_rows=2):
            with batch:
                batch.read("people").source(source, KeyReader())
    assert lake.head().run_number == 0


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("bounds", [["max_rows"], "max_rows", None, {"most"}], ids=["list", "text", "none", "unknown"])
def test_bounds_that_are_no_set_of_names_are_refused(lake: Lake, table: str, bounds: Any) -> None:
    source = BoundedKeys(table)
    source.bounds = bounds
    with pytest.raises(OptionError, match=r"takes the bounds .*Let its property bounds be a frozenset"):
        for batch in lake.job().batches(max_rows=2):
            with batch:
                batch.read("people").source(source, KeyReader())


@pytest.mark.usefixtures("known")
def test_starting_over_in_the_parts_of_a_loop_is_refused(lake: Lake, table: str) -> None:
    with pytest.raises(OptionError, match=r"on_schema_change='reset' with a bound \(max_rows"):
        for batch in lake.job().batches(max_rows=2):
            with batch:
                batch.read("people", on_schema_change="reset").source(BoundedKeys(table), KeyReader())


@pytest.mark.usefixtures("known")
def test_sharded_job_is_refused(spark: SparkSession, store: BookmarkStore, table: str) -> None:
    job = next(BookmarkedJob(spark, "sharded", store=store, shard=range(1)).shards())
    with pytest.raises(OptionError, match="each of whose shards would read all of it"), job:
        job.read("people").source(KeySource(table), KeyReader())


def test_kind_that_is_not_registered_is_refused(lake: Lake, table: str) -> None:
    with (
        pytest.raises(OptionError, match=r"kind 'sqlite_keys' is not known in this process. Call register"),
        lake.job() as job,
    ):
        job.read("people").source(KeySource(table), KeyReader())
