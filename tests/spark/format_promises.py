"""Promises FILE-1, SINK-1, SINK-2 of every format. `test_formats.py` runs them in a process of their own: Avro is a
package, and a session that was started without it can't have it. By hand: `pytest tests/spark/format_promises.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.spark.readers.files import Way
from tests.spark.lake import Lake, columns_of, rows_of
from tests.spark.round_trip import XML, expected_of, frames, outcome
from tools.jars import fetch_for_spark

# Those that are thorough are played in short by test_delta.py and test_sinks.py.
FORMATS = [
    "avro",
    XML,
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("csv", "json", "orc", "parquet", "text")),
]
OPTIONS: dict[str, dict[str, Any]] = {"csv": {"header": True, "inferSchema": True}, "xml": {"rowTag": "flight"}}
COMPRESSED = {
    "avro": ("deflate", ".avro"),  # inside of the file
    "csv": ("gzip", ".csv.gz"),
    "json": ("gzip", ".json.gz"),
    "orc": ("zlib", ".zlib.orc"),
    "parquet": ("zstd", ".zstd.parquet"),
    "text": ("bzip2", ".txt.bz2"),
    "xml": ("gzip", ".xml.gz"),
}


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Start Spark with Avro."""
    return {"spark.jars": ",".join(map(str, sorted(fetch_for_spark("avro").glob("*.jar"))))}


def flights(lake: Lake, source: str, *rows: tuple[str, int]) -> DataFrame:
    """Return a frame that the format can hold: text has one column."""
    frame = lake.spark.createDataFrame(list(rows), "carrier STRING, delay INT")
    return frame.selectExpr("concat(carrier, ' ', delay) AS value") if source == "text" else frame


def add(lake: Lake, source: str, *rows: tuple[str, int]) -> None:
    writer = flights(lake, source, *rows).coalesce(1).write.mode("append").format(source)
    writer.options(**OPTIONS.get(source, {})).save(lake.path("raw"))


def read(lake: Lake, source: str, way: Way = "paths", option: str = "enable") -> tuple[Any, Any]:
    with lake.job(option=option) as job:
        reader = job.read("raw").files(read_by=way).format(source).options(**OPTIONS.get(source, {}))
        frame = reader.load(lake.path("raw"))
        return columns_of(frame), rows_of(frame)


@pytest.mark.parametrize("source", FORMATS)
def test_second_run_reads_only_what_came_after_the_first(lake: Lake, source: str) -> None:
    def expected(*rows: tuple[str, int]) -> Any:
        return rows_of(flights(lake, source, *rows))

    add(lake, source, ("AA", 1), ("BA", 2))
    columns, rows = read(lake, source)
    assert rows == expected(("AA", 1), ("BA", 2))
    add(lake, source, ("CA", 3))
    assert read(lake, source, lake.ways[-1], "pause") == (columns, expected(("CA", 3)))
    assert read(lake, source) == (columns, expected(("CA", 3)))
    assert read(lake, source) == (columns, [])


@pytest.mark.parametrize("target", ["avro", XML])  # the others: test_sinks.py
def test_append_is_seen_after_the_commit_and_not_before_and_once(lake: Lake, target: str) -> None:
    def look() -> Any:
        reader = lake.spark.read.format(target).options(**OPTIONS.get(target, {}))
        return rows_of(reader.schema(flights(lake, target).schema).load(lake.path("copy")))

    def run(*rows: tuple[str, int], fails: bool = False) -> None:
        with lake.job() as job:
            lake.read(job)
            writer = job.write(flights(lake, target, *rows), "out").format(target)
            writer.options(**OPTIONS.get(target, {})).save(lake.path("copy"))
            assert len(lake.staged("copy/_bookmarks")) >= 1
            seen.append(look())
            if fails:
                raise InterruptedError

    seen: list[Any] = []
    lake.put("a.txt", "a")
    with pytest.raises(InterruptedError):
        run(("AA", 1), fails=True)
    run(("AA", 1))
    lake.put("b.txt", "b")
    run(("BA", 2))
    assert seen == [[], [], rows_of(flights(lake, target, ("AA", 1)))]
    assert look() == rows_of(flights(lake, target, ("AA", 1), ("BA", 2)))
    assert lake.staged("copy/_bookmarks") == []


@pytest.mark.parametrize("target", FORMATS)
def test_compression_and_partitions_are_as_the_script_says(lake: Lake, target: str) -> None:
    codec, ending = COMPRESSED[target]
    lake.put("a.txt", "a")
    with lake.job() as job:
        lake.read(job)
        frame = flights(lake, target, ("AA", 1), ("BA", 2)).selectExpr("*", "1 AS month")
        writer = job.write(frame, "out").format(target).partitionBy("month").option("compression", codec)
        writer.options(**OPTIONS.get(target, {})).save(lake.path("copy"))
    names = lake.visible("copy")
    assert names
    assert all(name.startswith("month=1/run-1.") and name.endswith(ending) for name in names)
    if target == "avro":
        assert all(b"avro.codec\x0edeflate" in (lake.root / "copy" / name).read_bytes() for name in names)
    reader = lake.spark.read.format(target).options(**OPTIONS.get(target, {}))
    assert rows_of(reader.load(lake.path("copy"))) == rows_of(frame)


