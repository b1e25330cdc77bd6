"""Metrics of finished tasks, through Airflow's own stats: StatsD or OpenTelemetry, whichever is configured there.

    bookmark.tasks                counter   each task that ended; tag `outcome`: committed, empty, skipped, side, failed
    bookmark.files_read           counter   of all contexts
    bookmark.bytes_read           counter
    bookmark.rows_read            counter   where all of them were counted
    bookmark.rows_written         counter   of all outputs, where all of them were counted
    bookmark.seconds.<step>       timer     begin, plan, read_write, commit, publish
    bookmark.missing              gauge     numbers or days missing between the first and the last seen; tag `context`;
                                            only of contexts that look for gaps, 0 where there are none

Each has the tags `job` and `namespace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from airflow_bookmarks.airflow_compat import Stats
from airflow_bookmarks.core.amount import in_other_units

PREFIX = "bookmark"


def count_task(job: str, namespace: str, outcome: str) -> None:
    """Count a task that ended."""
    Stats.incr(f"{PREFIX}.tasks", tags={"job": job, "namespace": namespace, "outcome": outcome})


def measure_run(summary: Mapping[str, Any]) -> None:
    """Count what a run read and wrote, and how long its steps took; `summary` as in XCom."""
    tags = {"job": summary["job"], "namespace": summary["namespace"]}
    contexts, outputs = summary["contexts"].values(), summary["outputs"].values()
    counts = {
        "files_read": _total(figures["files"] for figures in contexts),
        "bytes_read": _total(figures["bytes"] for figures in contexts),
        "rows_read": _total(figures["rows"] for figures in contexts),
        "rows_written": _total(figures["rows"] for figures in outputs),
    }
    for name, number in counts.items():
        if number is not None:
            Stats.incr(f"{PREFIX}.{name}", number, tags=tags)
    for unit, count in in_other_units(contexts).items():
        if count is not None:
            Stats.incr(f"{PREFIX}.read", count, tags={**tags, "unit": unit})
    for step, seconds in summary["seconds"].items():
        Stats.timing(f"{PREFIX}.seconds.{step}", timedelta(seconds=float(seconds)), tags=tags)
    for ctx, figures in summary["contexts"].items():
        if "gaps" in figures:
            Stats.gauge(f"{PREFIX}.missing", figures["gaps"]["missing"], tags={**tags, "context": ctx})


def _total(numbers: Iterable[int | None]) -> int | None:
    given = list(numbers)
    known = [number for number in given if number is not None]
    return sum(known) if len(known) == len(given) else None
