"""Frames for the tests of transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.choice import spark_schema
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import ChoiceType, Field, IntegerType, LongType, StringType, StructType

# The records of AWS's examples of drop_fields.
FRIENDS = (
    "name string, age int, location struct<state: string, county: string>, "
    "friends array<struct<name: string, age: int>>"
)
FRIENDS_ROWS = [
    ("Sally", 23, ("WY", "Fremont"), []),
    ("Varun", 34, ("NE", "Douglas"), [("Arjun", 3)]),
    ("George", 52, ("NY", None), [("Fred", None), ("Amy", 15)]),
    ("Haruki", 21, ("AK", "Denali"), None),
    ("Sheila", 63, None, [("Nancy", 22)]),
]


def frame_of(spark: SparkSession, rows: Sequence[Any], schema: str, name: str = "frame") -> DynamicFrame:
    """Make a frame of rows, in one partition, so that they have an order."""
    return DynamicFrame.fromDF(spark.createDataFrame(rows, schema).coalesce(1), GlueContext(spark), name)


def friends(spark: SparkSession) -> DynamicFrame:
    """Make the frame of AWS's examples of drop_fields."""
    return frame_of(spark, FRIENDS_ROWS, FRIENDS, "friends")


def codes(spark: SparkSession) -> DynamicFrame:
    """Make a frame whose column `code` is a number in some records and text in others."""
    schema = StructType([Field("id", IntegerType()), Field("code", ChoiceType([LongType(), StringType()]))])
    rows = [(1, (10, None)), (2, (None, "x7")), (3, None), (4, (None, "44"))]
    return DynamicFrame.of(spark.createDataFrame(rows, spark_schema(schema)), GlueContext(spark), "codes")


def tree(frame: DynamicFrame) -> list[str]:
    """Return the lines that printSchema prints below the root."""
    return frame.schema().treeString().splitlines()[1:]


def rows_of(frame: DynamicFrame | DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows as plain tuples, in order."""
    rows = frame.toDF() if isinstance(frame, DynamicFrame) else frame
    return [plain(row) for row in rows.collect()]


def dicts_of(frame: DynamicFrame) -> list[Mapping[str, Any]]:
    """Return the rows as dicts, sorted by their text."""
    return sorted((row.asDict(recursive=True) for row in frame.toDF().collect()), key=repr)


def plain(value: Any) -> Any:
    """Return rows within a value as tuples."""
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return [plain(each) for each in value] if isinstance(value, list) else value
