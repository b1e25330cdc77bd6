"""The counts of a run as metrics of CloudWatch, by the names that AWS Glue gives them; see `GlueSettings.metrics`."""

from __future__ import annotations

import json
import logging
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.glue.run import GlueRun

log = logging.getLogger(__name__)

_BYTES_OF_MB = 1024**2
_UI_SECONDS = 5


def send_metrics(run: GlueRun, summary: Mapping[str, Any]) -> None:
    """Send what a committed run has read and written, if the settings name a namespace.

    The run is committed by then, so a refusal is a warning in the log.

    Args:
        run: the run.
        summary: the one of its commit; empty where there is no store to record it in.
    """
    namespace = run.settings.metrics
    if namespace is None:
        return
    from boto3.session import Session  # takes half a second
    from botocore.exceptions import BotoCoreError, ClientError

    dimensions = [
        {"Name": "JobName", "Value": str(run.job_name)},
        {"Name": "JobRunId", "Value": str(run.run_id)},
    ]
    data = [
        {"MetricName": name, "Value": float(value), "Unit": unit, "Dimensions": dimensions}
        for name, (value, unit) in metrics_of(run, summary).items()
    ]
    try:
        Session().client("cloudwatch").put_metric_data(Namespace=namespace, MetricData=data)
    except (BotoCoreError, ClientError) as error:
        log.warning(
            "bookmark %s: the metrics of run %s were not sent to CloudWatch: %s. The run is committed all the same; "
            "the driver needs a region, and cloudwatch:PutMetricData",
            run.job_name,
            run.run_id,
            error,
        )


def metrics_of(run: GlueRun, summary: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Return value and unit of each metric that is known; rows that nobody counted are left out."""
    contexts, outputs = summary.get("contexts", {}).values(), summary.get("outputs", {}).values()
    without_bookmark = [{"rows": number} for (name, _), number in run.counts.items() if name == "recordsRead"]
    known = {
        "glue.driver.aggregate.recordsRead": (_sum([*contexts, *without_bookmark], "rows"), "Count"),
        "glue.driver.aggregate.recordsWritten": (_sum(outputs, "rows"), "Count"),
        "glue.ALL.s3.filesystem.read_bytes": (_sum(contexts, "bytes"), "Bytes"),
        "glue.driver.BlockManager.memory.remainingMB": (_remaining_mb(run), "Megabytes"),
    }
    return {name: (value, unit) for name, (value, unit) in known.items() if value is not None}


def _sum(figures: Iterable[Mapping[str, Any]], key: str) -> float | None:
    values = [each[key] for each in figures if each.get(key) is not None]
    return sum(values) if values else None


def _remaining_mb(run: GlueRun) -> float | None:
    """Return the memory that the driver has left for blocks, as Spark's page tells it; None where there is no page."""
    context = run.spark.sparkContext
    if not context.uiWebUrl:
        return None
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/executors"
    try:
        with urllib.request.urlopen(url, timeout=_UI_SECONDS) as answer:  # noqa: S310 - Spark's own address
            executors = json.load(answer)
    except (OSError, ValueError) as error:
        log.info("bookmark %s: the memory of the driver is not known: %s", run.job_name, error)
        return None
    left = [each["maxMemory"] - each["memoryUsed"] for each in executors if each.get("id") == "driver"]
    return left[0] / _BYTES_OF_MB if left else None
