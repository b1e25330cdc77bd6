"""`apply_mapping`, held against AWS's examples and the rules for bad input."""

from __future__ import annotations

import datetime
import logging
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.transforms.classes import ApplyMapping
from tests.glue.transforms.frames import codes, frame_of, friends, rows_of, tree


def test_example_of_aws_renames_and_casts(shared_spark: SparkSession) -> None:
    persons = frame_of(
        shared_spark,
        [("Collins", "Michael", "1944-10-15", "x"), ("Huizenga", "Bill", "no date", "y")],
        "family_name string, name string, birth_date string, gender string",
    )
    mapped = persons.apply_mapping(
        [
            ("family_name", "String", "last_name", "String"),
            ("name", "String", "first_name", "String"),
            ("birth_date", "String", "date_of_birth", "Date"),
        ]
    )
    assert tree(mapped) == ["|-- last_name: string", "|-- first_name: string", "|-- date_of_birth: date"]
    assert rows_of(mapped) == [
        ("Collins", "Michael", datetime.date(1944, 10, 15)),
        ("Huizenga", "Bill", None),
    ]


def test_example_of_aws_nests_by_dots(shared_spark: SparkSession) -> None:
    flat = frame_of(
        shared_spark,
        [("039 - EXTRACRANIAL", 10001, "SOUTHEAST ALABAMA", "32963.07", "5777.24")],
        "`drg definition` string, `provider id` bigint, `provider name` string, ACC string, ATP string",
    )
    nested = flat.apply_mapping(
        [
            ("drg definition", "string", "drg", "string"),
            ("provider id", "long", "provider.id", "long"),
            ("provider name", "string", "provider.name", "string"),
            ("ACC", "string", "charges.covered", "double"),
            ("ATP", "string", "charges.total_pay", "double"),
        ]
    )
    assert tree(nested) == [
        "|-- drg: string",
        "|-- provider: struct",
        "|    |-- id: long",
        "|    |-- name: string",
        "|-- charges: struct",
        "|    |-- covered: double",
        "|    |-- total_pay: double",
    ]
    assert rows_of(nested) == [("039 - EXTRACRANIAL", (10001, "SOUTHEAST ALABAMA"), (32963.07, 5777.24))]


def test_paths_lead_into_structs_and_backticks_quote(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(("WY", 7), "old")], "place struct<state: string, n: int>, `this.old.name` string")
    mapped = frame.apply_mapping(
        [
            ("place.state", "string", "state", "string"),
            ("`this.old.name`", "string", "thisNewName", "string"),
            ("place.n", "int", "`n.o`", "long"),
        ]
    )
    assert tree(mapped) == ["|-- state: string", "|-- thisNewName: string", "|-- n.o: long"]
    assert rows_of(mapped) == [("WY", "old", 7)]


def test_names_agree_in_any_case_unless_asked_otherwise(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1,)], "OrderId int")
    assert rows_of(frame.apply_mapping([("orderid", "int", "id", "int")])) == [(1,)]
    assert frame.apply_mapping([("orderid", "int", "id", "int")], case_sensitive=True).schema().fields == []


