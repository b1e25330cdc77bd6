"""Promises on Iceberg tables as outputs (TABLE-2, SINK-5, SINK-8, RUN-8, RUN-9), with Spark and the real Iceberg.

`test_iceberg_sink.py` runs them in a process of its own: the jar of Iceberg has to be there when Spark starts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.core.errors import ChangeRefusedError, CleanRefusedError, OptionError, PublishError, SourceError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, Run, RunKey, RunState
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.sinks.entry import landed_entry
from airflow_bookmarks.sinks.iceberg.sink import IcebergSink
from airflow_bookmarks.sinks.iceberg.target import IcebergOutput, IcebergTarget
from airflow_bookmarks.sinks.iceberg.token import WapId
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.sinks.staging import Mode, StagingRequest
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import has_own_sessions
from airflow_bookmarks.spark.iceberg.session import IcebergSession
from airflow_bookmarks.spark.sinks.iceberg import IcebergTable
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.sink_conformance import JOB, StagedSinkConformance
from tests.spark.drivers import Drivers, dies_at
from tests.spark.following import follow
from tests.spark.iceberg import Table, iceberg_conf
from tests.spark.lake import Lake, OpenSession
from tests.thorough import mostly_thorough

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Put Iceberg beside Spark's own jars."""
    return iceberg_conf(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def table(lake: Lake) -> Table:
    """Name a table that is not there."""
    return Table(lake.spark, f"lake.shop.t_{lake.root.parent.name.replace('-', '_')}_{lake.root.name}")


def run(lake: Lake, table: Table, mode: str = "append", **options: Any) -> dict[str, Any]:
    with lake.job() as job:
        job.write(lake.read(job), "out").mode(mode).iceberg(table.name, **options)
    assert job.summary is not None
    return job.summary


def stats_of(lake: Lake, output: str) -> Mapping[str, Any]:
    """Return what the last run with data has recorded of an output."""
    return next(each.outputs[output].stats for each in lake.store.runs("copy", reverse=True) if each.outputs)


# ---- what is published


@pytest.mark.often
def test_each_row_is_published_once_by_two_runs(lake: Lake, table: Table) -> None:
    table.make()
    for name, line in (("a.txt", "a"), ("b.txt", "b")):
        lake.put(name, line)
        run(lake, table)
    assert (table.lines(), table.tags()) == (["a", "b"], [])
    stats = stats_of(lake, "out")
    run(lake, table)
    assert len(table.snapshots()) == 2  # nothing new: no snapshot
    # The table is reached by Spark alone, which doctor has not.
    assert [each.code for each in examine(lake.store)] == ["kind-unknown"]
    assert (stats["rows"], stats["files"]) == (1, 1)
    assert int(stats["snapshot_before"]) == table.snapshots()[0]["snapshot_id"]


def test_append_asks_spark_few_things(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.make()
    for name in ("a.txt", "b.txt"):
        lake.put(name, name)
        run(lake, table)
    said: list[str] = []
    real = type(lake.spark).sql

    def sql(session: SparkSession, query: str, *args: Any, **kwargs: Any) -> DataFrame:
        said.append(query)
        return real(session, query, *args, **kwargs)

    monkeypatch.setattr(type(lake.spark), "sql", sql)
    lake.put("c.txt", "c.txt")
    run(lake, table)
    looks = sum(query.startswith("SELECT") for query in said)
    changes = [query.partition(" TAG ")[0].rpartition(" ")[2] for query in said if query.startswith("ALTER")]
    assert looks == 3  # what is left of other runs, what this one has staged, where that stands
    assert changes == ["CREATE", "DROP"]
    assert sum(query.startswith("CALL") for query in said) == 1


def test_rows_are_staged_and_seen_by_nobody_before_the_commit(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    job = lake.job().begin()
    job.write(lake.read(job), "out").iceberg(table.name)
    assert (table.lines(), len(table.tags())) == ([], 1)
    job.abort("a test")
    assert table.lines() == []
    run(lake, table)
    assert (table.lines(), table.tags()) == (["a"], [])
    # The empty one of the table that was made, and that of the run: the other has expired.
    assert len(table.snapshots()) == 2


def test_what_others_append_in_between_stays(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out").iceberg(table.name)
        table.put("foreign")
    assert table.lines() == ["a", "foreign"]


@pytest.mark.often
def test_several_tables_and_files_of_a_run_are_published_together(lake: Lake, table: Table) -> None:
    table.make()
    other = Table(lake.spark, f"{table.name}_2")
    lake.put("a.txt", "a")
    with lake.job() as job:
        lines = lake.read(job)
        job.write(lines, "one").iceberg(table.name)
        job.write(lines, "two").iceberg(other.name)
        job.write(lines, "files").text(lake.path("copy"))
    assert (table.lines(), other.lines(), len(lake.visible())) == (["a"], ["a"], 1)


def test_overwrite_replaces_the_table_or_the_partitions_that_have_rows(lake: Lake, table: Table) -> None:
    table.make("value STRING, day STRING", "PARTITIONED BY (day)")
    table.run("INSERT INTO {table} VALUES ('x', '1'), ('y', '2')")
    frame = lake.spark.createDataFrame([("a", "1")], "value STRING, day STRING")
    lake.put("a.txt", "a")
    with lake.job() as job:
        lake.read(job).count()
        job.write(frame, "out").mode("overwrite").option("partitionOverwriteMode", "dynamic").iceberg(table.name)
        table.run("INSERT INTO {table} VALUES ('z', '2')")
    assert table.rows() == [("a", "1"), ("y", "2"), ("z", "2")]
    lake.put("b.txt", "b")
    with lake.job() as job:
        lake.read(job).count()
        job.write(frame, "out").mode("overwrite").iceberg(table.name)
    assert table.rows() == [("a", "1")]


FOREIGN = {
    "append elsewhere": "INSERT INTO {table} VALUES ('f', '2')",
    "append there": "INSERT INTO {table} VALUES ('f', '1')",
    "delete elsewhere": "DELETE FROM {table} WHERE day = '2'",
    "overwrite elsewhere": "INSERT OVERWRITE {table} VALUES ('f', '2')",
    "compaction": "CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
}
ELSEWHERE = {"append elsewhere", "delete elsewhere", "overwrite elsewhere"}


@pytest.mark.thorough
@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("how", ["append", "dynamic overwrite", "overwrite", "upsert"])
def test_commit_of_others_between_stage_and_publish(lake: Lake, table: Table, how: str, foreign: str) -> None:
    """It is the table of the guide: either both are there, or the publish is refused and theirs is."""
    table.make("value STRING, day STRING", "PARTITIONED BY (day)")
    table.run("INSERT INTO {table} VALUES ('x', '1'), ('y', '2')")
    frame = lake.spark.createDataFrame([("a", "1")], "value STRING, day STRING")
    lake.put("a.txt", "a")
    job = lake.job().begin()
    lake.read(job).count()
    writer = job.write(frame, "out")
    if how == "upsert":
        if not has_own_sessions(lake.spark):
            pytest.skip("no sessions with a conf of their own: this Spark Connect can't make one")
        writer = writer.upsert("value")
    elif how != "append":
        writer = writer.mode("overwrite")
    if how == "dynamic overwrite":
        writer = writer.option("partitionOverwriteMode", "dynamic")
    writer.iceberg(table.name)
    lake.spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    table.run(FOREIGN[foreign])
    theirs = table.rows()
    is_published = how == "append" or (how == "dynamic overwrite" and foreign in ELSEWHERE)
    if is_published:
        job.commit()
        kept = theirs if how == "append" else [row for row in theirs if row[1] != "1"]
        assert table.rows() == sorted([*kept, ("a", "1")])
    else:
        with pytest.raises(PublishError, match="does not take"):
            job.commit()
        job.abort("refused")
        assert table.rows() == theirs


def test_overwrite_that_others_stand_against_stays_due_until_the_run_is_given_up(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    job = lake.job().begin()
    job.write(lake.read(job), "out").mode("overwrite").iceberg(table.name)
    table.put("foreign")
    with pytest.raises(PublishError, match="does not take what the run has staged") as refused:
        job.commit()
    assert "the run has staged over" in str(refused.value)
    job.abort("refused")
    with pytest.raises(PublishError, match="does not take"):
        run(lake, table, "overwrite")
    assert table.lines() == ["foreign"]
    reset(lake.store, "copy", reason="a test", who="me", force=True)
    run(lake, table, "overwrite")
    assert (table.lines(), table.tags()) == (["a"], [])


def people(lake: Lake, *rows: tuple[int, str, int]) -> DataFrame:
    return lake.spark.createDataFrame(rows, "id INT, name STRING, version INT")


@pytest.mark.needs("own sessions")
@pytest.mark.often
def test_upsert_replaces_rows_of_a_key_by_the_greatest_and_deletes(lake: Lake, table: Table) -> None:
    table.make("id INT, name STRING, version INT")
    table.run("INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    lake.put("a.txt", "a")
    with lake.job() as job:
        lake.read(job).count()
        rows = people(lake, (1, "a2", 2), (1, "a3", 3), (4, "d", 1))
        job.write(rows, "dim").upsert("id", order_by="version", deletes=people(lake, (2, "", 9))).iceberg(table.name)
        assert len(table.rows()) == 3
    assert table.rows() == [(1, "a3", 3), (3, "c", 1), (4, "d", 1)]
    stats = stats_of(lake, "dim")
    assert (stats["rows"], stats["removed_keys"]) == (2, 1)
    with lake.job() as job:  # changes nothing: MERGE makes no snapshot
        job.write(people(lake), "dim", when_empty="publish").upsert("id").iceberg(table.name)
    assert table.rows() == [(1, "a3", 3), (3, "c", 1), (4, "d", 1)]


# ---- what is refused


def test_table_in_which_nothing_can_be_staged_is_refused_with_the_statement(lake: Lake, table: Table) -> None:
    table.run("CREATE TABLE {table} (value STRING) USING iceberg")
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=r"ALTER TABLE .* SET TBLPROPERTIES \('write.wap.enabled' = 'true'\)"):
        run(lake, table)
    table.run("ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    run(lake, table)
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_name_of_which_icebergs_cache_tells_old_snapshots_is_refused(lake: Lake) -> None:
    dotted = Table(lake.spark, "lake.shop.`dotted.orders`").make()
    job = lake.job().begin()
    lines = lake.spark.createDataFrame([("a",)], "value STRING")
    with pytest.raises(OptionError, match=r"Set spark.sql.catalog.lake.cache-enabled=false, or rename"):
        job.write(lines, "out").iceberg(dotted.name)
    with pytest.raises(OptionError, match=r"Set spark.sql.catalog.lake.cache-enabled=false, or rename"):
        job.read("in").iceberg(dotted.name)
    job.abort("refused")


def test_what_cannot_be_used_is_refused(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    for options, said in ({"branch": "b"}, "beside the branch main"), ({"wap-id": "x"}, "the job sets it"):
        with pytest.raises(OptionError, match=said):
            run(lake, table, **options)
    with pytest.raises(OptionError, match="partitioned by nothing"):
        run(lake, table, partitionBy="value")
    with pytest.raises(OptionError, match="knows no Iceberg catalog"), lake.job() as job:
        job.write(lake.read(job), "out").iceberg("nowhere.shop.t")
    with pytest.raises(OptionError, match="is no name of a table"), lake.job() as job:
        job.write(lake.read(job), "out").iceberg("s3://lake/t")
    lake.spark.conf.set("spark.wap.id", "mine")
    try:
        with pytest.raises(OptionError, match=r"spark.wap.id is set in the conf"):
            run(lake, table)
    finally:
        lake.spark.conf.unset("spark.wap.id")
    with pytest.raises(OptionError, match="a pause or disable run has none"), lake.job(option="disable") as job:
        job.write(lake.read(job), "out").iceberg(table.name)
    assert table.lines() == []


@pytest.mark.needs("own sessions")
@pytest.mark.parametrize("how", mostly_thorough(["overwrite", "upsert"]))
def test_table_that_was_rolled_back_since_the_run_has_staged_does_not_get_its_rows_back(
    lake: Lake, table: Table, how: str
) -> None:
    def write(job: BookmarkedJob, lines: DataFrame) -> None:
        asked = job.write(lines, "out")
        asked = asked.upsert("value") if how == "upsert" else asked.mode("overwrite")
        asked.iceberg(table.name)

    table.make().put("good")
    good = table.snapshots()[-1]["snapshot_id"]
    table.put("bad")
    drivers = Drivers(lake, write)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.COMMITTED))
    table.run(f"CALL lake.system.rollback_to_snapshot('{table.name.removeprefix('lake.')}', {good})")
    with pytest.raises(PublishError, match=r"the table stands at snapshot \d+, and the run has staged over"):
        drivers.attempt(2)
    assert table.lines() == ["good"]


@pytest.mark.thorough
@pytest.mark.needs("own sessions")
def test_upsert_that_changes_nothing_is_committed_and_what_a_stale_look_does_not_show_is_not(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.make().put("a")
    gone = lake.spark.createDataFrame([], "value STRING")
    with lake.job() as job:
        frame = job.write(gone, "out").upsert("value", deletes=lake.spark.createDataFrame([("z",)], "value STRING"))
        frame.iceberg(table.name)
    assert table.lines() == ["a"]
    known = IcebergSession.history
    stale = known(IcebergSession(lake.spark), IcebergTarget.parse(table.name))
    monkeypatch.setattr(IcebergSession, "history", lambda *_: stale)
    job = lake.job().begin()
    with pytest.raises(PublishError, match="how it was some time before"):
        job.write(lake.spark.createDataFrame([("b",)], "value STRING"), "out").upsert("value").iceberg(table.name)
    monkeypatch.setattr(IcebergSession, "history", known)
    job.abort("stale")
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_two_outputs_to_one_table_are_appended_and_one_that_replaces_comes_alone(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    with lake.job() as job:
        lines = lake.read(job)
        for name in ("one", "two"):
            job.write(lines, name).iceberg(table.name)
    assert (table.lines(), table.tags()) == (["a", "a"], [])
    lake.put("b.txt", "b")
    ways = ["overwrite", *(["upsert"] if has_own_sessions(lake.spark) else [])]
    for way in ways:
        job = lake.job().begin()
        lines = lake.read(job)
        job.write(lines, "one").iceberg(table.name)
        second = job.write(lines, "two")
        with pytest.raises(OptionError, match="two outputs"):
            (second.upsert("value") if way == "upsert" else second.mode("overwrite")).iceberg(table.name)
        job.abort("refused")
    assert table.lines() == ["a", "a"]


def test_replay_and_clean_are_refused_with_the_reason(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    with lake.job(run_id="first") as job:
        job.write(lake.read(job), "out").iceberg(table.name)
    with pytest.raises(ChangeRefusedError, match=r"can't replace|whose rows don't tell"):
        lake.job(replay=1).begin()
    with pytest.raises(CleanRefusedError, match="whose rows don't tell"):
        reset(lake.store, "copy", reason="a test", who="me", clean=True)
    assert table.lines() == ["a"]


# ---- read by the next job


def test_next_job_reads_exactly_what_each_run_has_written(lake: Lake, table: Table) -> None:
    table.make()
    table.put("foreign")
    lake.put("a.txt", "a", "b")
    run(lake, table)
    table.put("foreign")
    assert follow(lake) == ["a", "b"]
    assert follow(lake) == []
    for name, line in (("b.txt", "c"), ("c.txt", "d")):
        lake.put(name, line)
        with lake.job() as job:
            job.write(lake.read(job), "out").iceberg(table.name)
            table.put("meanwhile")  # so that the publish brings the rows in by another snapshot
    table.run("DELETE FROM {table} WHERE value = 'c'")
    table.run("CALL lake.system.rewrite_data_files(table => '" + table.name.removeprefix("lake.") + "')")
    assert follow(lake) == ["c", "d"]  # what the runs wrote, whatever became of it in the table
    assert follow(lake) == []


def test_next_job_reads_of_an_overwrite_what_it_brought_and_not_what_it_replaced(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    run(lake, table)
    lake.put("b.txt", "b")
    run(lake, table, "overwrite")
    assert follow(lake) == ["b"]
    for name in "cd":
        lake.put(f"{name}.txt", name)
        run(lake, table, "overwrite")
        table.put("foreign")
    assert follow(lake) == ["d"]


def partitioned(lake: Lake, table: Table, *lines: str) -> None:
    """Replace the partitions of some rows: each line is a value and its partition, a letter each."""
    lake.put(f"{lines[0][0]}.txt", *lines)
    with lake.job() as job:
        frame = lake.read(job).selectExpr("left(value, 1) AS value", "right(value, 1) AS p")
        job.write(frame, "out").mode("overwrite").option("partitionOverwriteMode", "dynamic").iceberg(table.name)


@pytest.mark.parametrize(
    ("one", "other"),
    [("x", "y"), *(pytest.param(*odd, marks=pytest.mark.thorough) for odd in [("/", "%"), ("ü", " ")])],
)
def test_next_job_reads_of_replaced_partitions_what_stayed_of_each_run(
    lake: Lake, table: Table, one: str, other: str
) -> None:
    table.make("value STRING, p STRING", "PARTITIONED BY (p)")
    table.run(f"INSERT INTO {{table}} VALUES ('foreign', '{one}'), ('foreign', 'z')")
    partitioned(lake, table, f"1{one}", f"1{other}")
    assert follow(lake) == ["1", "1"]
    partitioned(lake, table, f"2{one}", f"2{other}")
    partitioned(lake, table, f"3{other}")
    assert follow(lake) == ["2", "3"]
    assert table.rows() == sorted([("2", one), ("3", other), ("foreign", "z")])


@pytest.mark.thorough
def test_shards_of_the_next_job_share_out_what_was_written_to_a_table(lake: Lake, table: Table) -> None:
    table.make("value STRING, p STRING", "PARTITIONED BY (p)")
    lake.put("a.txt", *(f"{letter}{letter}" for letter in "abcdefgh"))
    with lake.job() as job:
        frame = lake.read(job).selectExpr("value", "right(value, 1) AS p")
        job.write(frame, "out").partitionBy("p").iceberg(table.name)
    seen: list[str] = []
    for shard in lake.job("after", shard=range(64)).shards():
        with shard:
            seen += [row["value"] for row in shard.read("copied").upstream("copy").collect()]
    assert sorted(seen) == [letter * 2 for letter in "abcdefgh"]


def test_next_job_that_died_reads_the_same_again(lake: Lake, table: Table) -> None:
    table.make()
    lake.put("a.txt", "a")
    run(lake, table)
    with suppress(SimulatedCrash), runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.STAGED))):
        follow(lake, run_id="task")
    assert lake.head("after").version == 0
    lake.put("b.txt", "b")
    run(lake, table)
    follow(lake, run_id="task", attempt=2)
    follow(lake)
    kept = [Path(lake.path("after"), name).read_text().split() for name in lake.visible("after")]
    assert sorted(itertools.chain(*kept)) == ["a", "b"]


def test_output_of_the_version_before_is_read_without_the_folder_that_it_did_not_store(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.make()
    lake.put("a.txt", "a")
    with monkeypatch.context() as patched:
        as_before = IcebergOutput(Mode.APPEND).stats()
        patched.setattr(IcebergOutput, "stats", lambda output: as_before)
        run(lake, table)
    assert "table_folder" not in stats_of(lake, "out")
    lake.put("b.txt", "b")
    run(lake, table)
    assert stats_of(lake, "out")["table_folder"].endswith(table.name.removeprefix("lake").replace(".", "/"))
    assert follow(lake) == ["a", "b"]


def test_what_is_new_for_the_next_job_is_known_without_spark(lake: Lake, table: Table) -> None:
    pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")
    lake.put("a.txt", "a")
    run(lake, table)
    follow(lake)
    lake.put("b.txt", "b")
    run(lake, table)
    (found,) = pending(lake.store, "after").contexts
    assert (found.files, found.rows) == (1, 1)


def _made_anew(table: Table) -> None:
    table.run("DROP TABLE {table} PURGE")
    table.make()
    table.put("foreign")


def _expired(table: Table) -> None:
    table.put("more")
    newest = table.snapshots()[-1]["committed_at"]
    table.run(
        f"CALL lake.system.expire_snapshots(table => '{table.name.removeprefix('lake.')}', "
        f"older_than => TIMESTAMP '{newest}', retain_last => 1)"
    )


@pytest.mark.parametrize("change", mostly_thorough([_made_anew, _expired]))
def test_next_job_is_told_where_what_a_run_wrote_is_gone(
    lake: Lake, table: Table, change: Callable[[Table], None]
) -> None:
    lake.put("a.txt", "a")
    run(lake, table)
    change(table)
    with pytest.raises(SourceError, match=r"run 1 wrote .*no snapshot of it any more.*Nothing was read or changed"):
        follow(lake)


@pytest.mark.needs("own sessions")
def test_next_job_is_told_to_read_the_changes_of_an_upsert(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        job.write(lake.read(job), "out").upsert("value").iceberg(table.name)
    with pytest.raises(SourceError, match=r"wrote to the Iceberg table .* by key.*changes=True"):
        follow(lake)


@pytest.mark.thorough
def test_next_job_does_not_say_how_a_table_is_read(lake: Lake, table: Table) -> None:
    lake.put("a.txt", "a")
    run(lake, table)
    job = lake.job("after").begin()
    with pytest.raises(OptionError, match=r"schema: the table .* to which upstream 'copy' wrote has its own"):
        job.read("copied").schema("value STRING").upstream("copy")
    job.abort("refused")


# ---- recovery

DEATHS = [
    pytest.param(point, nth, id=f"{point}-{nth}", marks=[] if is_short else pytest.mark.thorough)
    for point, nth, is_short in [
        (Failpoint.PLANNED, 1, False),
        (Failpoint.PLACED, 1, False),
        (Failpoint.STAGED, 1, True),
        (Failpoint.PLACED, 2, False),
        (Failpoint.STAGED, 2, False),
        (Failpoint.BEFORE_COMMIT, 1, False),
        (Failpoint.COMMITTED, 1, True),
        (Failpoint.PUBLISHING, 1, False),
        (Failpoint.MOVED, 1, True),
        (Failpoint.PUBLISHED, 1, False),
        (Failpoint.MARKED, 1, False),
        (Failpoint.SWEPT, 1, False),
    ]
]


def stored(lake: Lake, run: Run) -> StoredOutput:
    return StoredOutput(Territory(lake.store.namespace, "copy"), run, "out", lake.store.blobs)


def drivers_of(lake: Lake, table: Table) -> Drivers:
    return Drivers(lake, lambda job, lines: job.write(lines, "out").iceberg(table.name))


@pytest.mark.parametrize(("point", "nth"), DEATHS)
@pytest.mark.often
def test_driver_that_died_anywhere_leaves_each_row_once(lake: Lake, table: Table, point: Failpoint, nth: int) -> None:
    table.make()
    drivers = drivers_of(lake, table)
    lake.put("a.txt", "a", "b")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(point, nth))
    lake.put("b.txt", "c")
    drivers.attempt(2)
    assert (table.lines(), drivers.files()) == (["a", "b", "c"], ["a", "b", "c"])
    head = lake.head()
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
    assert lake.store.open_runs("copy", head) == []
    assert table.tags() == []


def test_driver_that_was_overtaken_publishes_nothing(lake: Lake, table: Table) -> None:
    """Its snapshot is staged when another attempt takes the job over, which lets it expire."""
    table.make()
    drivers = drivers_of(lake, table)
    lake.put("a.txt", "a")
    places: list[Failpoint] = []

    def overtaken(point: Failpoint) -> None:
        places.append(point)
        if point is Failpoint.STAGED and places.count(point) == 1:
            drivers.attempt(2)

    with pytest.raises(Exception, match="attempt"):
        drivers.attempt(1, overtaken)
    assert (table.lines(), drivers.files()) == (["a"], ["a"])
    run(lake, table)  # sweeps what the overtaken one has staged late
    assert (table.lines(), table.tags()) == (["a"], [])


def test_publisher_that_comes_after_its_run_was_given_up_brings_nothing_in(lake: Lake, table: Table) -> None:
    table.make()
    drivers = drivers_of(lake, table)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.COMMITTED))
    (given_up,) = [each for each in lake.store.runs("copy") if each.state is RunState.COMMITTED]
    late = IcebergSink(IcebergSession(lake.spark)).prepare(stored(lake, given_up))
    reset(lake.store, "copy", reason="a test", who="me", force=True)
    drivers.attempt(2, run_id="next")
    assert late is not None
    with pytest.raises(SourceError, match="is gone"):
        late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
    assert table.lines() == ["a"]


def test_process_without_spark_leaves_the_publish_due(lake: Lake, table: Table) -> None:
    table.make()
    drivers = drivers_of(lake, table)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.COMMITTED))
    (due,) = [each for each in lake.store.runs("copy") if each.state is RunState.COMMITTED]
    with pytest.raises(SourceError, match="this process has no Spark session"):
        IcebergSink().prepare(stored(lake, due))
    drivers.attempt(2)
    assert table.lines() == ["a"]


@pytest.mark.thorough
def test_staged_rows_outlive_the_expiry_of_snapshots(lake: Lake, table: Table) -> None:
    table.make()
    drivers = drivers_of(lake, table)
    lake.put("a.txt", "a")
    with pytest.raises(SimulatedCrash):
        drivers.attempt(1, dies_at(Failpoint.COMMITTED))
    table.put("foreign")
    older = "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1"
    table.run(f"CALL lake.system.expire_snapshots(table => '{{table}}', {older})")
    drivers.attempt(2)
    assert table.lines() == ["a", "foreign"]


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "iceberg-writing.md"


@pytest.mark.needs("classic")  # a server has its address in the environment of a script
@pytest.mark.thorough
def test_script_of_the_guide_does_what_it_says(lake: Lake, tmp_path: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    moved = script.replace("/tmp/lake", str(tmp_path / "lake")).replace("/tmp/bookmarks.db", f"{tmp_path}/guide.db")
    BookmarkStore(SqliteTable(tmp_path / "guide.db"), DEFAULT_NAMESPACE).init()
    raw = tmp_path / "lake" / "raw" / "orders"
    raw.mkdir(parents=True)
    for number in (1, 2):
        (raw / f"{number}.csv").write_text(f"{number},10,2026-01-0{number}\n")
        exec(compile(moved, str(GUIDE), "exec"), {})  # noqa: S102 (the guide's own script)
    assert [row[0] for row in Table(lake.spark, "lake.shop.orders").rows()] == [1, 2]


# ---- the conformance suite


class IcebergGround:
    """A table of one column, written as the driver's writer does."""

    def __init__(self, spark: SparkSession, table: Table, blobs: BlobStore) -> None:
        self._spark, self.blobs, self._table = spark, blobs, table.make()
        self.session = IcebergSession(spark)
        self.sink = IcebergSink(self.session)
        self.request = StagingRequest(IcebergSink.kind, table.name, stats=IcebergOutput(Mode.APPEND).stats())

    def _frame(self, rows: Sequence[str]) -> DataFrame:
        return self._spark.createDataFrame([(row,) for row in rows], "value STRING")

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        frame = self._frame(rows)
        mode = Mode.OVERWRITE if overwrites else Mode.APPEND
        writer = IcebergTable.open("a test", frame, self._table.name, mode=mode, partition_by=(), options={})
        return landed_entry(output.entry, writer.write(frame, output.entry.place, is_observed=False))

    def put(self, row: str) -> None:
        self._table.put(row)

    def visible(self) -> list[str]:
        return self._table.lines()

    def staged(self) -> set[RunKey]:
        history = self.session.history(IcebergTarget.parse(self._table.name))
        assert history is not None
        seen = {each.id for each in history.ancestry()}
        published = {each.published for each in history.ancestry()}
        left = [each.wap_id for each in history.snapshots.values() if each.id not in seen and each.wap_id is not None]
        parsed = [WapId.parse(each, JOB) for each in left if each not in published]
        return {each.key for each in parsed if each is not None}

    def outside(self) -> object:
        return None


@pytest.mark.often
class TestIcebergConformance(StagedSinkConformance):
    @pytest.fixture
    def ground(self, open_session: OpenSession, tmp_path: Path, store: BookmarkStore) -> IcebergGround:
        spark = open_session()
        return IcebergGround(spark, Table(spark, f"lake.conformance.t_{tmp_path.name}"), store.blobs)
