"""Frames that tests of this folder are about: JSON as a source has it, and what a frame holds."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.json_records.json_frame import frame_of_json
from airflow_bookmarks.glue.run import current_run


def frame_of(spark: SparkSession, *records: str) -> DynamicFrame:
    """Return the frame of records of JSON."""
    text = spark.createDataFrame([(record,) for record in records], "value string")
    rows = frame_of_json(text, run=current_run(spark))
    return DynamicFrame.of(rows.frame, None, "json", errors=rows.errors)


def tree(frame: DynamicFrame) -> str:
    """Return what `printSchema` prints, without its first line."""
    return frame.schema().treeString().removeprefix("root\n")


def held(frame: DynamicFrame) -> list[dict[str, Any]]:
    """Return the records of a frame, choices as the values that they hold."""
    return frame.records().collect()
