"""B4: draining a backlog batch by batch, and what each batch costs besides reading: ours and Structured Streaming.

Each batch is handed over and not read: what is measured is all the rest. The sides drain the same folders, in processes
of their own, each from the beginning.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.ground import COLUMNS, ground
from benchmarks.planning import CONTEXT, JOB, NAMESPACE
from benchmarks.report import Line
from benchmarks.side import side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.files.filesystem import Listed
    from benchmarks.files import Bench
    from benchmarks.side import Play, Told

FILES_A_BATCH = 1000
FLAT = 1.2
CHART = "b4-draining"

_PLAIN, _SPARK, _STREAM = "ours, without Spark", "ours, with Spark", "Structured Streaming"


class _Counted(LocalFileSystem):
    """A disk that counts how often it is listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listings = 0

    def list(self, *args: Any, **kwargs: Any) -> Listed:
        self.listings += 1
        return super().list(*args, **kwargs)


# ---- the sides


@contextmanager
def plain(root: str, store: str) -> Iterator[Play]:
    """Drain without Spark: plan, commit and mark batch after batch."""

    def play(_: Told) -> Told:
        table, bookmarks = _new_store(store)
        disk, backlog, options = _Counted(), Backlog(), FileOptions(bound=Bound(max_files=FILES_A_BATCH))
        seconds: list[float] = []
        files, begun = 0, time.perf_counter()
        run = ActiveRun.begin(bookmarks, JOB, RunIdentity("drain"), RunEnvironment(), in_batches=True)
        while True:
            files += len(run.plan(CONTEXT, FileSource(disk, [root], options, backlog=backlog)))
            run.commit()
            begun = _note(seconds, begun)
            if not run.goes_on:
                break
            run = run.following()
        table.close()
        return {"batches": seconds, "files": files, "listings": disk.listings}

    yield play


@contextmanager
def bookmarked(root: str, store: str, work: str) -> Iterator[Play]:
    """Drain by `job.batches`, as a script does."""
    from airflow_bookmarks.spark import BookmarkedJob
    from benchmarks.spark_reading import session

    with session(work) as spark:

        def play(_: Told) -> Told:
            table, bookmarks = _new_store(store)
            seconds: list[float] = []
            files, begun = 0, time.perf_counter()
            for batch in BookmarkedJob(spark, JOB, store=bookmarks).batches(max_files=FILES_A_BATCH):
                with batch:
                    batch.read(CONTEXT).format("csv").schema(COLUMNS).load(root)
                summary = batch.summary or {}
                files += summary["contexts"][CONTEXT]["files"]
                begun = _note(seconds, begun)
            table.close()
            return {"batches": seconds, "files": files}

        yield play


@contextmanager
def streamed(root: str, work: str) -> Iterator[Play]:
    """Drain by Structured Streaming, `maxFilesPerTrigger` files at a time, from an empty checkpoint."""
    from benchmarks.spark_reading import session

    settings = {"spark.sql.streaming.numRecentProgressUpdates": "1000000"}
    with session(work, settings) as spark:

        def play(_: Told) -> Told:
            checkpoint = Path(work) / "checkpoint"
            shutil.rmtree(checkpoint, ignore_errors=True)
            reader = spark.readStream.schema(COLUMNS).option("maxFileAge", "36500d")
            frame = reader.option("maxFilesPerTrigger", FILES_A_BATCH).csv(root)
            writer = frame.writeStream.foreachBatch(lambda batch, number: None)
            query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            query.awaitTermination()
            progress: list[Any] = [json.loads(one.json)["durationMs"] for one in query.recentProgress]
            overhead = [one["triggerExecution"] - one.get("addBatch", 0) for one in progress if "addBatch" in one]
            return {"batches": [ms / 1000 for ms in overhead], "files": len(overhead) * FILES_A_BATCH}

        yield play


def _new_store(path: str) -> tuple[SqliteTable, BookmarkStore]:
    for old in Path(path).parent.glob(f"{Path(path).name}*"):
        old.unlink()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    table = SqliteTable(path, create=True)
    store = BookmarkStore(table, NAMESPACE)
    store.init()
    return table, store


def _note(seconds: list[float], begun: float) -> float:
    now = time.perf_counter()
    seconds.append(now - begun)
    return now


# ---- the measure


def measure_draining(bench: Bench) -> None:
    """B4: drain a backlog (of the largest size up to 100,000); compare the last tenth of the batches with the first."""
    files = max(size for size in bench.scale.sizes if size <= 100_000 or size == min(bench.scale.sizes))
    measure = f"B4 draining {files:,} files by {FILES_A_BATCH:,}"
    work = bench.work / f"draining-{files}"
    with ground(files) as there:
        root = str(there.root)
        with side("draining", "plain", root=root, store=str(work / "plain.db")) as one:
            came = one.play()
            bench.report.check(f"{measure}: listings", 1, came["listings"])
            _tell(bench, measure, _PLAIN, came, files)
        with side("draining", "bookmarked", root=root, store=str(work / "spark.db"), work=str(work / "ours")) as one:
            _tell(bench, measure, _SPARK, one.play(), files)
        with side("draining", "streamed", root=root, work=str(work / "stream")) as one:
            _tell(bench, measure, _STREAM, one.play(), files)


def _tell(bench: Bench, measure: str, case: str, came: Told, files: int) -> None:
    seconds: Sequence[float] = came["batches"]
    bench.report.check(f"{measure}: files, {case}", files, came["files"])
    bench.report.check(f"{measure}: batches, {case}", -(-files // FILES_A_BATCH), len(seconds))
    tenth = max(1, len(seconds) // 10)
    first, last = list(seconds[:tenth]), list(seconds[-tenth:])
    bench.report.add(measure, f"{case}, a batch", "s", list(seconds))
    bench.report.add(measure, f"{case}, a batch of the first tenth", "s", first)
    bench.report.add(measure, f"{case}, a batch of the last tenth", "s", last)
    for number in range(0, len(seconds), tenth):
        bench.report.charts[CHART].point(case, number + 1, median(seconds[number : number + tenth]))
    if case != _STREAM:
        allowed = FLAT * median(first)
        bench.report.promise(Line(f"{measure}, {case}: last tenth (1.2 x the first)", median(last), allowed, "s"))