@pytest.mark.parametrize("target", ["avro", XML])
def test_upstream_reads_what_was_published_in_the_format(lake: Lake, target: str) -> None:
    options = OPTIONS.get(target, {})
    lake.put("a.txt", "a")
    with lake.job() as job:
        lake.read(job)
        job.write(flights(lake, target, ("AA", 1)), "out").format(target).options(**options).save(lake.path("copy"))
    with lake.job("consumer") as job:
        frame = job.read("flights").upstream("copy")
        assert rows_of(frame) == [("AA", 1)]


# ---- Avro carries the schema of its writer


def put_avro(lake: Lake, name: str, ddl: str, *rows: tuple[Any, ...]) -> None:
    folder = lake.root / f"{name}.tmp"
    lake.spark.createDataFrame(list(rows), ddl).coalesce(1).write.format("avro").save(str(folder))
    (part,) = folder.glob("part-*.avro")
    part.rename(lake.root / "raw" / f"{name}.avro")


@pytest.mark.needs("wider types")
def test_avro_column_that_only_a_later_file_has_is_not_lost(lake: Lake) -> None:
    put_avro(lake, "a", "carrier STRING, delay INT", ("AA", 1))
    put_avro(lake, "b", "carrier STRING, delay BIGINT, tail STRING", ("BA", 2**40, "N1"))
    columns, rows = read(lake, "avro")
    assert [(name, kind) for name, kind, _ in columns] == [
        ("carrier", "string"),
        ("delay", "bigint"),
        ("tail", "string"),
    ]
    assert rows == [("AA", 1, None), ("BA", 2**40, "N1")]


def test_avro_is_looked_at_by_its_heads_and_one_file_of_each_kind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    import airflow_bookmarks.spark.readers.schema as readers_schema

    put_avro(lake, "a", "carrier STRING", ("AA",))
    put_avro(lake, "z", "carrier STRING, tail STRING", ("BA", "N1"))
    first = lake.root / "raw" / "a.avro"
    for i in range(20):
        (lake.root / "raw" / f"b{i}.avro").write_bytes(first.read_bytes())
    asked: list[int] = []
    seen = readers_schema._SchemaScan._seen

    def counted(self: Any, paths: Any, **options: str) -> Any:
        asked.append(len(paths))
        return seen(self, paths, **options)

    monkeypatch.setattr(readers_schema._SchemaScan, "_seen", counted)
    with lake.job() as job:
        assert job.read("raw").format("avro").load(lake.path("raw")).count() == 22
    assert asked == [1, 1]


@pytest.mark.needs("classic")
def test_avro_file_of_another_name_is_read_though_hadoop_says_otherwise(lake: Lake) -> None:
    add(lake, "avro", ("AA", 1))
    (part,) = (lake.root / "raw").glob("*.avro")
    part.rename(part.with_suffix(".dat"))
    hadoop = lake.spark._jsc.hadoopConfiguration()
    hadoop.set("avro.mapred.ignore.inputs.without.extension", "true")
    try:
        with lake.job() as job:
            frame = job.read("raw").format("avro").schema("carrier STRING, delay INT").load(lake.path("raw"))
            assert rows_of(frame) == [("AA", 1)]
    finally:
        hadoop.unset("avro.mapred.ignore.inputs.without.extension")


def test_file_that_is_no_avro_is_told_by_spark(lake: Lake) -> None:
    put_avro(lake, "a", "carrier STRING", ("AA",))
    Path(lake.path("raw", "b.avro")).write_bytes(b"Obj\x01\x02")
    with pytest.raises(Exception, match=r"b\.avro"), lake.job() as job:
        job.read("raw").format("avro").load(lake.path("raw")).collect()
    assert lake.state()[1] == 0


def test_upstream_reads_what_was_written_as_avro_as_the_table_says(lake: Lake) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")  # where a clock hour comes twice
    found = {kind: outcome(lake, "avro", kind, frame) for kind, frame in frames(lake.spark).items()}
    assert found == expected_of(lake, "avro", found), "\n".join(f"{kind}: {said}" for kind, said in found.items())


def test_small_integers_of_avro_come_back_within_other_types_and_beside_partitions(lake: Lake) -> None:
    ddl = "t TINYINT, s STRUCT<x: SMALLINT, y: ARRAY<TINYINT>>, m MAP<STRING, SMALLINT>, p TINYINT"
    written = lake.spark.createDataFrame([(1, (2, [3, None]), {"k": 4}, 5), (None, None, None, -5)], ddl)
    for _ in range(2):
        with lake.job("first") as job:
            job.write(written, "out", when_empty="publish").partitionBy("p").format("avro").save(lake.path("first"))
    for rows in (2 * rows_of(written), []):
        with lake.job("second") as job:
            frame = job.read("raw").upstream("first")
            assert columns_of(frame) == columns_of(written)
            assert rows_of(frame) == sorted(rows, key=repr)
