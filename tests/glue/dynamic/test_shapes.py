"""Shapes of JSON as Spark writes them, merged to what is known and what is open."""

from __future__ import annotations

import pytest

from airflow_bookmarks.glue.dynamic.choice import Steps
from airflow_bookmarks.glue.dynamic.json_records.shapes import Answer, ShapeMerge, shape_of
from airflow_bookmarks.glue.dynamic.types import DataType, LongType, NullType, StringType, StructType, UnknownType


def merged(*shapes: str) -> tuple[DataType, dict[Steps, Answer]]:
    merge = ShapeMerge()
    return merge.merged(map(shape_of, shapes)), merge.answers


def test_places_of_one_type_need_no_answer() -> None:
    shape, answers = merged("OBJECT<a: BIGINT, b: ARRAY<STRING>>", "OBJECT<a: VOID, c: OBJECT<d: BOOLEAN>>")
    assert shape == shape_of("OBJECT<a: BIGINT, b: ARRAY<STRING>, c: OBJECT<d: BOOLEAN>>")
    assert answers == {}


@pytest.mark.parametrize(
    ("kinds", "shapes"),
    [
        ({"INT", "STRING"}, ["BIGINT", "STRING", "VOID"]),
        ({"INT", "DOUBLE"}, ["BIGINT", "DECIMAL(3,1)"]),
        ({"DOUBLE"}, ["DOUBLE", "DECIMAL(3,1)"]),
        ({"DOUBLE"}, ["DECIMAL(1,0)", "DECIMAL(18,0)"]),
        ({"INT", "DOUBLE"}, ["BIGINT", "DECIMAL(1,0)"]),
        ({"HUGE"}, ["DECIMAL(19,0)", "DECIMAL(25,0)"]),
        ({"HUGE", "INT", "BOOLEAN"}, ["DECIMAL(20,0)", "BIGINT", "BOOLEAN"]),
    ],
)
def test_values_of_several_types_are_known_by_their_kinds(kinds: set[str], shapes: list[str]) -> None:
    shape, answers = merged(*[f"OBJECT<x: {each}>" for each in shapes])
    assert isinstance(shape, StructType)
    assert shape.getField("x").dataType == UnknownType()
    assert answers == {("x",): Answer(frozenset(kinds))}


def test_objects_and_arrays_beside_others_are_merged_by_themselves() -> None:
    _, answers = merged("OBJECT<x: STRING>", "OBJECT<x: OBJECT<y: BIGINT>>", "OBJECT<x: OBJECT<z: STRING>>")
    assert answers == {("x",): Answer(frozenset({"STRING", "OBJECT"}), shape_of("OBJECT<y: BIGINT, z: STRING>"))}


@pytest.mark.parametrize("taken_together", ["VARIANT", "DOUBLE", "DECIMAL(21,1)", "DECIMAL(19,0)"])
def test_what_an_array_of_one_record_has_taken_together_stays_open(taken_together: str) -> None:
    shape, answers = merged(f"OBJECT<x: ARRAY<{taken_together}>>", "OBJECT<x: ARRAY<BIGINT>>")
    assert shape == shape_of("OBJECT<x: ARRAY<VARIANT>>")
    assert answers == {}


def test_array_of_fractions_that_are_whole_is_known() -> None:
    _, answers = merged("OBJECT<x: ARRAY<DECIMAL(1,0)>>", "OBJECT<x: ARRAY<DECIMAL(4,2)>>")
    assert answers == {("x", None): Answer(frozenset({"DOUBLE"}))}


def test_nothing_is_answered_below_a_place_that_is_open() -> None:
    _, answers = merged(
        "OBJECT<x: ARRAY<VARIANT>>", "OBJECT<x: ARRAY<OBJECT<y: BIGINT>>>", "OBJECT<x: ARRAY<OBJECT<y: STRING>>>"
    )
    assert answers == {}


def test_fields_are_sorted_as_spark_sorts_the_keys_of_an_object() -> None:
    shape, _ = merged("OBJECT<`\uffff`: STRING, b: STRING>", "OBJECT<`\U0001f600`: STRING, a: STRING>")
    assert isinstance(shape, StructType)
    assert [field.name for field in shape] == ["a", "b", "\U0001f600", "\uffff"]


def test_no_shape_and_nothing_but_null_is_null() -> None:
    assert merged()[0] == merged("VOID")[0] == NullType()
    assert merged("STRING")[0] == StringType()
    assert merged("BIGINT")[0] == LongType()
