"""Sides that read with Spark: a job with a bookmark, Structured Streaming, and a job that is told what to read.

Each has a session of its own, started before the first round. Each writes what it reads to Parquet.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.ground import COLUMNS
from benchmarks.planning import CONTEXT, JOB, NAMESPACE

if TYPE_CHECKING:
    from benchmarks.side import Play, Told

_SEED = "seed"


@contextmanager
def bookmarked(root: str, store: str, work: str) -> Iterator[Play]:
    """Read with a bookmark, from a copy of a store that knows what was there."""
    with session(work) as spark:
        copy, target = f"{work}/bookmarks.db", f"{work}/target"
        shutil.copyfile(store, copy)
        table = SqliteTable(copy)
        bookmarks = BookmarkStore(table, NAMESPACE)

        def play(_: Told) -> Told:
            rows = _rows(spark, target)
            begun = time.perf_counter()
            with BookmarkedJob(spark, JOB, store=bookmarks) as job:
                frame = job.read(CONTEXT).format("csv").schema(COLUMNS).load(root)
                job.write(frame, "out").parquet(target)
            seconds = time.perf_counter() - begun
            return {"seconds": seconds, "rows": _rows(spark, target) - rows}

        yield play
        table.close()


@contextmanager
def told(root: str, work: str) -> Iterator[Play]:
    """Read exactly the paths that a round is told: nobody can be faster who has to find them first."""
    with session(work) as spark:
        target = f"{work}/target"

        def play(given: Told) -> Told:
            rows = _rows(spark, target)
            begun = time.perf_counter()
            frame = spark.read.schema(COLUMNS).option("basePath", root).csv(given["paths"])
            frame.write.mode("append").parquet(target)
            seconds = time.perf_counter() - begun
            return {"seconds": seconds, "rows": _rows(spark, target) - rows}

        yield play


@contextmanager
def stream(root: str, work: str) -> Iterator[Play]:
    """Read by Structured Streaming with a checkpoint that knows what was there."""
    with session(work) as spark:
        _seed(spark, Path(work))
        _enter(Path(work) / "checkpoint", root)

        def play(_: Told) -> Told:
            return _stream(spark, root, work)

        yield play


@contextmanager
def stream_first(root: str, work: str) -> Iterator[Play]:
    """Let Structured Streaming find everything, from an empty checkpoint in each round; what it finds is not read."""
    with session(work) as spark:

        def play(_: Told) -> Told:
            shutil.rmtree(f"{work}/checkpoint", ignore_errors=True)
            begun = time.perf_counter()
            frame = spark.readStream.schema(COLUMNS).option("maxFileAge", "36500d").csv(root)
            writer = frame.writeStream.foreachBatch(lambda batch, number: None)
            writer = writer.option("checkpointLocation", f"{work}/checkpoint").trigger(availableNow=True)
            writer.start().awaitTermination()
            seconds = time.perf_counter() - begun
            return {"seconds": seconds, "files": len(_entered(Path(work) / "checkpoint"))}

        yield play


def _stream(spark: SparkSession, root: str, work: str) -> Told:
    """Make one run."""
    begun = time.perf_counter()
    frame = spark.readStream.schema(COLUMNS).option("maxFileAge", "36500d").csv(root)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{work}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{work}/target")
    query.awaitTermination()
    seconds = time.perf_counter() - begun
    progress: list[Any] = [json.loads(one.json) for one in query.recentProgress]
    return {"seconds": seconds, "rows": sum(one["numInputRows"] for one in progress)}


def _seed(spark: SparkSession, work: Path) -> None:
    """Have Spark make a checkpoint of one file."""
    seed = work / _SEED / "batch=0"
    seed.mkdir(parents=True)
    (seed / "part.csv").write_text("0\n")
    _stream(spark, str(seed.parent), str(work))


def _enter(checkpoint: Path, root: str) -> None:
    """Enter all files that are there as read: a first load of a million would take longer than all else.

    What Spark makes of it shows: whoever enters a file wrongly has it read, and the rows are counted.
    """
    log = checkpoint / "sources" / "0" / "0"
    log.with_name(".0.crc").unlink(missing_ok=True)
    with log.open("w") as out:
        out.write("v1")
        for folder in sorted(os.scandir(root), key=lambda entry: entry.name):
            for entry in os.scandir(folder.path):
                time_ms = entry.stat().st_mtime_ns // 1_000_000
                out.write("\n" + json.dumps({"path": f"file://{entry.path}", "timestamp": time_ms, "batchId": 0}))


def _entered(checkpoint: Path) -> set[str]:
    logs = (path for path in (checkpoint / "sources" / "0").iterdir() if path.name[0].isdigit())
    return {json.loads(line)["path"] for log in logs for line in log.read_text().splitlines()[1:]}


def _rows(spark: SparkSession, target: str) -> int:
    return spark.read.schema(COLUMNS).parquet(target).count() if Path(target).exists() else 0


@contextmanager
def session(work: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Start Spark with two cores and 4 GB, and these settings besides."""
    Path(work).mkdir(parents=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.driver.memory", "4g")  # Spark's own 1 GB does not hold a listing of a million
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{work}/warehouse")
    )
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()
