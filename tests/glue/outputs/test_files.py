"""Promise GLUE-3, writes: with enable rows are there after the commit, in any other run at once."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as t

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.choice import marks_of
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import ChoiceType, IntegerType, StringType
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.outputs.write import write_options
from airflow_bookmarks.glue.run import forget_runs
from tests.glue.outputs.conftest import Script

ROWS, SCHEMA = [(1, "a"), (2, "b")], "id int, name string"


def write(script: Script, rows: list[Any] = ROWS, schema: Any = SCHEMA, **kwargs: Any) -> Any:
    options = {"path": str(script.root / "out"), **kwargs.pop("connection_options", {})}
    given = {"connection_type": "s3", "format": "parquet", **kwargs}
    return write_options(script.run, script.frame(rows, schema), connection_options=options, **given)


@pytest.mark.seldom
def test_rows_are_there_after_the_commit(script: Script) -> None:
    script.begin()
    write(script, transformation_ctx="sink")
    assert script.seen(script.root / "out") == []

    script.commit()

    assert script.seen(script.root / "out") == ROWS


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["job-bookmark-pause", "job-bookmark-disable", None])
def test_rows_of_other_runs_are_there_at_once(script: Script, option: str | None) -> None:
    if option is not None:
        script.begin(option)
    write(script)

    assert script.seen(script.root / "out") == ROWS


@pytest.mark.seldom
def test_direct_writes_are_there_at_once_with_a_warning(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    script.spark.conf.set("spark.bookmarks.glue.writes", "direct")
    forget_runs()  # a run takes its settings when it is made
    script.begin()

    write(script)

    assert script.seen(script.root / "out") == ROWS
    assert "at least once" in caplog.text


@pytest.mark.seldom
def test_partition_keys_become_folders(script: Script) -> None:
    script.begin()
    write(script, connection_options={"partitionKeys": ["name"]})
    script.commit()

    assert (script.root / "out" / "name=a").is_dir()


@pytest.mark.seldom
def test_two_writes_to_one_path_are_two_outputs(script: Script) -> None:
    script.begin()
    write(script, transformation_ctx="sink")
    write(script, [(3, "c")], transformation_ctx="sink")
    script.commit()

    assert script.seen(script.root / "out") == [*ROWS, (3, "c")]


@pytest.mark.seldom
def test_one_ctx_for_two_paths_is_two_outputs(script: Script) -> None:
    script.begin()
    for name in ("one", "two"):
        write(script, transformation_ctx="sink", connection_options={"path": str(script.root / name)})
    script.commit()

    assert script.seen(script.root / "one") == script.seen(script.root / "two") == ROWS


@pytest.mark.seldom
@pytest.mark.parametrize("format", ["parquet", "glueparquet"])
def test_frame_without_rows_writes_no_file(script: Script, format: str) -> None:
    script.begin()
    write(script, [], format=format)
    write(script, [(7, "g")], connection_options={"path": str(script.root / "other")})
    script.commit()

    assert not list((script.root / "out").rglob("*.parquet"))
    assert script.seen(script.root / "other") == [(7, "g")]


@pytest.mark.seldom
@pytest.mark.parametrize("format", ["parquet", "glueparquet", "csv", "json"])
def test_frame_without_rows_leaves_no_file_in_a_direct_write(script: Script, format: str) -> None:
    write(script, format=format, connection_options={"path": str(script.root / "full")})
    for name in ("out", "full"):
        write(script, [], format=format, connection_options={"path": str(script.root / name)})

    assert not list((script.root / "out").glob("part-*"))
    assert len(script.seen(script.root / "full", "parquet" if "parquet" in format else format, header=True)) == 2


def test_frame_without_columns_writes_nothing(script: Script) -> None:
    script.begin()
    write(script, [], t.StructType([]))
    script.commit()

    assert not (script.root / "out").exists()


@pytest.mark.seldom
def test_rows_from_nowhere_are_published_by_a_run_with_nothing_new(script: Script) -> None:
    raw = script.root / "raw"
    raw.mkdir()
    (raw / "a.csv").write_text("1\n")
    for number in (1, 2):
        run = script.begin()
        assert run.job is not None
        run.job.read("raw").csv(str(raw)).count()
        write(script, [(number, "log")])
        script.commit()

    assert script.seen(script.root / "out") == [(1, "log"), (2, "log")]


# ---- formats


def test_csv_has_a_header_and_what_the_script_says(script: Script) -> None:
    rows = [(1, 'say "hi"'), (2, "a;b")]
    options = {"separator": ";", "writeHeader": True}
    write(script, rows, format="csv", format_options=options)

    lines = {line for file in (script.root / "out").glob("*.csv") for line in file.read_text().splitlines()}
    assert lines == {"id;name", '1;"say ""hi"""', '2;"a;b"'}


