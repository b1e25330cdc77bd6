"""The counts of a run as metrics of CloudWatch."""

from __future__ import annotations

import logging
from typing import Any

import boto3.session
import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.job import Job
from airflow_bookmarks.glue.metrics import metrics_of
from airflow_bookmarks.glue.run import current_run
from tests.conftest import REGION

pytestmark = pytest.mark.spark


@pytest.fixture
def cloudwatch(
    spark: SparkSession, moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch
) -> Any:
    spark.conf.set("spark.bookmarks.glue.metrics", "Glue")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    return aws_session.client("cloudwatch", region_name=REGION, endpoint_url=moto_url)


def test_metrics_of_a_committed_run_are_sent_with_its_job_and_run(spark: SparkSession, cloudwatch: Any) -> None:
    job = Job(spark)
    job.init("orders", {"JOB_RUN_ID": "jr_1"})
    current_run(spark).count("recordsRead", 3)
    job.commit()

    (metric,) = cloudwatch.list_metrics(Namespace="Glue")["Metrics"]
    assert metric["MetricName"] == "glue.driver.aggregate.recordsRead"
    assert {each["Name"]: each["Value"] for each in metric["Dimensions"]} == {"JobName": "orders", "JobRunId": "jr_1"}


def test_summary_gives_rows_and_bytes_and_leaves_out_what_nobody_counted(spark: SparkSession) -> None:
    run = current_run(spark)
    summary = {
        "contexts": {"a": {"rows": None, "bytes": 7}, "b": {"rows": None, "bytes": 5}},
        "outputs": {"out": {"rows": 2}},
    }

    assert metrics_of(run, summary) == {
        "glue.driver.aggregate.recordsWritten": (2, "Count"),
        "glue.ALL.s3.filesystem.read_bytes": (12, "Bytes"),
    }


def test_refusal_of_cloudwatch_is_a_warning_for_the_run_is_committed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.bookmarks.glue.metrics", "Glue")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    job = Job(spark)
    job.init("orders", {})
    current_run(spark).count("recordsRead", 3)
    with caplog.at_level(logging.WARNING):
        job.commit()

    assert "were not sent to CloudWatch" in caplog.text
    assert not job.isInitialized()
