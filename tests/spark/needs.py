"""What a test of the runtime may need that some Spark lacks: `@pytest.mark.needs(name)` switches it off there.

Each is found by asking the session for it, as the runtime finds it (`airflow_bookmarks.spark.features`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.features import (
    SPARK_ERRORS,
    check_format,
    has_own_sessions,
    hidden_conf,
    is_connect,
    lists_once,
    names_columns_once,
    reads_as,
    tells_observations,
)


def _without_classic(spark: SparkSession) -> str:
    return "about a classic session: this is Spark Connect" if is_connect(spark) else ""


def _without_listing_once(spark: SparkSession) -> str:
    return "" if lists_once(spark) else "no reading by directory: Spark Connect lists a folder anew at each action"


def _without_names_for_good(spark: SparkSession) -> str:
    return "" if names_columns_once(spark) else "no telling which contexts an output is made from: Spark Connect"


def _without_observations(spark: SparkSession) -> str:
    return (
        ""
        if tells_observations(spark)
        else "no Observation: this Spark Connect does not tell all that a write has seen"
    )


def _without_secrets(spark: SparkSession) -> str:
    spark.conf.set("spark.tests.password", "pass")
    try:
        return "no secrets in a conf: this Spark Connect hides them" if hidden_conf(spark) else ""
    finally:
        spark.conf.unset("spark.tests.password")


@cache
def _without_xml(spark: SparkSession) -> str:
    try:
        check_format(spark, "xml", "a test")
    except OptionError:
        return "no format xml: this Spark has it as a package alone"
    return ""


@cache
def _without_wider_types(spark: SparkSession) -> str:
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "narrow")
        spark.createDataFrame([(1,)], "a INT").coalesce(1).write.parquet(file)
        wide = spark.createDataFrame([], "a BIGINT").schema
        return (
            ""
            if reads_as(spark.read.format("parquet"), file, wide)
            else "no types that are read as wider ones: this Spark reads Parquet and Avro as it is"
        )


@cache
def _without_kept_plans(spark: SparkSession) -> str:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "gone.txt"
        file.write_text("a")
        frame = spark.read.text(str(file)).persist()
        frame.count()
        file.unlink()
        try:
            frame.count()
        except SPARK_ERRORS:
            return "no plans that are kept: this Spark Connect looks for the files of a cached frame at each action"
        frame.unpersist()
    return ""


@cache
def _without_identity_columns(spark: SparkSession) -> str:
    try:
        spark.sql("EXPLAIN CREATE TABLE none (k BIGINT GENERATED ALWAYS AS IDENTITY) USING delta").collect()
    except SPARK_ERRORS as error:
        return "no identity columns: the SQL of this Spark has none" if "PARSE_SYNTAX_ERROR" in str(error) else ""
    return ""


def _without_own_sessions(spark: SparkSession) -> str:
    return "" if has_own_sessions(spark) else "no sessions with a conf of their own: this Spark Connect can't make one"


def _without_attribute_errors(spark: SparkSession) -> str:
    if not hasattr(spark.range(1), "no_such_attribute"):
        return ""
    return "no errors about attributes that a frame has not: this Spark Connect takes them for columns"


@cache
def _without_whole_errors(spark: SparkSession) -> str:
    try:
        spark.sql("SELECT raise_error(repeat('x', 5000))").collect()
    except SPARK_ERRORS as error:
        return "" if len(str(error)) >= 5000 else "no whole errors: this Spark Connect cuts them, and their cause"
    return ""


# By name what says why a session has it not, empty where it has.
MISSING: Mapping[str, Callable[[SparkSession], str]] = {
    "attribute errors": _without_attribute_errors,
    "classic": _without_classic,
    "columns named once": _without_names_for_good,
    "identity columns": _without_identity_columns,
    "kept plans": _without_kept_plans,
    "listing once": _without_listing_once,
    "own sessions": _without_own_sessions,
    "observations": _without_observations,
    "whole errors": _without_whole_errors,
    "secrets": _without_secrets,
    "wider types": _without_wider_types,
    "xml": _without_xml,
}