@pytest.mark.seldom
def test_csv_without_header_and_quotes(script: Script) -> None:
    write(script, [(1, "a")], format="csv", format_options={"writeHeader": "false", "quoteChar": -1})

    assert "".join(file.read_text() for file in (script.root / "out").glob("*.csv")) == "1,a\n"


def test_glueparquet_has_its_codec_and_row_groups(script: Script) -> None:
    import pyarrow.parquet as pq

    write(script, format="glueparquet", format_options={"compression": "gzip", "blockSize": 1024, "pageSize": 512})

    (file, *_) = (script.root / "out").glob("*.parquet")
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "GZIP"


def test_unknown_compression_is_an_error(script: Script) -> None:
    with pytest.raises(OptionError, match="compression='rar'"):
        write(script, format="glueparquet", format_options={"compression": "rar"})


@pytest.mark.seldom
def test_unknown_option_is_named_once(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        write(script, connection_options={"colour": "red"})

    assert caplog.text.count("'colour' is not known") == 1


@pytest.mark.parametrize(
    ("kind", "format"), [("mongodb", None), ("s3", "ion"), ("marketplace.jdbc", None)], ids=["mongodb", "ion", "market"]
)
def test_what_is_out_of_reach_is_refused(script: Script, kind: str, format: str | None) -> None:
    with pytest.raises(GlueUnsupportedError, match="is not part of this layer"):
        write(script, connection_type=kind, format=format)


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["job-bookmark-enable", "job-bookmark-disable"])
def test_column_of_nulls_keeps_its_place_in_csv(script: Script, option: str) -> None:
    out = script.root / "out"
    for number, schema in enumerate(["a int, b string, c int", "a int, b void, c int"]):
        script.begin(option)
        rows = script.frame([(number, "x" if "string" in schema else None, 7)], schema)
        write_options(
            script.run,
            rows,
            connection_type="s3",
            connection_options={"path": str(out)},
            format="csv",
            format_options={"writeHeader": False},
        )
        script.commit()

    found = script.spark.read.csv(str(out), "a int, b string, c int").orderBy("a").collect()
    assert [tuple(row) for row in found] == [(0, "x", 7), (1, None, 7)]


@pytest.mark.seldom
def test_column_of_nulls_is_left_out_of_parquet(script: Script) -> None:
    frame = script.spark.createDataFrame([(1,)], "id int")
    frame = frame.withColumn("nothing", F.lit(None)).withColumn("deep", F.struct(F.lit(1).alias("x"), F.lit(None)))
    given = DynamicFrame.fromDF(frame, script.context, "frame")

    write_options(
        script.run,
        given,
        connection_type="s3",
        connection_options={"path": str(script.root / "out")},
        format="glueparquet",
    )

    read = script.spark.read.parquet(str(script.root / "out"))
    assert read.schema.simpleString() == "struct<id:int,deep:struct<x:int>>"


