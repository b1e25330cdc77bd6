"""Types that a catalog declares over text: applied when asked for, and a choice where values don't fit."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from airflow_bookmarks.glue.dynamic import base
from airflow_bookmarks.glue.dynamic.declared import with_declared_types
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from tests.glue.dynamic.frames import held, tree

DECLARED = spark_types.StructType(
    [
        spark_types.StructField("provider id", spark_types.LongType()),
        spark_types.StructField("DAY", spark_types.DateType()),
        spark_types.StructField("price", spark_types.DecimalType(8, 2)),
        spark_types.StructField("note", spark_types.StringType()),
        spark_types.StructField("absent", spark_types.LongType()),
    ]
)


@pytest.fixture
def providers(spark: SparkSession) -> DynamicFrame:
    rows = [("10001", "2026-11-29", "1.50", "5"), ("", None, " ", "x"), ("erroneous", "2026-01-01", "3", "")]
    text = spark.createDataFrame(rows, "`provider id` string, day string, price string, note string")
    return DynamicFrame.of(text, None, "providers", declared=DECLARED)


def test_column_whose_values_all_fit_has_its_type_and_another_is_a_choice(providers: DynamicFrame) -> None:
    assert tree(providers) == (
        "|-- provider id: choice\n|    |-- long\n|    |-- string\n"
        "|-- day: date\n|-- price: decimal(8,2)\n|-- note: string"
    )
    assert held(providers) == [
        {"provider id": 10001, "day": date(2026, 11, 29), "price": Decimal("1.50"), "note": "5"},
        {"provider id": None, "day": None, "price": None, "note": "x"},
        {"provider id": "erroneous", "day": date(2026, 1, 1), "price": Decimal("3.00"), "note": ""},
    ]
    assert [row["provider id"] for row in providers.toDF().collect()] == [(10001, None), None, (None, "erroneous")]


def test_cast_looks_at_no_value_and_fields_keep_their_types(
    providers: DynamicFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[DataFrame] = []

    def noted(frame: DataFrame) -> DataFrame:
        asked.append(frame)
        return with_declared_types(frame)

    monkeypatch.setattr(base, "with_declared_types", noted)

    made = providers.resolveChoice(specs=[("provider id", "cast:long")]).rename_field("provider id", "id")
    made = made.drop_fields(["note"]).select_fields(["day", "id"]).repartition(1)

    assert asked == []
    assert tree(made) == "|-- day: date\n|-- id: long"
    assert [row.id for row in made.toDF().orderBy("id").collect()] == [None, None, 10001]


@pytest.mark.parametrize("action", ["cast:long", "project:long"])
def test_cast_takes_a_text_by_its_declared_type_as_a_mapping_does(providers: DynamicFrame, action: str) -> None:
    casts = providers.resolveChoice(specs=[("price", action), ("note", "cast:long")])
    mapped = providers.apply_mapping([("price", "decimal", "price", "long"), ("note", "string", "note", "long")])
    expected = [{"price": 1, "note": 5}, {"price": None, "note": None}, {"price": 3, "note": None}]
    assert held(casts.select_fields(["price", "note"])) == held(mapped) == expected


def test_choices_of_declared_columns_are_settled(providers: DynamicFrame) -> None:
    cols = providers.resolveChoice(choice="make_cols")

    assert cols.toDF().columns == ["provider id_long", "provider id_string", "day", "price", "note"]


def test_increment_with_nothing_new_has_no_columns_for_scripts_and_its_types_for_sinks(spark: SparkSession) -> None:
    text = spark.createDataFrame([], "`provider id` string, day string, price string, note string")
    empty = DynamicFrame.of(text, None, "providers", is_nothing_new=True, declared=DECLARED)

    made = empty.resolveChoice(specs=[("absent", "cast:int"), ("price", "cast:double")]).drop_fields(["note"])

    assert made.toDF().columns == []
    assert len(made.schema()) == 0
    assert made.count() == 0
    assert made.to_sink().dtypes == [("provider id", "bigint"), ("day", "date"), ("price", "double")]


def test_increment_with_nothing_new_shows_its_columns_where_the_conf_says_so(spark: SparkSession) -> None:
    spark.conf.set("spark.bookmarks.glue.empty_columns", "true")
    empty = DynamicFrame.of(spark.createDataFrame([], "id string"), None, "ids", is_nothing_new=True)

    assert empty.toDF().columns == ["id"]
    assert tree(empty) == "|-- id: string"
