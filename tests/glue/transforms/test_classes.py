"""The classes of `awsglue.transforms`: their common form, and those over collections."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
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


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda frame: frame.relationalize("root", "/tmp", "ctx"), "relationalize: options='ctx'"),
        (lambda frame: classes.Relationalize.apply(frame, "/tmp", "root", "ctx"), "relationalize: options='ctx'"),
        (lambda frame: frame.relationalize("root", None, "[1]"), "options="),
        (lambda frame: frame.mergeDynamicFrame(frame, ["age"], "ctx", "info"), "mergeDynamicFrame: options='info'"),
        (lambda frame: frame.spigot("/tmp", "ctx"), "spigot: options 'ctx'"),
        (lambda frame: frame.apply_mapping([("age", "int", "age", "int")], "ctx"), "case_sensitive='ctx'"),
        (lambda frame: frame.map(lambda record: record, "ctx"), "map: preservesPartitioning='ctx'"),
        (lambda frame: frame.mapPartitions(iter, "ctx"), "mapPartitions: preservesPartitioning='ctx'"),
        (lambda frame: frame.mapPartitionsWithIndex(zip, "ctx"), "mapPartitionsWithIndex: preserves"),
        (lambda frame: frame.coalesce(1, "ctx"), "coalesce: shuffle='ctx'"),
    ],
)
def test_text_one_place_off_is_no_option_and_no_flag(
    shared_spark: SparkSession, call: Callable[[DynamicFrame], Any], said: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        call(friends(shared_spark))


@pytest.mark.parametrize("options", [None, {}, "", '{"a": 1}'])
def test_options_are_a_dict_or_its_json(shared_spark: SparkSession, options: Any) -> None:
    flat = classes.SelectFields.apply(friends(shared_spark), ["age"])
    assert list(flat.relationalize("root", None, options).keys()) == ["root"]


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
