"""Promise FILE-16 for scripts: with `--TempDir` each run writes down what it reads, where and as Glue does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.arguments import getResolvedOptions
from airflow_bookmarks.glue.bookmarks.entry import read_entry
from airflow_bookmarks.glue.bookmarks.first_run import ContextPlace, take_over
from airflow_bookmarks.glue.bookmarks.requests import get_job_bookmark
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.job import Job
from airflow_bookmarks.store.bookmark_store import BookmarkStore


@pytest.fixture
def raw(tmp_path: Path, store: BookmarkStore, spark: SparkSession) -> Path:
    """A folder of one file, and the store named in the conf."""
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?namespace=test")
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "a.csv").write_text("1\n", encoding="utf-8")
    return folder


def script(spark: SparkSession, raw: Path, *arguments: str) -> int:
    """Run what a script for Glue does, with the arguments of its command line; return how many rows it reads."""
    args = getResolvedOptions(["script.py", *arguments], ["JOB_NAME", "TempDir"])
    context = GlueContext(spark)
    job = Job(context)
    job.init(args["JOB_NAME"], args)
    frame = context.create_dynamic_frame.from_options("s3", {"paths": [str(raw)]}, "csv", transformation_ctx="data 0")
    rows: int = frame.count()
    job.commit()
    return rows


@pytest.mark.spark
@pytest.mark.parametrize("option", ["enable", "pause", "disable"])
def test_files_of_a_run_are_written_down_whatever_the_option(
    spark: SparkSession, raw: Path, tmp_path: Path, option: str
) -> None:
    arguments = ("--JOB_NAME", "orders", "--JOB_RUN_ID", "jr_1", "--TempDir", str(tmp_path / "temp"))
    assert script(spark, raw, *arguments, "--job-bookmark-option", f"job-bookmark-{option}") == 1

    (manifest,) = (tmp_path / "temp").rglob("*.input-files.json")
    assert manifest.relative_to(tmp_path / "temp").parts[:3] == ("partitionlisting", "orders", "jr_1")
    (listed,) = json.loads(manifest.read_text(encoding="utf-8"))
    assert [Path(path).name for path in listed["files"]] == ["a.csv"]


@pytest.mark.spark
def test_script_goes_on_from_the_bookmark_that_was_taken_over(
    spark: SparkSession, raw: Path, tmp_path: Path, store: BookmarkStore
) -> None:
    timestamps = {"HIGH_BAND": "0", "CURR_RUN_START_TIME": "2100-01-01T00:00:00Z", "INCLUDE_LIST": ""}
    state = {"data 0": {"jsonClass": "HadoopDataSourceJobBookmarkState", "timestamps": timestamps}}
    entry: dict[str, Any] = {"JobName": "my orders", "RunId": "jr_1", "JobBookmark": json.dumps(state)}
    take_over(store, read_entry(entry), {"data 0": ContextPlace([str(raw)])})
    (raw / "b.csv").write_text("2\n3\n", encoding="utf-8")

    arguments = ("--JOB_NAME", "my orders", "--TempDir", str(tmp_path / "temp"))
    assert script(spark, raw, *arguments, "--job-bookmark-option", "job-bookmark-enable") == 2

    after = get_job_bookmark("my orders", store=store)["JobBookmarkEntry"]
    assert (after["Run"], list(json.loads(after["JobBookmark"]))) == (3, ["data 0"])
