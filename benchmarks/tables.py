"""B10: Delta and Iceberg tables as input and output, beside what a user would pick, on a local disk.

    new versions     ours, and Structured Streaming with AvailableNow: what was committed since the last round
    nothing new      the same, where nothing was
    append           ours, and `df.write`: the same rows to a table of the same kind
    once             ours, and `df.write` with Delta's own txnAppId and txnVersion, by which it lands once as well

Each pair is measured in turns, in one session, on the same table.

    $ python -m benchmarks.tables                                     # 1,000 versions, 100,000 files
    $ python -m benchmarks.tables --versions 50 --files 1000 --new 10 --rows 100000
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.figure import beside, header, line
from benchmarks.planning import CONTEXT, NAMESPACE
from benchmarks.report import Line, Report
from benchmarks.turns import in_turns, timed
from tools.jars import fetch_for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUT = Path("build/bench/tables")
KINDS = ("delta", "iceberg")
OVERHEAD, EXTRA_S = 1.05, 0.5  # of a managed write: times a plain one, and so many seconds more
_OURS, _STREAM, _PLAIN, _ONCE = "ours", "AvailableNow", "df.write", "df.write with txnAppId"


@dataclass
class Ground:
    """A session with both formats, a store beside it, and what was found so far."""

    spark: SparkSession
    store: BookmarkStore
    folder: str
    report: Report

    def name(self, kind: str, table: str) -> str:
        """Return what a table is called: by its folder, or by its name."""
        return f"{self.folder}/{table}" if kind == "delta" else f"lake.bench.{table}"

    def write(self, kind: str, table: str, frame: DataFrame) -> None:
        """Append as a user does."""
        if kind == "delta":
            frame.write.format("delta").mode("append").save(self.name(kind, table))
        else:
            frame.writeTo(self.name(kind, table)).append()

    def make(self, kind: str, table: str) -> None:
        """Make an empty table."""
        empty = self.spark.createDataFrame([], "id BIGINT, note STRING")
        if kind == "delta":
            empty.write.format("delta").save(self.name(kind, table))
        else:
            empty.writeTo(self.name(kind, table)).using("iceberg").tableProperty("write.wap.enabled", "true").create()

    def beside(self, measure: str, ours: Sequence[float], plain: Sequence[float], plain_name: str) -> None:
        """Keep two series that were measured in turns."""
        for figure in beside(measure, "s", (_OURS, ours), (plain_name, plain)):
            self.report.figures.append(figure)
            print(line(figure), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/tables`."""
    parser = argparse.ArgumentParser("python -m benchmarks.tables", description="Delta and Iceberg tables.")
    parser.add_argument("--versions", type=int, default=1000, help="versions of the tables that are read")
    parser.add_argument("--files", type=int, default=100_000, help="files of these tables")
    parser.add_argument("--new", type=int, default=100, help="versions between two rounds")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of a write")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each measure of reading")
    parser.add_argument("--appends", type=int, default=9, help="pairs of each measure of writing, which is quick")
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS)
    given = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    print(header())
    with _ground() as ground:
        for kind in given.only:
            _measure_append(ground, kind, given)
        for kind in given.only:
            _fill(ground, kind, given.versions, given.files)
            _measure_new_versions(ground, kind, given)
        ground.report.facts |= {
            "versions": given.versions, "files": given.files, "rows": given.rows, "load": os.getloadavg(),
        }  # fmt: skip
        ground.report.write(OUT)
    for promise in ground.report.lines:
        print(promise.in_words())
    if ground.report.wrong:
        raise SystemExit("\n".join(check.in_words() for check in ground.report.wrong))


@contextmanager
def _ground() -> Iterator[Ground]:
    from benchmarks.spark_reading import session

    jars = [str(jar) for kind in KINDS for jar in sorted(fetch_for_spark(kind).glob("*.jar"))]
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as folder:
        settings = {
            "spark.jars": ",".join(jars),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": f"{folder}/iceberg",
        }
        table = SqliteTable(f"{folder}/bookmarks.db", create=True)
        store = BookmarkStore(table, NAMESPACE)
        store.init()
        with session(f"{folder}/work", settings) as spark:
            yield Ground(spark, store, folder, Report())
        table.close()


# ---- writing


