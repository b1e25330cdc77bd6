"""`unbox`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.error_records import ErrorThresholdError
from airflow_bookmarks.glue.errors import GlueUnsupportedError
from airflow_bookmarks.glue.transforms.classes import Unbox
from tests.glue.transforms.frames import dicts_of, frame_of, rows_of, tree

_TEXT = json.dumps({"Street": "1108 ROSS", "City": "DOTHAN", "Zip.Code": "36301", "Array": ["a", "b"]})


@pytest.mark.seldom
def test_example_of_aws_makes_a_struct_of_json(shared_spark: SparkSession) -> None:
    frame = frame_of(
        shared_spark, [("$5777", _TEXT, "10001"), ("$1", None, "2")], "Total string, AddressString string, Id string"
    )
    unboxed = frame.unbox("AddressString", "json")
    lines = tree(unboxed)
    assert lines[:2] == ["|-- Total: string", "|-- AddressString: struct"]
    assert sorted(lines[2:-1]) == sorted(
        [
            "|    |-- Street: string",
            "|    |-- City: string",
            "|    |-- Zip.Code: string",
            "|    |-- Array: array",
            "|    |    |-- element: string",
        ]
    )
    assert lines[-1] == "|-- Id: string"
    by_id = {row["Id"]: row["AddressString"] for row in dicts_of(unboxed)}
    assert by_id["10001"] == json.loads(_TEXT)
    assert by_id["2"] is None


def test_texts_that_differ_in_type_make_a_choice(shared_spark: SparkSession) -> None:
    unboxed = frame_of(shared_spark, [(1, '"x"'), (2, "5"), (3, "[1]")], "id int, v string").unbox("v", "json")
    assert set(tree(unboxed)) >= {"|-- v: choice", "|    |-- string", "|    |-- int", "|    |-- array"}


@pytest.mark.seldom
def test_text_that_is_no_json_is_an_error_record(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1, '{"a": 1}'), (2, '{"a": ')], "id int, v string")
    unboxed = Unbox.apply(frame, "v", "json")
    assert rows_of(unboxed) == [(1, (1,))]
    assert unboxed.errorsCount() == 1


def test_nested_text_is_parsed_where_it_stands(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(("x", '{"n": 1}'),), (None,)], "a struct<k: string, t: string>")
    unboxed = frame.unbox("a.t", "json")
    assert tree(unboxed) == ["|-- a: struct", "|    |-- k: string", "|    |-- t: struct", "|    |    |-- n: int"]
    assert sorted(rows_of(unboxed), key=repr) == [(("x", (1,)),), (None,)]


@pytest.mark.seldom
def test_schema_given_is_the_one_taken(shared_spark: SparkSession) -> None:
    schema = spark_types.StructType().add("a", "long").add("gone", "string").json()
    unboxed = frame_of(shared_spark, [('{"a": 1}',)], "v string").unbox("v", "json", withSchema=schema)
    assert rows_of(unboxed) == [((1, None),)]


@pytest.mark.seldom
def test_text_that_is_no_json_is_an_error_record_where_a_schema_is_given(shared_spark: SparkSession) -> None:
    schema = spark_types.StructType().add("a", "long").json()
    texts = ['{"a": 1}', '{"a": ', "not json", "5", '{"a": "x"}', "null", " ", None]
    frame = frame_of(shared_spark, list(enumerate(texts)), "id int, v string")

    unboxed = frame.unbox("v", "json", withSchema=schema, transformation_ctx="parsed", info="here")

    assert rows_of(unboxed) == [(0, (1,)), (4, (None,)), (5, (None,)), (6, None), (7, None)]
    assert unboxed.errorsCount() == 3
    errors = [row["error"] for row in dicts_of(unboxed.errorsAsDynamicFrame())]
    assert sorted(error["source"] for error in errors) == ["5", "not json", '{"a": ']
    assert errors[0]["callsite"] == {"site": "parsed", "info": "here"}


@pytest.mark.seldom
@pytest.mark.parametrize("options", [{}, {"withSchema": spark_types.StructType().add("a", "long").json()}])
def test_frame_with_more_bad_texts_than_allowed_is_not_written(
    shared_spark: SparkSession, options: dict[str, Any]
) -> None:
    texts = [(number, '{"a": ') for number in range(5)]
    frame = frame_of(shared_spark, [(9, '{"a": 1}'), *texts], "id int, v string")
    with pytest.raises(ErrorThresholdError, match="5 records could not be made, and stageThreshold is 4"):
        frame.unbox("v", "json", stageThreshold=4, **options).to_sink()
    assert frame.unbox("v", "json", stageThreshold=5, **options).to_sink().count() == 1


def test_texts_with_different_lines_of_names_are_refused(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [("a,b\n1,2",), ("b,a\n3,4",)], "v string")
    with pytest.raises(OptionError, match="'v' begin with different lines of names"):
        frame.unbox("v", "csv", withHeader=True)


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a,b", {}, {"col0": "a", "col1": "b"}),
        ("a;'b;c'", {"separator": ";", "quoteChar": "'"}, {"col0": "a", "col1": "b;c"}),
        ("h1|h2\n1|2", {"separator": "|", "withHeader": True}, {"h1": "1", "h2": "2"}),
        ("skipped\n1,2", {"skipFirst": True}, {"col0": "1", "col1": "2"}),
        ("skipped", {"skipFirst": True}, None),
    ],
    ids=["plain", "quoted", "header", "skipped", "nothing-left"],
)
def test_csv_is_one_line(
    shared_spark: SparkSession, text: str, options: dict[str, Any], expected: dict[str, str] | None
) -> None:
    unboxed = frame_of(shared_spark, [(text,)], "v string").unbox("v", "csv", **options)
    assert dicts_of(unboxed) == [{"v": expected}]


@pytest.mark.parametrize(
    ("path", "format", "options", "error"),
    [
        ("v", "avro", {}, GlueUnsupportedError),
        ("v", "csv", {"withHeader": True, "skipFirst": True}, GlueUnsupportedError),
        ("v", "json", {"separator": ","}, OptionError),
        ("v", "json", {"withSchema": "struct<a: int>"}, OptionError),
        ("gone", "json", {}, OptionError),
        ("id", "json", {}, OptionError),
    ],
    ids=["format", "header-and-first", "option", "schema", "absent", "no-text"],
)
def test_what_it_cannot_parse_is_refused(
    shared_spark: SparkSession, path: str, format: str, options: dict[str, Any], error: type[Exception]
) -> None:
    frame = frame_of(shared_spark, [(1, "{}")], "id int, v string")
    with pytest.raises(error, match="Nothing was read or changed"):
        frame.unbox(path, format, **options)
