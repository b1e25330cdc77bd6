"""An increment with nothing new, of which no type is known, as that of JSON: it goes through each transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from tests.glue.transforms.frames import frame_of, rows_of


def nothing(spark: SparkSession) -> DynamicFrame:
    return DynamicFrame.of(spark.createDataFrame([], ""), GlueContext(spark), "nothing", is_nothing_new=True)


@pytest.mark.seldom
@pytest.mark.parametrize(
    "transform",
    [
        lambda frame: frame.apply_mapping([("id", "int", "id", "long")]),
        lambda frame: frame.filter(lambda rec: rec["id"] > 1),
        lambda frame: frame.map(lambda rec: rec),
        lambda frame: frame.join("id", "id", frame),
        lambda frame: frame.mergeDynamicFrame(frame, ["id"]),
        lambda frame: frame.unnest(),
        lambda frame: frame.simplify_ddb_json(),
        lambda frame: frame.unbox("text", "json"),
        lambda frame: frame.unbox("text", "csv", withHeader=True),
        lambda frame: frame.relationalize("root").select("root"),
        lambda frame: frame.split_fields(["id"], "a", "b").select("a"),
        lambda frame: frame.split_rows({"id": {">": 1}}, "a", "b").select("a"),
    ],
    ids=["mapping", "filter", "map", "join", "merge", "unnest", "ddb", "json", "csv", "tables", "fields", "rows"],
)
def test_each_transform_takes_it(shared_spark: SparkSession, transform: Callable[[Any], DynamicFrame]) -> None:
    made = transform(nothing(shared_spark))
    assert (made.count(), made.toDF().columns) == (0, [])


@pytest.mark.seldom
def test_what_is_joined_or_merged_with_nothing(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1, "a")], "id int, name string")
    assert frame.join("id", "id", nothing(shared_spark)).count() == 0
    assert nothing(shared_spark).join("id", "id", frame).count() == 0
    assert rows_of(frame.mergeDynamicFrame(nothing(shared_spark), ["id"])) == [(1, "a")]
    assert rows_of(nothing(shared_spark).mergeDynamicFrame(frame, ["id"])) == [(1, "a")]