@pytest.mark.seldom
def test_type_that_changes_between_runs_is_an_error_of_glueparquet(script: Script) -> None:
    script.begin()
    write(script, format="glueparquet", transformation_ctx="sink")
    script.commit()
    script.begin()

    with pytest.raises(OptionError, match="'id' was int and is string"):
        write(script, [("x", "a")], "id string, name string", format="glueparquet", transformation_ctx="sink")


def test_added_and_missing_columns_end_in_one_readable_schema(script: Script) -> None:
    for rows, schema in ((ROWS, SCHEMA), ([(3, 0.5)], "id int, price double")):
        script.begin()
        write(script, rows, schema, format="glueparquet", transformation_ctx="sink")
        script.commit()

    read = script.spark.read.option("mergeSchema", True).parquet(str(script.root / "out"))
    assert sorted(read.columns) == ["id", "name", "price"]
    assert read.count() == 3


# ---- choices


def choices(script: Script) -> DynamicFrame:
    kind = ChoiceType([IntegerType(), StringType()])
    column = F.struct(
        F.when(F.col("id") == 1, F.lit(7)).alias("int"), F.when(F.col("id") == 2, F.lit("x")).alias("string")
    )
    frame = script.spark.createDataFrame(ROWS, SCHEMA).select("id", column.alias("v", metadata=marks_of(kind)))
    return DynamicFrame.of(frame, script.context, "choices")


def test_choice_is_the_value_that_it_holds_in_json(script: Script) -> None:
    path = script.root / "out"
    write_options(
        script.run, choices(script), connection_type="s3", connection_options={"path": str(path)}, format="json"
    )

    lines = [json.loads(line) for file in path.glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(lines, key=lambda line: line["id"]) == [{"id": 1, "v": 7}, {"id": 2, "v": "x"}]


@pytest.mark.seldom
def test_choice_is_a_struct_in_parquet(script: Script) -> None:
    path = script.root / "out"
    write_options(
        script.run, choices(script), connection_type="s3", connection_options={"path": str(path)}, format="parquet"
    )

    assert script.seen(path) == [(1, (7, None)), (2, (None, "x"))]


def test_choice_has_no_place_in_csv(script: Script) -> None:
    with pytest.raises(OptionError, match="resolveChoice"):
        write_options(
            script.run,
            choices(script),
            connection_type="s3",
            connection_options={"path": str(script.root / "out")},
            format="csv",
        )


def test_staged_choice_in_json_is_published(script: Script, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    path = script.root / "out"
    script.begin()
    write_options(
        script.run, choices(script), connection_type="s3", connection_options={"path": str(path)}, format="json"
    )
    script.commit()

    lines = [json.loads(line) for file in path.glob("run-*") for line in file.read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == [1, 2]


# ---- bad input


def test_what_is_no_frame_is_a_type_error(script: Script) -> None:
    with pytest.raises(TypeError, match="expected a DynamicFrame"):
        write_options(
            script.run, [1], connection_type="s3", connection_options={"path": str(script.root / "o")}, format="json"
        )


def test_missing_path_is_an_error(script: Script) -> None:
    with pytest.raises(OptionError, match="'path' is missing"):
        write(script, connection_options={"path": ""})


def test_unknown_partition_key_is_an_error(script: Script) -> None:
    with pytest.raises(OptionError, match="partitionKeys name"):
        write(script, connection_options={"partitionKeys": ["day"]})


@pytest.mark.seldom
def test_collection_is_written_by_the_names_of_its_frames(script: Script, tmp_path: Path) -> None:
    frames = {"a": script.frame(ROWS, SCHEMA), "b": script.frame([(3, "c")], SCHEMA)}
    sink = script.context.getSink("s3", path=str(tmp_path / "all"))
    sink.setFormat("parquet")

    sink.write(DynamicFrameCollection(frames, script.context))

    assert script.seen(tmp_path / "all" / "a") == ROWS
    assert script.seen(tmp_path / "all" / "b") == [(3, "c")]
