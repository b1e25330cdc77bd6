"""`relationalize`: tables, ids, and where ids go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.dynamic.choice import spark_schema
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import ArrayType, ChoiceType, Field, IntegerType, StringType, StructType
from airflow_bookmarks.glue.job import Job
from airflow_bookmarks.glue.transforms.classes import Relationalize
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.glue.transforms.frames import frame_of, friends, rows_of, tree

CONTACTS = "id string, contact_details array<struct<type: string, value: string>>"
CONTACT_ROWS: list[Any] = [
    ("f4fc30ee", [("fax", "202-225-1314"), ("phone", "202-225-3772"), ("twitter", "MikeRossUpdates")]),
    ("aaaa0000", []),
    ("bbbb1111", None),
    ("e3c60f34", [("fax", "202-225-7856"), ("phone", "202-225-2711")]),
]


@pytest.mark.seldom
def test_example_of_aws_gives_a_table_for_each_array(shared_spark: SparkSession) -> None:
    tables = frame_of(shared_spark, CONTACT_ROWS, CONTACTS).relationalize("hist_root", "s3://glue-sample/temp-dir/")
    assert list(tables.keys()) == ["hist_root", "hist_root_contact_details"]
    assert tree(tables.select("hist_root_contact_details")) == [
        "|-- id: long",
        "|-- index: int",
        "|-- contact_details.val.type: string",
        "|-- contact_details.val.value: string",
    ]
    assert rows_of(tables.select("hist_root")) == [
        ("f4fc30ee", 1),
        ("aaaa0000", None),
        ("bbbb1111", None),
        ("e3c60f34", 2),
    ]
    details = tables.select("hist_root_contact_details").toDF().where("id = 2 or id = 75").orderBy(["id", "index"])
    assert rows_of(details) == [(2, 0, "fax", "202-225-7856"), (2, 1, "phone", "202-225-2711")]


@pytest.mark.seldom
def test_structs_become_columns_named_by_their_path(shared_spark: SparkSession) -> None:
    tables = friends(shared_spark).relationalize("root")
    assert tables.select("root").toDF().columns == ["name", "age", "location.state", "location.county", "friends"]
    assert rows_of(tables.select("root_friends").toDF().orderBy("id", "index")) == [
        (1, 0, "Arjun", 3),
        (2, 0, "Fred", None),
        (2, 1, "Amy", 15),
        (3, 0, "Nancy", 22),
    ]


@pytest.mark.seldom
def test_arrays_in_arrays_are_tables_with_ids_of_their_own(shared_spark: SparkSession) -> None:
    rows: list[Any] = [
        ([(1, ["x", "y"]), (2, []), (3, ["z"])],),
        ([(4, ["u"])],),
    ]
    tables = frame_of(shared_spark, rows, "a array<struct<n: int, b: array<string>>>").relationalize("root")
    assert list(tables.keys()) == ["root", "root_a", "root_a.val.b"]
    assert rows_of(tables.select("root")) == [(1,), (2,)]
    assert rows_of(tables.select("root_a").toDF().orderBy("id", "index")) == [
        (1, 0, 1, 1),
        (1, 1, 2, None),
        (1, 2, 3, 2),
        (2, 0, 4, 3),
    ]
    inner = tables.select("root_a.val.b").toDF()
    assert inner.columns == ["id", "index", "a.val.b.val"]
    assert rows_of(inner.orderBy("id", "index")) == [(1, 0, "x"), (1, 1, "y"), (2, 0, "z"), (3, 0, "u")]


@pytest.mark.seldom
def test_tables_join_back_whatever_the_number_of_partitions(shared_spark: SparkSession) -> None:
    many = shared_spark.range(100).select(
        F.col("id").alias("key"), F.expr("transform(sequence(1, int(id % 3)), x -> id * 10)").alias("items")
    )
    many = many.withColumn("items", F.when(F.col("key") % 3 != 0, F.col("items")))
    tables = DynamicFrame.fromDF(many.repartition(7), GlueContext(shared_spark), "many").relationalize("root")
    root, items = tables.select("root").toDF(), tables.select("root_items").toDF()
    ids = sorted(row.items for row in root.where("items is not null").collect())
    assert ids == list(range(1, 67))
    joined = root.join(items, root["items"] == items["id"]).select("key", "`items.val`").collect()
    assert sorted(row[0] * 10 for row in joined) == sorted(row[1] for row in joined)
    assert len(joined) == 99


@pytest.mark.seldom
def test_second_action_gives_the_same_ids_of_rows_in_no_order(shared_spark: SparkSession) -> None:
    shuffled = shared_spark.range(200).select("id", F.rand().alias("r"), F.array("id").alias("a")).repartition(5, "r")
    tables = DynamicFrame.fromDF(shuffled, GlueContext(shared_spark), "shuffled").relationalize("root")
    root = tables.select("root").toDF().select("id", "a")
    assert {tuple(row) for row in root.collect()} == {tuple(row) for row in root.collect()}


@pytest.mark.seldom
def test_map_is_an_array_of_its_entries(shared_spark: SparkSession) -> None:
    tables = frame_of(shared_spark, [({"a": 1},), ({},)], "m map<string, int>").relationalize("root")
    assert tables.select("root_m").toDF().columns == ["id", "index", "m.val.key", "m.val.value"]
    assert rows_of(tables.select("root_m")) == [(1, 0, "a", 1)]


@pytest.mark.seldom
def test_array_in_some_records_and_text_in_others(shared_spark: SparkSession) -> None:
    kind = ChoiceType([StringType(), ArrayType(IntegerType())])
    frame = shared_spark.createDataFrame(
        [(("text", None),), ((None, [5, 6]),), (None,)], spark_schema(StructType([Field("v", kind)]))
    )
    tables = DynamicFrame.of(frame.coalesce(1), GlueContext(shared_spark), "mixed").relationalize("root")
    assert tree(tables.select("root")) == ["|-- v: string", "|-- v_array: long"]
    assert rows_of(tables.select("root")) == [("text", None), (None, 1), (None, None)]
    assert rows_of(tables.select("root_v_array")) == [(1, 0, 5), (1, 1, 6)]


@pytest.mark.seldom
def test_what_parquet_cannot_hold_is_kept(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(None, [None], 1)], "nothing void, a array<void>, id int")
    tables = frame.relationalize("root")
    assert rows_of(tables.select("root").toDF().select("nothing", "a", "id")) == [(None, 1, 1)]
    assert rows_of(tables.select("root_a")) == [(1, 0, None)]


def test_flat_frame_is_one_table(shared_spark: SparkSession) -> None:
    tables = frame_of(shared_spark, [((1,),)], "a struct<b: int>").relationalize("root")
    assert list(tables.keys()) == ["root"]
    assert tables.select("root").toDF().columns == ["a.b"]


def test_name_that_is_empty_is_refused(shared_spark: SparkSession) -> None:
    with pytest.raises(OptionError, match="empty"):
        friends(shared_spark).relationalize("")


def run_once(spark: SparkSession, ctx: str = "tables", **arguments: str) -> list[Any]:
    """Make one run of a job that makes tables of two records with an array and one without; return the ids."""
    context = GlueContext(spark)
    job = Job(context)
    job.init("nightly", {"JOB_NAME": "nightly", **arguments})
    frame = frame_of(spark, [([1],), ([],), ([2],)], "a array<int>")
    tables = Relationalize.apply(frame=frame, staging_path="/unused", name="root", transformation_ctx=ctx)
    ids = [row[0] for row in tables.select("root").toDF().collect()]
    job.commit()
    return ids


def test_ids_go_on_from_the_last_committed_run(spark: SparkSession, store: BookmarkStore, tmp_path: Path) -> None:
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?namespace=test")
    enable = {"job_bookmark_option": "job-bookmark-enable"}
    assert run_once(spark, **enable) == [1, None, 2]
    assert run_once(spark, **enable) == [3, None, 4]
    assert run_once(spark, ctx="other", **enable) == [1, None, 2]
    assert run_once(spark, ctx="", **enable) == [1, None, 2]
    assert run_once(spark, job_bookmark_option="job-bookmark-disable") == [1, None, 2]
    assert run_once(spark, job_bookmark_option="job-bookmark-pause") == [5, None, 6]
    assert run_once(spark, **enable) == [5, None, 6]
