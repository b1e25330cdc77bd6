"""`GlueContext`: made of whatever a script has, with the members of `SQLContext`, and what it refuses."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.errors import GlueParameterError, GlueUnsupportedError
from airflow_bookmarks.glue.run import current_run

pytestmark = pytest.mark.spark


@pytest.fixture
def context(spark: SparkSession) -> GlueContext:
    return GlueContext(spark)


def test_context_is_made_of_a_session_a_spark_context_or_nothing(spark: SparkSession) -> None:
    assert GlueContext(spark).spark_session is spark
    for context in (GlueContext(), GlueContext(spark.sparkContext), GlueContext.getOrCreate(spark.sparkContext)):
        assert context.spark_session is SparkSession.builder.getOrCreate()


def test_context_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"GlueContext\(str\)"):
        GlueContext("spark")  # type: ignore[arg-type]


def test_run_is_one_for_a_session_and_another_for_another(spark: SparkSession, context: GlueContext) -> None:
    assert GlueContext(spark).run is context.run is current_run(spark)
    assert current_run(spark.newSession()) is not context.run


@pytest.mark.seldom
def test_members_of_the_sql_context_work(context: GlueContext) -> None:
    context.registerDataFrameAsTable(context.createDataFrame([(1, "a")], "id int, name string"), "orders_view")
    context.registerFunction("twice", lambda text: text * 2)
    context.setConf("spark.sql.shuffle.partitions", "3")

    assert context.sql("select twice(name) as n from orders_view").first() == ("aa",)
    assert context.table("orders_view").count() == context.range(1).count() == 1
    assert context.getConf("spark.sql.shuffle.partitions") == "3"
    context.dropTempTable("orders_view")


def test_logger_has_the_methods_of_log4j(context: GlueContext, caplog: pytest.LogCaptureFixture) -> None:
    logger = context.get_logger()
    with caplog.at_level(logging.DEBUG, "airflow_bookmarks"):
        for level in ("debug", "info", "warn", "error"):
            getattr(logger, level)("100 % of it")

    assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO", "WARNING", "ERROR"]
    assert {record.getMessage() for record in caplog.records} == {"100 % of it"}


@pytest.mark.parametrize(
    "call",
    [
        "getStreamingSource",
        "forEachBatch",
        "start_transaction",
        "commit_transaction",
        "cancel_transaction",
        "transition_table",
        "transition_s3_path",
        "add_ingestion_time_columns",
        "getSampleStreamingDynamicFrame",
    ],
)
def test_call_out_of_reach_says_so_and_what_to_do(context: GlueContext, call: str) -> None:
    with pytest.raises(GlueUnsupportedError, match=rf"^{call}: .*Nothing was read or changed\. \w+"):
        getattr(context, call)("anything", database="x")


def test_stream_as_a_data_frame_is_refused(context: GlueContext) -> None:
    with pytest.raises(GlueUnsupportedError, match="a stream"):
        context.create_data_frame.from_options("kinesis", {"streamARN": "x"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"database": "a", "name_space": "b", "table_name": "t"}, "both specified, choose one"),
        ({"table_name": "t"}, "Parameter name_space or database is missing"),
        ({"database": "a"}, "Parameter table_name is missing"),
    ],
)
def test_table_without_a_name_or_with_two_is_refused(context: GlueContext, names: dict[str, Any], message: str) -> None:
    frame = context.create_dynamic_frame.from_rdd([{"id": 1}], "rows")

    with pytest.raises(GlueParameterError, match=message):
        context.create_dynamic_frame.from_catalog(**names)
    with pytest.raises(GlueParameterError, match=message):
        context.write_dynamic_frame.from_catalog(frame, **names)


@pytest.mark.seldom
def test_frame_of_an_rdd_of_dicts_holds_records_that_differ(context: GlueContext) -> None:
    rows = context.spark_session.sparkContext.parallelize([{"id": 1}, {"id": "a", "name": "x"}])

    frame = context.create_dynamic_frame.from_rdd(rows, "rows")

    assert frame.count() == 2


@pytest.mark.seldom
def test_frame_of_an_rdd_of_tuples_takes_a_schema(context: GlueContext) -> None:
    frame = context.create_dynamic_frame_from_rdd([(1, "a")], "rows", "id int, name string")

    assert frame.toDF().collect() == [(1, "a")]


@pytest.mark.parametrize("writer", ["from_options", "from_catalog", "from_jdbc_conf"])
def test_something_that_is_no_frame_is_not_written(context: GlueContext, writer: str) -> None:
    with pytest.raises(TypeError):
        getattr(context.write_dynamic_frame, writer)(
            context.range(1), "shop", **({"table_name": "t"} if "cat" in writer else {})
        )


def test_unknown_arguments_warn(context: GlueContext, caplog: pytest.LogCaptureFixture) -> None:
    GlueContext(context.spark_session, minPartitions=1, maxPartitions=2)

    assert "unknown arguments maxPartitions are ignored" in caplog.text
