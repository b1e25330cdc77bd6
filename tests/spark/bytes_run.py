"""Runs that `test_bytes_read.py` measures: a full one and one over a fixed increment, on data of two sizes.

By hand: `python -m tests.spark.bytes_run <folder>`. Spark writes its event log into `<folder>/events`: there, per task,
is how many bytes it has read. Each run is a job group of its own: `<format>/<way>/<full or increment>/<files>`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.readers.files import Way
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.quick_spark import JAVA_OPTIONS

INCREMENT = 5
SIZES = (10, 100)
READS: tuple[tuple[str, Way], ...] = (
    ("csv", "paths"),
    ("json", "paths"),
    ("parquet", "paths"),
    ("parquet", "directory"),
)
_ROWS = 2000


def main(folder: Path) -> None:
    """Make all runs."""
    (folder / "events").mkdir()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("bytes")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        .config("spark.ui.enabled", "false")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", (folder / "events").as_uri())
        # What Parquet reads by other threads is in no metric of Spark's.
        .config("spark.hadoop.parquet.hadoop.vectored.io.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    store = BookmarkStore(SqliteTable(folder / "bookmarks.db"), "test")
    store.init()
    patterns = {source: _pattern(spark, folder, source) for source in ("csv", "json", "parquet")}
    for source, way in READS:
        for size in SIZES:
            raw = folder / f"{source}-{way}-{size}"
            _put(raw, patterns[source], 0, size)
            _run(spark, store, source, way, raw, f"{source}/{way}/full/{size}")
            _put(raw, patterns[source], size, INCREMENT)
            _run(spark, store, source, way, raw, f"{source}/{way}/increment/{size}")
    spark.stop()


def _pattern(spark: SparkSession, folder: Path, source: str) -> Path:
    """Write one file of the format; all others are copies of it."""
    made = folder / f"pattern-{source}"
    frame = spark.range(_ROWS).selectExpr("id AS a", "sha1(cast(id AS STRING)) AS b", "id % 7 AS c")
    frame.coalesce(1).write.format(source).save(str(made))
    return next(made.glob("part-*"))


def _put(raw: Path, pattern: Path, start: int, count: int) -> None:
    raw.mkdir(exist_ok=True)
    for number in range(start, start + count):
        shutil.copyfile(pattern, raw / f"{number:04}{pattern.suffix}")


def _run(spark: SparkSession, store: BookmarkStore, source: str, way: Way, raw: Path, group: str) -> None:
    spark.sparkContext.setJobGroup(group, group)
    with BookmarkedJob(spark, raw.name, store=store) as job:
        reader = job.read("raw").files(read_by=way).format(source)
        frame = (reader.schema("a BIGINT, b STRING, c BIGINT") if source == "csv" else reader).load(str(raw))
        assert frame.selectExpr("count(b)", "sum(a)", "sum(c)").collect()[0][0] > 0  # asks for all columns


def bytes_of(folder: Path) -> dict[str, int]:
    """Return how many bytes of input the tasks of each job group have read, as Spark's event log says."""
    (log,) = (folder / "events").iterdir()
    group_of: dict[int, str] = {}
    read: dict[str, int] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            group = event.get("Properties", {}).get("spark.jobGroup.id")
            group_of |= {stage: group for stage in event["Stage IDs"] if group is not None}
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in group_of:
            group = group_of[event["Stage ID"]]
            read[group] = read.get(group, 0) + event["Task Metrics"]["Input Metrics"]["Bytes Read"]
    return read


if __name__ == "__main__":
    main(Path(sys.argv[1]))
