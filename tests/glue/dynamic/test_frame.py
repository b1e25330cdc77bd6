"""What scripts make of frames as wholes: from DataFrames and back, unions, collections."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    BooleanType,
    ChoiceType,
    DoubleType,
    Field,
    IntegerType,
    LongType,
    StringType,
    StructType,
)
from tests.glue.dynamic.frames import frame_of, held, tree


@pytest.mark.seldom
def test_frame_of_a_dataframe_has_its_rows_and_gives_them_back(shared_spark: SparkSession) -> None:
    rows = shared_spark.createDataFrame([(1, "a", None)], "id long, `a.b` string, s struct<x: int>")

    frame = DynamicFrame.fromDF(rows, None, "rows")

    assert tree(frame) == "|-- id: long\n|-- a.b: string\n|-- s: struct\n|    |-- x: int"
    assert frame.toDF().schema == rows.schema
    assert frame.toDF().collect() == rows.collect()
    assert frame.repartition(3).getNumPartitions() == 3
    assert frame.repartition(3).coalesce(2).getNumPartitions() == 2
    assert DynamicFrame(rows, None, "rows").count() == 1


def test_what_is_no_dataframe_makes_no_frame() -> None:
    with pytest.raises(TypeError, match="expected a DataFrame and got object"):
        DynamicFrame(object(), None, "jdf")  # type: ignore[arg-type]


@pytest.mark.seldom
def test_choices_outlive_what_is_done_to_their_rows(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, '{"x": 1, "l": [{"y": 1}, {"y": "a"}]}', '{"x": "b"}')
    rows = frame.df

    done = rows.where("x is not null").select("l", "x").union(rows.select("l", "x")).repartition(2)
    done = done.withColumnRenamed("x", "z").orderBy("z.int")

    assert tree(frame.derived(done)) == (
        "|-- l: array\n|    |-- element: struct\n|    |    |-- y: choice\n"
        "|    |    |    |-- int\n|    |    |    |-- string\n"
        "|-- z: choice\n|    |-- int\n|    |-- string"
    )


def test_union_has_all_rows_and_choices_where_types_differ(shared_spark: SparkSession) -> None:
    first = frame_of(shared_spark, '{"a": 1, "s": {"x": 1}, "l": [1], "only": true}')
    second = frame_of(shared_spark, '{"a": "b", "s": {"x": 5000000000, "y": "z"}, "l": ["c", 2.5]}', '{"a": 2}')

    both = first.union(second)

    types = {field.name: field.dataType for field in both.schema()}
    assert types == {
        "a": ChoiceType([IntegerType(), StringType()]),
        "l": ArrayType(ChoiceType([IntegerType(), DoubleType(), StringType()])),
        "only": BooleanType(),
        "s": StructType([Field("x", LongType()), Field("y", StringType())]),
    }
    assert held(both) == [
        {"a": 1, "s": {"x": 1, "y": None}, "l": [1], "only": True},
        {"a": "b", "s": {"x": 5000000000, "y": "z"}, "l": ["c", 2.5], "only": None},
        {"a": 2, "s": None, "l": None, "only": None},
    ]
    with pytest.raises(TypeError, match="a DataFrame: make it one by"):
        first.union(second.toDF())  # type: ignore[arg-type]


@pytest.mark.seldom
def test_union_with_rows_of_wider_types_keeps_them(shared_spark: SparkSession) -> None:
    mixed = frame_of(shared_spark, '{"a": 1, "l": []}', '{"a": "b"}')
    wide = DynamicFrame.fromDF(shared_spark.sql("SELECT 5000000000 AS a, CAST(NULL AS VOID) AS l"), None)

    assert [record["a"] for record in held(mixed.union(wide))] == [1, "b", 5000000000]


def test_collection_has_frames_by_name(shared_spark: SparkSession) -> None:
    first, second = (DynamicFrame.fromDF(shared_spark.range(number), None, f"f{number}") for number in (1, 2))
    frames = DynamicFrameCollection({"one": first, "two": second}, None)

    assert list(frames.keys()) == ["one", "two"] == list(frames)
    assert (len(frames), frames["two"], frames.select("one")) == (2, second, first)
    mapped = frames.map(lambda frame, ctx: frame.rename_field("id", ctx.lower()), "c_")
    assert mapped.select("one").toDF().columns == ["c_one"]
    flat = frames.flatmap(lambda frame, ctx: DynamicFrameCollection({"x": frame}, None) if ctx == "one" else frame)
    assert list(flat.keys()) == ["one_x", "two"]
    with pytest.raises(KeyError, match="'three'"):
        frames.select("three")
    with pytest.raises(TypeError, match="expected a DynamicFrame"):
        DynamicFrameCollection({"df": shared_spark.range(1)}, None)
