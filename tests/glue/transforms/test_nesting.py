"""`unnest`, and the transforms that take the types of DynamoDB away."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.choice import spark_schema
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import ChoiceType, Field, IntegerType, StringType, StructType
from airflow_bookmarks.glue.transforms.classes import UnnestFrame
from airflow_bookmarks.glue.transforms.typed_column import FieldPathError
from tests.glue.transforms.frames import frame_of, rows_of, tree

_EXPORT = (
    "Item struct<parentMap: struct<M: struct<childMap: struct<M: struct<appName: struct<S: string>,"
    " updatedAt: struct<N: string>>>>>, strings: struct<SS: array<string>>, tags: struct<L: array<struct<S: string>>>,"
    " isDDBJson: struct<BOOL: boolean>, nullValue: struct<NULL: boolean>, code: struct<S: string, N: string>,"
    " flag: struct<S: string, BOOL: boolean>>"
)
_CHILD = ((("app",), ("17",)),)
_ROW = ((((_CHILD,),), (["a"],), ([("x",), ("y",)],), (True,), (True,), (None, "5"), (None, False)),)


def test_example_of_aws_makes_fields_of_structs_columns(shared_spark: SparkSession) -> None:
    frame = frame_of(
        shared_spark,
        [((("36301", ["a"], ("AL",))), "10001")],
        "Address struct<`Zip.Code`: string, Array: array<string>, State: struct<Code: string>>, `Provider Id` string",
    )
    unnested = UnnestFrame.apply(frame)
    assert tree(unnested) == [
        "|-- Address.Zip.Code: string",
        "|-- Address.Array: array",
        "|    |-- element: string",
        "|-- Address.State.Code: string",
        "|-- Provider Id: string",
    ]
    assert rows_of(unnested) == [("36301", ["a"], "AL", "10001")]


def test_struct_of_a_choice_is_apart_from_what_else_it_may_be(shared_spark: SparkSession) -> None:
    kind = ChoiceType([StructType([Field("b", IntegerType())]), StringType(), IntegerType()])
    rows = shared_spark.createDataFrame(
        [(((1,), None, None),), ((None, "x", None),), ((None, None, 7),)], spark_schema(StructType([Field("a", kind)]))
    )
    unnested = DynamicFrame.of(rows.coalesce(1), GlueContext(shared_spark), "mixed").unnest()
    assert tree(unnested) == ["|-- a: choice", "|    |-- string", "|    |-- int", "|-- a.b: int"]
    assert rows_of(unnested) == [(None, 1), (("x", None), None), ((None, 7), None)]


def test_example_of_aws_simplifies_an_export(shared_spark: SparkSession) -> None:
    simple = frame_of(shared_spark, [_ROW], _EXPORT).simplify_ddb_json()
    assert tree(simple) == [
        "|-- parentMap: struct",
        "|    |-- childMap: struct",
        "|    |    |-- appName: string",
        "|    |    |-- updatedAt: string",
        "|-- strings: array",
        "|    |-- element: string",
        "|-- tags: array",
        "|    |-- element: string",
        "|-- isDDBJson: boolean",
        "|-- nullValue: null",
        "|-- code: string",
        "|-- flag: choice",
        "|    |-- string",
        "|    |-- boolean",
    ]
    assert rows_of(simple) == [((("app", "17"),), ["a"], ["x", "y"], True, None, "5", (None, False))]


def test_unnest_of_an_export_leaves_elements_of_lists(shared_spark: SparkSession) -> None:
    unnested = frame_of(shared_spark, [_ROW], _EXPORT).unnest_ddb_json()
    lines = tree(unnested)
    at = lines.index("|-- tags: array")
    assert lines[at : at + 3] == ["|-- tags: array", "|    |-- element: struct", "|    |    |-- S: string"]
    assert "|-- isDDBJson: boolean" in lines


def test_columns_beside_the_items_stay(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [((("x",),), 1)], "Item struct<a: struct<S: string>>, n int")
    assert rows_of(frame.simplify_ddb_json()) == [("x", 1)]


@pytest.mark.parametrize(
    "make", [lambda frame: frame.unnest(), lambda frame: frame.relationalize("root").select("root")]
)
@pytest.mark.parametrize(
    ("schema", "row", "said"),
    [
        ("`a.b` int, a struct<b: int>", (1, (2,)), "the fields 'a.b' and 'a' both become a column 'a.b'"),
        ("a struct<b: int>, `a.B` int", ((2,), 1), "the fields 'a' and 'a.B' both become a column 'a.B'"),
        ("a struct<`b.c`: int, b: struct<c: int>>", ((1, (2,)),), "parts of 'a' become a column 'a.b.c'"),
    ],
    ids=["column", "case", "struct"],
)
def test_path_that_is_the_name_of_another_field_is_an_error_that_names_both(
    shared_spark: SparkSession, make: Callable[[DynamicFrame], DynamicFrame], schema: str, row: tuple[Any], said: str
) -> None:
    with pytest.raises(FieldPathError, match=re.escape(said)):
        make(frame_of(shared_spark, [row], schema))


def test_path_that_is_the_name_of_another_field_is_free_once_that_is_renamed(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1, (2,))], "`a.b` int, a struct<b: int>").rename_field("`a.b`", "other")
    assert tree(frame.unnest()) == ["|-- other: int", "|-- a.b: int"]


@pytest.mark.seldom
def test_path_within_an_array_that_is_the_name_of_another_field_is_an_error(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [([(1, (2,))],)], "x array<struct<`a.b`: int, a: struct<b: int>>>")
    with pytest.raises(FieldPathError, match=r"relationalize: parts of 'x' become a column 'x\.val\.a\.b'"):
        frame.relationalize("root")
