"""Jobs that read what a table or another job has, one run each: value by value, or what the other has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake


def follow(lake: Lake, **given: Any) -> list[str]:
    """Make one run of a job that reads what the job `copy` has written to its table; return the lines."""
    with lake.job("after", **given) as job:
        frame = job.read("copied").upstream("copy", output="out")
        lines = sorted(str(row["value"]) for row in frame.collect())
        job.write(frame.select("value"), "kept").text(lake.path("after"))
    return lines


def copied_by_region(
    lake: Lake, read: Callable[[BookmarkedJob], DataFrame], *failing: str | None, crash: str = "nobody", **job: Any
) -> list[list[int]]:
    """Read the context `orders` region by region, and copy each; return the ids of each region that was read.

    Args:
        read: reads the region of a run.
        failing: regions whose runs fail.
        crash: the region in whose run the driver dies.
    """
    seen: list[list[int]] = []
    for part in lake.job(**job).partitions("orders"):
        with part:
            frame = read(part)
            rows = frame.select("id", "region").collect()
            seen += [sorted(row["id"] for row in rows)] if rows else []
            value = rows[0]["region"] if rows else "nothing"
            if value == crash:
                raise KeyboardInterrupt
            part.write(frame, "copy").parquet(lake.path("copied"))
            if value in failing:
                raise ValueError(f"{value} is wrong")
    return seen


def in_copy(lake: Lake) -> list[int]:
    """Return the ids that were copied."""
    return sorted(row["id"] for row in lake.spark.read.parquet(lake.path("copied")).collect())
