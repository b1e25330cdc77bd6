"""What a bookmark costs a task, and what it saves a task that finds nothing new."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.store.bookmark_store import open_store
from benchmarks.figure import Figure, beside
from benchmarks.spark_submit import StandIn, stand_in
from benchmarks.task_worker import BOOKMARKED, PLAIN, Executed, TaskWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.state_place import StatePlace

_SCRIPT = """
import sys

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob

raw, target = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
with BookmarkedJob(spark) as job:
    lines = job.read("raw").schema("value STRING").text(raw)
    job.write(lines, "out").format("parquet").save(target)
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures, and the requests of one task by operation; none where the store has no requests."""

    figures: list[Figure]
    requests: dict[str, dict[str, int]]


# ---- what a bookmark costs


@dataclass(frozen=True, slots=True)
class _Submitted:
    """One task with a stand-in for spark-submit: the time of its imports, and of `execute` without the driver's."""

    import_ms: float
    execute_ms: float


def measure_task(place: StatePlace, worker: TaskWorker, rounds: int) -> Measured:
    """Measure what is left of a task without its driver: ours against plain, in turns."""
    with TemporaryDirectory(prefix="bench-task-") as folder:
        raw = _raw(Path(folder))
        store = open_store(place.uri)
        with stand_in(Path(folder) / "bin", raw, store) as submit:
            path = {"PATH": f"{submit.folder}{os.pathsep}{os.environ['PATH']}"}
            ways = {**path, **place.connections}
            for operator in (PLAIN, BOOKMARKED):  # the first run reads the file, and finds no zip of the runtime
                _submitted(submit, worker, operator, ways)
            pairs = [[_submitted(submit, worker, one, ways) for one in (PLAIN, BOOKMARKED)] for _ in range(rounds)]
            requests = {}
            if place.wire is not None:
                place.wire.take()
                _submitted(submit, worker, BOOKMARKED, {**path, **place.counted})
                requests[f"operator, {place.backend}"] = place.wire.take()
        store.table.close()
    plain, ours = zip(*pairs, strict=True)
    figures = [
        Figure.of(
            f"task: import, {place.backend}", "on top of the plain one", "ms CPU", [one.import_ms for one in ours]
        ),
        *beside(
            f"task: execute, {place.backend}",
            "ms",
            ("BookmarkSparkSubmitOperator", [one.execute_ms for one in ours]),
            ("SparkSubmitOperator", [one.execute_ms for one in plain]),
        ),
    ]
    return Measured(figures, requests)


def _submitted(submit: StandIn, worker: TaskWorker, operator: str, environment: Mapping[str, str]) -> _Submitted:
    executed = worker.execute(operator, "submit", environment, {"application": "job.py", "durable": False})
    driver_s = submit.take_seconds()
    if operator == BOOKMARKED and not executed.result["is_published"]:
        raise RuntimeError(f"the task has published nothing: {executed.result}")
    return _Submitted(executed.import_s * 1000, (executed.execute_s - driver_s) * 1000)


# ---- what it saves


def measure_empty(place: StatePlace, worker: TaskWorker, rounds: int) -> Measured:
    """Measure a task with nothing new: by the worker alone against a real spark-submit of the same script, in turns.

    Spark's requests are counted in the runs that are timed: what the count costs is nothing to a start of Spark.
    """
    with TemporaryDirectory(prefix="bench-empty-") as folder:
        empty = _EmptyTask.of(Path(folder), worker)
        empty.run(place.connections, skip=False, is_empty=False)
        without, with_spark, requests = [], [], {}
        for _ in range(rounds):
            without.append(empty.run(place.connections, skip=True).execute_s)
            with_spark.append(empty.run(place.counted, skip=False).execute_s)
            if place.wire is not None:
                requests[f"empty run with Spark, {place.backend}"] = place.wire.take()
        if place.wire is not None:
            empty.run(place.counted, skip=True)
            requests[f"empty run without Spark, {place.backend}"] = place.wire.take()
    figures = beside(
        f"empty run, {place.backend}", "s", ("spark-submit, local[1]", with_spark), ("skip_when_empty=True", without)
    )
    return Measured(figures, requests)


@dataclass(frozen=True, slots=True)
class _EmptyTask:
    """A task whose script reads one folder and writes another."""

    worker: TaskWorker
    arguments: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, worker: TaskWorker) -> _EmptyTask:
        script = folder / "job.py"
        script.write_text(_SCRIPT)
        arguments = {
            "application": str(script),
            "application_args": [str(_raw(folder)), str(folder / "target")],
            "conf": {"spark.ui.enabled": "false"},
        }
        return cls(worker, arguments)

    def run(self, connections: Mapping[str, str], *, skip: bool, is_empty: bool = True) -> Executed:
        """Execute the task, with the Spark of this environment; make sure that the run was what was expected."""
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            **connections,
        }
        executed = self.worker.execute(BOOKMARKED, "empty", environment, {**self.arguments, "skip_when_empty": skip})
        if executed.result["is_empty"] is not is_empty:
            raise RuntimeError(f"expected is_empty to be {is_empty}: {executed.result}")
        return executed


def _raw(folder: Path) -> Path:
    raw = folder / "raw"
    raw.mkdir()
    (raw / "first.txt").write_text("one\n")
    return raw
