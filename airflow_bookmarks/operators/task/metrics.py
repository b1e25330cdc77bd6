"""Metrics of finished tasks and of the health of jobs, through Airflow's own stats: StatsD or OpenTelemetry, whichever
is configured there.

    bookmark.tasks                counter   each task that ended; tag `outcome`: committed, empty, skipped, side, failed
    bookmark.files_read           counter   of all contexts
    bookmark.bytes_read           counter
    bookmark.rows_read            counter   where all of them were counted
    bookmark.rows_written         counter   of all outputs, where all of them were counted
    bookmark.seconds.<step>       timer     begin, plan, read_write, commit, publish
    bookmark.missing              gauge     numbers or days missing between the first and the last seen; tag `context`;
                                            only of contexts that look for gaps, 0 where there are none
    bookmark.last.pending         gauge     what there was to read: files, or in other units, of all contexts
    bookmark.last.rows            gauge     read, where all contexts were counted, else written
    bookmark.last.no_rows         gauge     1 where there was something to read, and rows were counted: none
    bookmark.last.seconds         gauge     of all steps
    bookmark.last.read_ratio      gauge     how many times as much as the median of past runs was read
    bookmark.last.seconds_ratio   gauge     how many times as long as the median of past runs it took
    bookmark.partitions_failed    gauge     of a loop over partitions; 0 where the task succeeded
    bookmark.health               gauge     0 damaged, 1 FAILED, and so on to 10 NEW: below 8 somebody has to look
    bookmark.lag_seconds          gauge     how long the oldest unread output of another job is there
    bookmark.jobs.<state>         gauge     jobs in this state; no tag `job`

Each but the last has the tags `job` and `namespace`. A watch sends the last three, a task with a bookmark the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf

from airflow_bookmarks.airflow_compat import Stats
from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.lifecycle.health.listed import DAMAGED
from airflow_bookmarks.lifecycle.state.comparison import read_times_median, times_median

if TYPE_CHECKING:
    from airflow_bookmarks.lifecycle.health.listed import JobHealth
    from airflow_bookmarks.lifecycle.state.comparison import RunFigures

PREFIX = "bookmark"
_BACKENDS = ("statsd_on", "statsd_datadog_enabled", "otel_on")


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


def are_sent() -> bool:
    """Whether Airflow is configured to send metrics anywhere."""
    return any(conf.getboolean("metrics", name, fallback=False) for name in _BACKENDS)


def measure_last(
    job: str, namespace: str, run: RunFigures, pending: int | None = None, past: Sequence[RunFigures] = ()
) -> None:
    """Send what the last run did, beside what there was to do and what is usual.

    A gauge keeps its value until the next one. So what alarms go by is always sent, and as the harmless value where it
    is not known: a spike of an earlier run must not outlast the first run that can't be compared.

    Args:
        run: what the run did.
        pending: how much there was to read before it began; None: as much as it has read.
        past: what those before it did.
    """
    tags = {"job": job, "namespace": namespace}
    there = run.amount if pending is None else pending
    read, took = read_times_median(run, past), times_median(run.seconds, [each.seconds for each in past])
    gauges: dict[str, float | None] = {
        "pending": there,
        "rows": run.rows,
        "no_rows": int(bool(there) and run.rows == 0),
        "seconds": run.seconds,
        "read_ratio": 1 if read is None else read,
        "seconds_ratio": 1 if took is None else took,
    }
    for name, value in gauges.items():
        if value is not None:
            Stats.gauge(f"{PREFIX}.last.{name}", value, tags=tags)


def measure_partitions(job: str, namespace: str, failed: int) -> None:
    """Send how many partitions of a loop a task has left."""
    Stats.gauge(f"{PREFIX}.partitions_failed", failed, tags={"job": job, "namespace": namespace})


def measure_health(jobs: Sequence[JobHealth], namespace: str) -> None:
    """Send how many jobs are in each state, and the state and the lag of each.

    The states are part of the name, so that they can be told apart by a StatsD that drops tags.
    """
    in_state = Counter(job.state for job in jobs)
    for state in (DAMAGED, *HealthState):
        Stats.gauge(f"{PREFIX}.jobs.{_name_of(state)}", in_state[state], tags={"namespace": namespace})
    for job in jobs:
        tags = {"job": job.job, "namespace": namespace}
        Stats.gauge(f"{PREFIX}.health", job.rank, tags=tags)
        if job.lag_s is not None:
            Stats.gauge(f"{PREFIX}.lag_seconds", job.lag_s, tags=tags)


def _name_of(state: str) -> str:
    return state.lower().replace(" ", "_")


def _total(numbers: Iterable[int | None]) -> int | None:
    given = list(numbers)
    known = [number for number in given if number is not None]
    return sum(known) if len(known) == len(given) else None