def test_absent_source_is_left_out_and_the_log_names_it(
    shared_spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    with caplog.at_level(logging.WARNING):
        mapped = frame.apply_mapping([("id", "int", "id", "int"), ("gone.away", "string", "x", "string")])
    assert tree(mapped) == ["|-- id: int"]
    assert "'gone.away'" in caplog.text


@pytest.mark.parametrize(
    ("kind", "shown", "value"),
    [
        ("tinyint", "byte", 12),
        ("SMALLINT", "short", 12),
        ("int", "int", 12),
        ("long", "long", 12),
        ("BigInt", "long", 12),
        ("float", "float", 12.0),
        ("double", "double", 12.0),
        ("decimal(12,3)", "decimal(12,3)", Decimal("12.000")),
        ("string", "string", "12"),
    ],
)
def test_text_becomes_the_type_named(shared_spark: SparkSession, kind: str, shown: str, value: Any) -> None:
    mapped = frame_of(shared_spark, [("12",), ("twelve",)], "n string").apply_mapping([("n", "string", "n", kind)])
    assert tree(mapped) == [f"|-- n: {shown}"]
    assert rows_of(mapped) == [(value,), ("twelve" if kind == "string" else None,)]


def test_values_with_parts_stay_as_they_are(shared_spark: SparkSession) -> None:
    mapped = friends(shared_spark).apply_mapping(
        [("location", "struct", "place", "struct"), ("friends", "array", "friends", "array<struct<name:string>>")]
    )
    assert tree(mapped) == [
        "|-- place: struct",
        "|    |-- state: string",
        "|    |-- county: string",
        "|-- friends: array",
        "|    |-- element: struct",
        "|    |    |-- name: string",
        "|    |    |-- age: int",
    ]


def test_each_type_of_a_choice_is_cast(shared_spark: SparkSession) -> None:
    mapped = codes(shared_spark).apply_mapping([("id", "int", "id", "int"), ("code", "choice", "code", "string")])
    assert rows_of(mapped) == [(1, "10"), (2, "x7"), (3, None), (4, "44")]
    as_numbers = codes(shared_spark).apply_mapping([("code", "long", "code", "long")])
    assert rows_of(as_numbers) == [(10,), (None,), (None,), (44,)]


def test_two_or_three_parts_keep_or_name_the_type(shared_spark: SparkSession) -> None:
    mapped = codes(shared_spark).apply_mapping([("code", "kept"), ("id", "int", "first"), ("id", "second", "string")])
    assert tree(mapped) == [
        "|-- kept: choice",
        "|    |-- long",
        "|    |-- string",
        "|-- first: int",
        "|-- second: string",
    ]


def test_declared_types_of_text_are_applied_without_a_query(shared_spark: SparkSession) -> None:
    text = shared_spark.createDataFrame([("007", "1.5"), ("x", "2.5")], "n string, price string")
    declared = spark_types.StructType().add("n", "long").add("price", "double")
    frame = DynamicFrame.of(text, GlueContext(shared_spark), "csv", declared=declared)
    mapped = frame.apply_mapping(
        [("n", "long", "n", "long"), ("n", "long", "text", "string"), ("price", "double", "price", "double")]
    )
    assert rows_of(mapped) == [(7, "7", 1.5), (None, "x", 2.5)]


def test_increment_with_nothing_new_keeps_its_types(shared_spark: SparkSession) -> None:
    empty = shared_spark.createDataFrame([], "id int, name string")
    frame = DynamicFrame.of(empty, GlueContext(shared_spark), "orders", is_nothing_new=True)
    mapped = frame.apply_mapping([("id", "int", "order_id", "long")])
    assert mapped.toDF().columns == []
    assert mapped.to_sink().schema.simpleString() == "struct<order_id:bigint>"


@pytest.mark.parametrize(
    ("mappings", "error", "words"),
    [
        ("id", TypeError, "list of tuples"),
        ([["id", "int", "id", "int"]], TypeError, "is a tuple"),
        ([("id", 1, "id", "int")], TypeError, "is a tuple of text"),
        ([("id",)], ValueError, "two to four parts"),
        ([("id", "int", "id", "int", "x")], ValueError, "two to four parts"),
        ([("id", "int", "a", "int"), ("id", "int", "a.b", "int")], ValueError, "'a.b'"),
        ([("id", "int", "a", "int"), ("id", "int", "a", "long")], ValueError, "'a'"),
        ([("id", "int", "id", "integerish")], OptionError, "timestamp_ntz, struct, object, map, array"),
        ([("id", "struct", "id", "struct")], OptionError, "is of type int"),
        ([("`id", "int", "id", "int")], OptionError, "backtick"),
    ],
    ids=["text", "list", "number", "one", "five", "below-a-field", "twice", "type", "no-parts", "path"],
)
def test_mapping_that_says_nothing_clear_is_refused(
    shared_spark: SparkSession, mappings: Any, error: type[Exception], words: str
) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    with pytest.raises(error, match="Nothing was read or changed") as raised:
        frame.apply_mapping(mappings)
    assert words in str(raised.value)


def test_the_same_mapping_twice_counts_once(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    assert rows_of(frame.apply_mapping([("id", "int", "id", "int")] * 2)) == [(1,)]


def test_class_takes_a_dynamic_frame_alone(shared_spark: SparkSession) -> None:
    frame = shared_spark.range(1)
    with pytest.raises(TypeError, match="by DynamicFrame"):
        ApplyMapping.apply(frame=frame, mappings=[("id", "long", "id", "long")])
