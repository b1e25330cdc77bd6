"""Files that can't be parsed: the run stops, or they are left out, recorded, and read when somebody asks for them."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError, QuarantineFullError, SchemaChangedError, SchemaUnknownError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files
from airflow_bookmarks.spark import BookmarkedJob, features
from airflow_bookmarks.spark.readers import corrupt
from tests.spark.lake import Lake, reader_of, rows_of

SCHEMA = "id INT, name STRING"


def read(lake: Lake, job: BookmarkedJob, name: str = "csv", schema: str | None = SCHEMA, **options: Any) -> DataFrame:
    reader = job.read("raw").files(on_corrupt="quarantine").format(name).options(**options)
    return (reader if schema is None else reader.schema(schema)).load(lake.path("raw"))


def run(lake: Lake, name: str = "csv", schema: str | None = SCHEMA, **options: Any) -> list[tuple[Any, ...]]:
    """Make one whole run with quarantine; return the rows read."""
    with lake.job() as job:
        return rows_of(read(lake, job, name, schema, **options))


def held(lake: Lake) -> dict[str, str]:
    """Return the error of each quarantined file by its name."""
    return {Path(row["path"]).name: row["error"] for row in quarantined_files(lake.store, "copy")}


def parquet_of(lake: Lake) -> bytes:
    folder = lake.path("made")
    lake.spark.createDataFrame([(1, "a"), (2, "b")], SCHEMA).coalesce(1).write.mode("overwrite").parquet(folder)
    return next(Path(folder).glob("part*.parquet")).read_bytes()


def orc_of(lake: Lake) -> bytes:
    folder = lake.path("made")
    lake.spark.createDataFrame([(1, "a"), (2, "b")], SCHEMA).coalesce(1).write.mode("overwrite").orc(folder)
    return next(Path(folder).glob("part*.orc")).read_bytes()


# ---- what is found


def test_csv_file_with_a_broken_record_is_left_out_whole_and_recorded(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    broken = lake.put("b.csv", "2,b", "x,c")
    lake.put("c.csv", "3,c")

    assert run(lake) == [(1, "a"), (3, "c")]
    [record] = quarantined_files(lake.store, "copy")
    assert record["path"] == str(broken)
    assert record["error"] == "1 of 2 records do not fit the schema"
    assert (record["ctx"], record["run_number"], record["bytes"]) == ("raw", 1, broken.stat().st_size)


def test_record_tells_no_value_of_the_data(lake: Lake) -> None:
    lake.put("b.csv", "secret,c")

    run(lake)

    assert "secret" not in json.dumps(quarantined_files(lake.store, "copy"))


@pytest.mark.parametrize(
    "name",
    ["with space.csv", "per%cent.csv", "plus+.csv", "brace[1].csv", "ümlaut é.csv", "hash#.csv", "per%20cent.csv"],
)
def test_broken_file_is_found_under_any_name(lake: Lake, name: str) -> None:
    lake.put("a.csv", "1,a")
    lake.put(name, "x,b")

    assert run(lake) == [(1, "a")]
    assert list(held(lake)) == [name]


def test_columns_of_folders_are_none_of_the_file(lake: Lake) -> None:
    lake.put("day=2013-01-01/a.csv", "1,a")
    lake.put("day=2013-01-02/b.csv", "x,b")

    assert [row[:2] for row in run(lake, schema="id INT, name STRING, day DATE")] == [(1, "a")]
    assert list(held(lake)) == ["b.csv"]


@pytest.mark.parametrize(
    ("name", "good", "bad", "options"),
    [
        ("json", '{"id": 1, "name": "a"}', '{"id": 2, "name"', {}),
        ("json", '{"id": 1, "name": "a"}', '{"id": "two", "name": "b"}', {}),
        pytest.param(
            "xml",
            "<f><r><id>1</id><name>a</name></r></f>",
            "<f><r><id>two</id></r></f>",
            {"rowTag": "r"},
            marks=pytest.mark.needs("xml"),
        ),
    ],
)
def test_json_and_xml_are_told_record_by_record(
    lake: Lake, name: str, good: str, bad: str, options: dict[str, str]
) -> None:
    lake.put("a", good)
    lake.put("b", bad)

    assert run(lake, name, **options) == [(1, "a")]
    assert held(lake) == {"b": "1 of 1 records do not fit the schema"}


def test_json_without_a_schema_takes_its_columns_from_what_can_be_parsed(lake: Lake) -> None:
    lake.put("a.json", '{"id": 1, "name": "a"}')
    lake.put("b.json", '{"id": 2')

    with lake.job() as job:
        frame = read(lake, job, "json", None)
        assert frame.columns == ["id", "name"]
        assert rows_of(frame) == [(1, "a")]
    assert list(held(lake)) == ["b.json"]


@pytest.mark.needs("whole errors")
def test_compressed_text_that_breaks_off_is_found(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    lake.put("cut.csv.gz").write_bytes(gzip.compress(b"2,b\n" * 1000)[:-12])
    lake.put("none.csv.gz").write_bytes(b"this is not compressed")

    assert run(lake) == [(1, "a")]
    assert set(held(lake)) == {"cut.csv.gz", "none.csv.gz"}
    assert all("Exception" in error for error in held(lake).values())


@pytest.mark.seldom
@pytest.mark.needs("whole errors")
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_several_broken_parquet_files_are_found_though_spark_stops_at_the_first(lake: Lake, schema: str | None) -> None:
    data = parquet_of(lake)
    for number in range(6):
        lake.put(f"good{number}.parquet").write_bytes(data)
    lake.put("a.parquet").write_bytes(b"no parquet at all")
    lake.put("good3a.parquet").write_bytes(data[:20] + b"\xff" * 30 + data[50:])
    lake.put("z.parquet").write_bytes(data[:-9])

    assert len(run(lake, "parquet", schema)) == 12
    assert set(held(lake)) == {"a.parquet", "good3a.parquet", "z.parquet"}
    assert "not a Parquet file" in held(lake)["a.parquet"]


@pytest.mark.seldom
def test_broken_orc_file_is_found(lake: Lake) -> None:
    lake.put("a.orc").write_bytes(orc_of(lake))
    lake.put("b.orc").write_bytes(b"no orc at all")

    assert run(lake, "orc") == [(1, "a"), (2, "b")]
    assert list(held(lake)) == ["b.orc"]


@pytest.mark.seldom
@pytest.mark.needs("whole errors")
def test_file_whose_own_columns_differ_is_no_file_that_cannot_be_parsed(lake: Lake) -> None:
    lake.put("a.parquet").write_bytes(parquet_of(lake))
    other = lake.path("other")
    lake.spark.createDataFrame([("x", "y")], "id STRING, name STRING").coalesce(1).write.parquet(other)
    lake.put("b.parquet").write_bytes(next(Path(other).glob("part*.parquet")).read_bytes())

    with pytest.raises(SchemaChangedError, match="can't be read together"):
        run(lake, "parquet", None)
    assert lake.head().run_number == 0


# ---- what is no reason


def test_store_that_refuses_a_file_stops_the_run_and_quarantines_nothing(lake: Lake) -> None:
    def refused(paths: Any) -> dict[str, str]:
        raise features.SPARK_ERRORS[0](
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://lake/a.csv.\n"
            "Caused by: java.nio.file.AccessDeniedException: s3a://lake/a.csv: getFileStatus: 403"
        )

    with pytest.raises(features.SPARK_ERRORS[0], match="403"):
        corrupt._Search(refused, LocalFileSystem()).among(["s3a://lake/a.csv", "s3a://lake/b.csv"])


@pytest.mark.parametrize(
    ("thrown", "is_of_content"),
    [
        ("java.lang.RuntimeException: file:/a.parquet is not a Parquet file. Expected magic number at tail", True),
        ("java.io.EOFException: Unexpected end of input stream", True),
        ("java.nio.file.AccessDeniedException: s3a://lake/a.parquet: getFileStatus: 403", False),
        # What is in the wrapper was cut off: it may be that the store refuses.
        ("org.apache.spark.SparkException: Encountered error while reading file s3a://lake/a.parquet.", False),
    ],
)
def test_error_that_is_cut_short_is_of_the_content_where_that_is_seen(thrown: str, is_of_content: bool) -> None:
    text = (
        "(org.apache.spark.SparkException) Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most "
        f"recent failure: Lost task 0.0 in stage 1.0 (TID 1) (localhost executor driver): {thrown}\n"
        "\tat org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1.nextIterator(FileScanRDD.scala:1)\n"
        "\tat ja..."
    )

    assert corrupt._is_of_content(text) == is_of_content
    assert corrupt._cause(text) == re.sub(r"^[a-z.]+", "", thrown)


def test_file_that_changed_while_it_was_looked_at_is_left_to_the_look_before_the_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.csv", "1,a")
    torn = lake.put("b.csv", "x,b")
    parse = corrupt._CorruptParser.parse

    def overwritten(parser: Any, paths: Any) -> dict[str, str]:
        found = parse(parser, paths)
        torn.write_text("2,b\n")
        os.utime(torn, (1, 1))
        return found

    monkeypatch.setattr(corrupt._CorruptParser, "parse", overwritten)
    with lake.job() as job:
        rows = rows_of(
            job.read("raw").files(on_corrupt="quarantine", on_missing="skip").schema(SCHEMA).csv(lake.path("raw"))
        )

    assert (1, "a") in rows
    assert held(lake) == {}
    assert run(lake) == [(2, "b")]


@pytest.mark.seldom
def test_file_that_went_while_others_were_looked_at_hides_none_of_them(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.parquet").write_bytes(parquet_of(lake))
    gone = lake.put("b.parquet")
    gone.write_bytes(parquet_of(lake))
    lake.put("c.parquet").write_bytes(b"no parquet at all")
    parse = corrupt._CorruptParser.parse

    def going(parser: Any, paths: Any) -> dict[str, str]:
        gone.unlink(missing_ok=True)
        return parse(parser, paths)

    monkeypatch.setattr(corrupt._CorruptParser, "parse", going)
    with lake.job() as job:
        reader = job.read("raw").files(on_corrupt="quarantine", on_missing="skip").schema(SCHEMA)
        assert rows_of(reader.parquet(lake.path("raw"))) == [(1, "a"), (2, "b")]

    assert list(held(lake)) == ["c.parquet"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"missing": 1, "quarantined": 1}


def test_more_files_than_a_quarantine_is_for_end_the_search_early(lake: Lake) -> None:
    looks = []

    def broken(paths: Any) -> dict[str, str]:
        looks.append(len(paths))
        raise features.SPARK_ERRORS[0]("Encountered error while reading file file:/nowhere.")

    with pytest.raises(QuarantineFullError):
        corrupt._Search(broken, LocalFileSystem()).among([f"/raw/{number}" for number in range(100_000)])
    assert len(looks) < 2500


# ---- what it means for runs


def test_error_is_the_default_and_its_message_names_the_file(lake: Lake) -> None:
    lake.put("bad name.parquet").write_bytes(b"no parquet at all")

    with pytest.raises(features.SPARK_ERRORS, match=r"bad(%20| )name\.parquet"), lake.job() as job:
        job.read("raw").schema(SCHEMA).parquet(lake.path("raw")).collect()
    assert lake.head().run_number == 0


def test_quarantined_file_is_left_out_of_later_runs_counted_and_named(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    broken = lake.put("b.csv", "x,b")
    run(lake)
    lake.put("c.csv", "3,c")

    with caplog.at_level(logging.INFO), lake.job() as job:
        assert rows_of(job.read("raw").schema(SCHEMA).csv(lake.path("raw"))) == [(3, "c")]  # whatever the option says

    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"quarantined": 1}
    assert "1 quarantined" in caplog.text
    [context] = pending(lake.store, "copy").contexts
    assert context.files == 0
    assert [(row["reason"], row["path"]) for row in context.skipped_files()] == [("quarantined", str(broken))]


def test_stored_plan_is_the_one_that_is_read(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    lake.put("b.csv", "x,b")
    with lake.job() as job:
        frame = read(lake, job)
        [item] = lake.store.open_runs("copy", lake.head())
        plan = FilePlan.decode(lake.store.blobs.get(item.plans["raw"].body))
        assert [Path(path).name for path in plan.files.paths] == ["a.csv"]
        assert [Path(file.path).name for file in plan.quarantined] == ["b.csv"]
        assert item.plans["raw"].stats["skipped"] == {"quarantined": 1}
        assert rows_of(frame) == [(1, "a")]


def test_run_that_finds_only_broken_files_is_empty_and_keeps_their_record(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    run(lake)
    lake.put("b.csv", "x,b")

    with lake.job() as job:
        frame = read(lake, job)
        job.write(frame, "out").parquet(lake.path("out"))

    assert job.summary is not None
    assert job.summary["is_empty"]
    assert list(held(lake)) == ["b.csv"]
    assert lake.head().data_run_number == 1
    assert lake.visible("out") == []


# ---- a first run that has nothing else


def drained(lake: Lake, name: str, **kwargs: Any) -> list[int]:
    """Read one file a run without a schema; return the rows of each."""
    counts = []
    for batch in lake.job().batches(max_files=1):
        with batch:
            frame = reader_of(batch, "raw", **kwargs).format(name).load(lake.path("raw"))
            counts.append(frame.count())
            batch.write(frame, "out").parquet(lake.path("out"))
    return counts


@pytest.mark.seldom
@pytest.mark.needs("whole errors")
@pytest.mark.parametrize("name", ["json", "parquet"])
def test_first_run_with_but_broken_files_takes_columns_from_what_waits_over_its_bound(lake: Lake, name: str) -> None:
    lake.put("a").write_bytes(b"{broken" * 20)
    lake.put("b").write_bytes(b"{broken" * 20)
    os.utime(lake.root / "raw" / "a", (1, 1))
    os.utime(lake.root / "raw" / "b", (2, 2))
    lake.put("c").write_bytes(b'{"id": 1}' if name == "json" else parquet_of(lake))

    assert drained(lake, name, on_corrupt="quarantine") == [0, 0, 1 if name == "json" else 2]
    assert set(held(lake)) == {"a", "b"}


@pytest.mark.seldom
@pytest.mark.needs("whole errors")
def test_columns_are_those_that_the_next_run_will_read(lake: Lake) -> None:
    for at, (name, ddl) in enumerate([("b", "id INT"), ("c", "id INT, new INT")], 2):
        folder = lake.root / f"{name}.made"
        lake.spark.createDataFrame([(1, 1)[: at - 1]], ddl).coalesce(1).write.parquet(str(folder))
        [part] = folder.glob("part*.parquet")
        os.utime(part.rename(lake.root / "raw" / name), (at, at))
    (lake.root / "raw" / "a").write_bytes(b"no parquet at all")
    os.utime(lake.root / "raw" / "a", (1, 1))

    assert drained(lake, "parquet", on_corrupt="quarantine") == [0, 1, 1]  # no column went


def test_first_run_with_an_empty_file_takes_columns_from_what_waits_over_its_bound(lake: Lake) -> None:
    lake.put("a.json")
    lake.put("b.json", '{"id": 1}')

    assert drained(lake, "json") == [0, 1]


def test_store_that_refuses_is_not_taken_for_a_file_without_columns(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.json")
    lake.put("b.json", '{"id": 1}')
    reader_class: Any = type(lake.spark.read)
    load = reader_class.load

    def refusing(reader: Any, path: Any = None, **options: Any) -> DataFrame:
        if str(path).endswith("b.json"):
            raise features.SPARK_ERRORS[0]("java.nio.file.AccessDeniedException: b.json: getFileStatus: 403")
        frame: DataFrame = load(reader, path, **options)
        return frame

    monkeypatch.setattr(reader_class, "load", refusing)
    with pytest.raises(features.SPARK_ERRORS[0], match="403"):
        drained(lake, "json")


def test_message_says_that_all_was_left_out(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.put("a.json", "{broken")

    named = r"no file is left to read at .* \(1 quarantined\).*no schema is known.*Nothing was committed"
    with caplog.at_level(logging.INFO), pytest.raises(SchemaUnknownError, match=named):
        drained(lake, "json", on_corrupt="quarantine")
    assert "1 file can't be parsed" in caplog.text


def test_message_says_that_what_waits_tells_no_columns_either(lake: Lake) -> None:
    lake.put("a.json", "{broken")
    lake.put("b.json", "{broken")

    with pytest.raises(SchemaUnknownError, match=r"1 over_bound, 1 quarantined|1 quarantined, 1 over_bound") as raised:
        drained(lake, "json", on_corrupt="quarantine")
    assert "of the files that are left out for now 1 tell none either" in str(raised.value)


def test_broken_record_of_text_stops_a_run_that_fails_fast_alone(lake: Lake) -> None:
    lake.put("a.csv", "x,a")

    with pytest.raises(features.SPARK_ERRORS, match=r"a\.csv|FAILFAST"), lake.job() as job:
        job.read("raw").schema(SCHEMA).option("mode", "FAILFAST").csv(lake.path("raw")).collect()
    with lake.job() as job:
        assert rows_of(job.read("raw").schema(SCHEMA).csv(lake.path("raw"))) == [(None, "a")]


def test_another_version_of_the_file_is_read_and_ends_its_record(lake: Lake) -> None:
    lake.put("b.csv", "x,b")
    run(lake)
    lake.put("b.csv", "2,b")

    assert run(lake) == [(2, "b")]
    assert held(lake) == {}


@pytest.mark.parametrize("which", ["retry:{path}", "retry:*"])
def test_retry_by_name_reads_the_file_again(lake: Lake, which: str) -> None:
    lake.put("a.csv", "1,a")
    broken = lake.put("b.csv", "2;b")
    run(lake)
    before = lake.head().contexts["raw"].watermark

    changed = set_position(
        lake.store, "copy", "raw", which.format(path=broken), reason="the separator was wrong", who="ada"
    )

    assert changed.undone == ()
    assert lake.head().contexts["raw"].watermark == before
    assert held(lake) == {}
    assert run(lake, sep=";") == [(2, "b")]


def test_retry_of_a_file_that_is_not_there_names_those_that_are(lake: Lake) -> None:
    lake.put("b.csv", "x,b")
    run(lake)

    with pytest.raises(OptionError, match=r"no such file.*b\.csv.*Nothing was changed.*retry:\*"):
        set_position(lake.store, "copy", "raw", "retry:/nowhere.csv", reason="r", who="ada")


def test_rewind_takes_the_record_back(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    run(lake)
    lake.put("b.csv", "x,b")
    run(lake)

    rewind(lake.store, "copy", 1, reason="r", who="ada")

    assert held(lake) == {}
    run(lake)
    assert list(held(lake)) == ["b.csv"]


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_that_changes_nothing_leaves_broken_files_out_and_records_nothing(lake: Lake, option: str) -> None:
    lake.put("a.csv", "1,a")
    run(lake)
    lake.put("b.csv", "x,b")
    before = lake.state()

    with lake.job(option=option) as job:
        rows = rows_of(read(lake, job))

    assert rows == ([] if option == "pause" else [(1, "a")])
    assert lake.state() == before
    assert held(lake) == {}


@pytest.mark.seldom
def test_replay_reads_what_the_run_has_read(lake: Lake) -> None:
    lake.put("a.csv", "1,a")
    lake.put("b.csv", "x,b")
    with lake.job() as job:
        job.write(read(lake, job), "out").parquet(lake.path("out"))

    with lake.job(replay=1) as job:
        job.write(read(lake, job), "out").parquet(lake.path("out"))

    assert rows_of(lake.spark.read.parquet(lake.path("out"))) == [(1, "a")]
    assert list(held(lake)) == ["b.csv"]


@pytest.mark.parametrize("column", ["_corrupt_record", "broken"])
@pytest.mark.parametrize(("name", "good", "bad"), [("csv", "1,a", "x,b"), ("json", '{"id": 1, "name": "a"}', "{")])
def test_column_for_broken_records_in_the_schema_is_none_of_the_file(
    lake: Lake, name: str, good: str, bad: str, column: str
) -> None:
    lake.put("good", good)
    lake.put("bad", bad)
    assert run(lake, name, f"{SCHEMA}, {column} STRING", columnNameOfCorruptRecord=column) == [(1, "a", None)]
    assert list(held(lake)) == ["bad"]


def test_csv_without_a_schema_is_refused_before_anything_is_planned(lake: Lake) -> None:
    lake.put("a.csv", "1,a")

    with pytest.raises(OptionError, match=r"needs \.schema"), lake.job() as job:
        read(lake, job, schema=None)


def test_dropping_malformed_records_contradicts_quarantine(lake: Lake) -> None:
    lake.put("a.csv", "1,a")

    with pytest.raises(OptionError, match="DROPMALFORMED"), lake.job() as job:
        read(lake, job, mode="DROPMALFORMED")


def test_upstream_has_nothing_to_quarantine(lake: Lake) -> None:
    with pytest.raises(OptionError, match="on_corrupt: an option of files"), lake.job() as job:
        job.read("raw").files(on_corrupt="quarantine").upstream("other")


# ---- beside reread


def partition(lake: Lake, **read: Any) -> list[tuple[Any, ...]]:
    """Replace the partitions that something came for; return what the target holds then."""
    with lake.job() as job:
        reader = job.read("raw", **read).files(on_corrupt="quarantine", reread="partition")
        frame = reader.schema("id INT, month INT").csv(lake.path("raw"))
        write = job.write(frame, "out").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        write.partitionBy("month").parquet(lake.path("out"))
    return rows_of(lake.spark.read.parquet(lake.path("out")).select("id"))


@pytest.mark.seldom
def test_file_whose_partition_was_read_without_it_is_read_again_as_it_was(lake: Lake) -> None:
    first = lake.put("month=1/a.csv", "1")
    then = first.stat()
    lake.put("month=1/b.csv", "2")
    assert partition(lake) == [(1,), (2,)]
    lake.put("month=1/a.csv", "broken")
    lake.put("month=1/c.csv", "3")
    assert partition(lake) == [(2,), (3,)]
    lake.put("month=1/a.csv", "1")
    os.utime(first, (then.st_atime, then.st_mtime))
    assert partition(lake) == [(1,), (2,), (3,)]


@pytest.mark.seldom
def test_file_that_was_read_before_it_came_into_quarantine_is_read_when_it_is_let_out(lake: Lake) -> None:
    lake.put("month=1/a.csv", "x")
    with lake.job() as job:
        reader = job.read("raw").files(reread="partition").schema("id INT, month INT")
        job.write(reader.csv(lake.path("raw")), "out").partitionBy("month").parquet(lake.path("out"))
    lake.put("month=1/b.csv", "2")
    assert partition(lake) == [(2,)]
    set_position(lake.store, "copy", "raw", "retry:*", reason="a test", who="me")
    with lake.job() as job:
        reader = job.read("raw").files(reread="partition").schema("id INT, month INT")
        assert sorted(row.id or 0 for row in reader.csv(lake.path("raw")).collect()) == [0, 2]
