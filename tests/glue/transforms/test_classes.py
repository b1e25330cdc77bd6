"""The classes of `awsglue.transforms`: their common form, and those over collections."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.transforms import classes
from airflow_bookmarks.glue.transforms.transform import GlueTransform
from tests.glue.transforms.frames import codes, frame_of, friends, tree

ALL = [each for each in vars(classes).values() if isinstance(each, type) and issubclass(each, GlueTransform)][1:]


@pytest.mark.parametrize("transform", ALL, ids=lambda each: each.__name__)
def test_each_class_describes_itself_in_the_form_of_aws(transform: type[GlueTransform]) -> None:
    described = transform.describe()["transform"]
    assert described["name"] == transform.name() == transform.__name__
    assert all(set(arg) == {"name", "type", "description", "optional", "defaultValue"} for arg in described["args"])
    assert set(described["returns"]) == {"type", "description"}
    assert described["location"] == "internal"
    assert transform.describeTransform()
    assert transform.describeErrors()[0]["type"] == "TypeError"


def test_transform_that_describes_nothing_says_so() -> None:
    class Own(GlueTransform):
        pass

    for describe in (Own.describeArgs, Own.describeReturn, GlueTransform.describeTransform):
        with pytest.raises(NotImplementedError):
            describe()
    with pytest.raises(NotImplementedError):
        Own.apply()


def test_example_of_aws_applies_a_transform_to_a_collection(shared_spark: SparkSession) -> None:
    split = codes(shared_spark).split_fields(["id"], "personal_info", "business_info")
    flat = classes.FlatMap.apply(
        split, classes.ResolveChoice, frame_name="frame", transformation_ctx="tcx", choice="cast:string"
    )
    assert list(flat.keys()) == ["personal_info", "business_info"]
    assert tree(flat.select("business_info")) == ["|-- code: string"]


def test_collections_that_a_transform_returns_become_one(shared_spark: SparkSession) -> None:
    split = friends(shared_spark).split_fields(["friends"], "lists", "rest")
    flat = classes.FlatMap.apply(split, classes.Relationalize, frame_name="frame", name="root")
    assert len(flat) == 3


def test_function_is_applied_to_each_frame_of_a_collection(shared_spark: SparkSession) -> None:
    split = friends(shared_spark).split_fields(["age"], "ages", "rest")
    made = classes.MapToCollection.apply(split, lambda frame, ctx: frame.rename_field("age", "years"))
    assert tree(classes.SelectFromCollection.apply(dfc=made, key="ages")) == ["|-- years: int"]


def test_collection_is_asked_for_where_one_is_needed(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    with pytest.raises(TypeError, match="DynamicFrameCollection"):
        classes.SelectFromCollection.apply(dfc=frame, key="x")


def test_null_fields_are_dropped_and_others_stay(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1, None, None)], "id int, nothing void, unknown string")
    assert tree(classes.DropNullFields.apply(frame)) == ["|-- id: int", "|-- unknown: string"]
