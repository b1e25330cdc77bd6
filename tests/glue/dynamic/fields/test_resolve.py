"""`resolveChoice`: each action, at each depth, and what is no sense."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.fields.resolve import ResolveOption
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import DoubleType, IntegerType
from tests.glue.dynamic.frames import frame_of, held, tree

RECORDS = (
    '{"id": 1, "price": 100, "s": {"code": 1}, "myList": [{"price": 100.00}, {"price": "$100.00"}], "l": [1, "b"]}',
    '{"id": 2, "price": "7.5", "s": {"code": "x"}, "myList": [], "l": []}',
    '{"id": 3, "price": {"amount": 3}, "l": null}',
)


@pytest.fixture(scope="module")
def orders(shared_spark: SparkSession) -> DynamicFrame:
    return frame_of(shared_spark, *RECORDS)


def _values(frame: DynamicFrame, column: str) -> list[Any]:
    return [record[column] for record in held(frame)]


@pytest.mark.seldom
def test_cast_makes_one_type_and_null_of_what_does_not_fit(orders: DynamicFrame) -> None:
    made = orders.resolveChoice(
        specs=[("price", "cast:double"), ("myList[].price", "cast:double"), ("id", "cast:long")]
    )

    assert tree(made.select_fields(["price", "id"])) == "|-- price: double\n|-- id: long"
    assert _values(made, "price") == [100.0, 7.5, None]
    assert _values(made, "myList")[0] == [{"price": 100.0}, {"price": None}]


def test_project_to_text_has_all_values_and_structs_as_json(orders: DynamicFrame) -> None:
    made = orders.resolveChoice(specs=[("price", "project:string")])

    assert _values(made, "price") == ["100", "7.5", '{"amount":3}']


def test_make_cols_makes_a_column_for_each_type(orders: DynamicFrame) -> None:
    made = orders.resolveChoice(specs=[("price", "make_cols"), ("s.code", "make_cols"), ("id", "make_cols")])

    shown = made.toDF().select("id", "price_int", "price_string", "price_struct.amount", "s.code_int", "s.code_string")
    assert [tuple(row) for row in shown.collect()] == [
        (1, 100, None, None, 1, None),
        (2, None, "7.5", None, None, "x"),
        (3, None, None, 3, None, None),
    ]


@pytest.mark.seldom
def test_make_struct_makes_a_struct_of_the_types(orders: DynamicFrame) -> None:
    made = orders.resolveChoice(specs=[("price", "make_struct")])

    assert tree(made.select_fields(["price"])).startswith(
        "|-- price: struct\n|    |-- int: int\n|    |-- string: string"
    )
    assert _values(made, "price")[0] == {"int": 100, "string": None, "struct": None}


@pytest.mark.seldom
def test_one_action_settles_all_choices(orders: DynamicFrame) -> None:
    assert "choice" not in tree(orders.resolveChoice(choice="cast:string"))
    cols = orders.resolveChoice(choice="make_cols")
    assert "choice" not in tree(cols)
    assert _values(cols, "l")[0] == [{"int": 1, "string": None}, {"int": None, "string": "b"}]
    assert "choice" not in tree(orders.resolveChoice(choice="make_struct"))


def test_elements_of_an_array_are_cast(orders: DynamicFrame) -> None:
    assert _values(orders.resolveChoice(specs=("l[]", "cast:int")), "l") == [[1, None], [], None]
    with pytest.raises(OptionError, match="make_cols makes columns"):
        orders.resolveChoice(specs=[("l[]", "make_cols")])


def test_to_df_has_structs_or_what_options_say(orders: DynamicFrame) -> None:
    plain = orders.toDF()
    assert plain.schema["price"].dataType.fieldNames() == ["int", "string", "struct"]  # type: ignore[attr-defined]
    assert all(not field.metadata for field in plain.schema.fields)
    assert "choice" not in tree(DynamicFrame.fromDF(plain, None))  # as in Glue: what was a choice is a struct by then

    options = [ResolveOption("price", "Project", DoubleType()), ResolveOption("s.code", "KeepAsStruct")]
    assert [row.price for row in orders.toDF(options).collect()] == [100.0, 7.5, None]
    with pytest.raises(OptionError, match="needs a type"):
        orders.toDF([ResolveOption("price", "Cast")])
    with pytest.raises(OptionError, match="'Drop'"):
        orders.toDF([ResolveOption("price", "Drop", IntegerType())])


@pytest.mark.seldom
def test_catalog_says_the_type_of_each_choice(spark: SparkSession) -> None:
    spark.conf.set("spark.bookmarks.glue.catalog", "hive")
    spark.sql("CREATE TABLE orders_of_choices (price DOUBLE, `s` STRUCT<code: STRING>, other INT) USING parquet")
    frame = frame_of(spark, *RECORDS)

    made = frame.resolveChoice(choice="match_catalog", database="default", table_name="orders_of_choices")

    assert made.toDF().schema["price"].dataType == spark_types.DoubleType()
    assert tree(made.select_fields(["s", "l"])) == (
        "|-- s: struct\n|    |-- code: string\n"
        "|-- l: array\n|    |-- element: choice\n|    |    |-- int\n|    |    |-- string"
    )
    with pytest.raises(OptionError, match="needs database"):
        frame.resolveChoice(choice="match_catalog", database="default")


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "none was given"),
    "both": ({"specs": [("price", "cast:int")], "choice": "make_cols"}, "both was given"),
    "an unknown action": ({"specs": [("price", "drop")]}, "no action 'drop'"),
    "an unknown action for all": ({"choice": "cast"}, "no action 'cast'"),
    "an unknown type": ({"specs": [("price", "cast:number")]}, "'number'"),
    "an unknown path": ({"specs": [("prize", "cast:int")]}, "no field 'prize'"),
    "no pair": ({"specs": [("price",)]}, "a spec is a pair"),
}


@pytest.mark.parametrize(("arguments", "said"), NONSENSE.values(), ids=NONSENSE)
def test_what_makes_no_sense_is_an_error(orders: DynamicFrame, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        orders.resolveChoice(**arguments)