def _measure_append(ground: Ground, kind: str, given: argparse.Namespace) -> None:
    rows = given.rows
    ground.make(kind, "managed")
    ground.make(kind, "plain")

    def frame() -> DataFrame:
        return ground.spark.range(rows).selectExpr("id", "concat('order ', id) AS note")

    def ours() -> None:
        with BookmarkedJob(ground.spark, f"append_{kind}", store=ground.store) as job:
            writer = job.write(frame(), "out")
            (writer.delta if kind == "delta" else writer.iceberg)(ground.name(kind, "managed"))

    ones, others = in_turns(given.appends, ours, lambda: ground.write(kind, "plain", frame()))
    measure = f"append {rows:,} rows to a table of {kind}"
    ground.beside(measure, ones, others, _PLAIN)
    over = sorted(one - OVERHEAD * other for one, other in zip(ones, others, strict=True))[len(ones) // 2]
    ground.report.promise(Line(f"{measure}: what it takes beyond {OVERHEAD} times a plain write", over, EXTRA_S, "s"))
    found = _table(ground, kind, "managed").count()
    ground.report.check(measure, rows * (given.appends + 1), found)
    if kind == "delta":
        _measure_once(ground, ours, frame, measure, given.appends)


def _measure_once(
    ground: Ground, ours: Callable[[], None], frame: Callable[[], DataFrame], measure: str, rounds: int
) -> None:
    """Append beside what a user of Delta alone does so that a retry lands once: it knows no window and no chain."""
    number = itertools.count(1)

    def once() -> None:
        writer = frame().write.format("delta").mode("append").option("txnAppId", "bench")
        writer.option("txnVersion", str(next(number))).save(ground.name("delta", "plain"))

    ones, others = in_turns(rounds, ours, once)
    ground.beside(f"{measure}, once", ones, others, _ONCE)


# ---- reading


def _fill(ground: Ground, kind: str, versions: int, files: int) -> None:
    """Make a table of so many versions and files: most of the files in the first one."""
    ground.make(kind, "many")
    first = files - versions + 2
    ground.write(kind, "many", ground.spark.range(0, first, 1, first).selectExpr("id", "'first' AS note"))
    _add_versions(ground, kind, versions - 2)


def _add_versions(ground: Ground, kind: str, versions: int) -> None:
    for _ in range(versions):
        ground.write(kind, "many", ground.spark.range(1).selectExpr("id", "'more' AS note").coalesce(1))


def _measure_new_versions(ground: Ground, kind: str, given: argparse.Namespace) -> None:
    """Read what some versions have appended to a table of many, with what was read before behind both."""
    counts: dict[str, int] = {_OURS: 0, _STREAM: 0}

    def ours() -> None:
        with BookmarkedJob(ground.spark, f"read_{kind}", store=ground.store) as job:
            reader = job.read(CONTEXT)
            frame = (reader.delta if kind == "delta" else reader.iceberg)(ground.name(kind, "many"))
            counts[_OURS] += frame.count()

    def streamed() -> None:
        reader = ground.spark.readStream.format(kind)
        if kind == "iceberg":
            reader = reader.option("streaming-skip-overwrite-snapshots", "true")
        frame = reader.load(ground.name(kind, "many"))

        def count(batch: DataFrame, _: int) -> None:
            counts[_STREAM] += batch.count()

        writer = frame.writeStream.foreachBatch(count).trigger(availableNow=True)
        writer.option("checkpointLocation", f"{ground.folder}/checkpoint-{kind}").start().awaitTermination()

    for play in (ours, streamed):
        timed(play)  # all that was there
    of_what = f"a table of {kind} with {given.versions:,} versions, {given.files:,} files"
    for measure, news in ((f"{given.new} new versions of {of_what}", given.new), (f"nothing new in {of_what}", 0)):
        counts.update({_OURS: 0, _STREAM: 0})
        times: dict[Callable[[], None], list[float]] = {ours: [], streamed: []}
        for number in range(given.rounds):
            _add_versions(ground, kind, news)
            for play in (ours, streamed) if number % 2 else (streamed, ours):
                times[play].append(timed(play))
        ground.beside(measure, times[ours], times[streamed], _STREAM)
        for whose, found in counts.items():
            ground.report.check(f"{measure}: rows of {whose}", news * given.rounds, found)


def _table(ground: Ground, kind: str, table: str) -> DataFrame:
    if kind == "delta":
        return ground.spark.read.format("delta").load(ground.name(kind, table))
    return ground.spark.table(ground.name(kind, table))


if __name__ == "__main__":
    main()
