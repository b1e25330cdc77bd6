"""What staging costs on S3: a frame written by Spark itself, and by a managed write, in turns, to one server.

Spark's own write commits by copies too: s3a renames by copy and delete, the committer of version 1 each file twice,
that of version 2, which most clusters have set, once. Seconds are taken straight at the server; requests are counted in
a round of their own, through a proxy before the same server; it comes first, and warms up.

    $ python -m benchmarks.staging                  # versitygw, which stores to disk; Go builds it at its first use
    $ python -m benchmarks.staging --server moto    # in memory; from the dev extra
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3.session

from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.figure import Figure, header, line
from benchmarks.s3_wire import S3Wire, s3_wire
from tests.files.s3.versitygw import ACCESS_KEY, SECRET_KEY, versitygw, versitygw_server
from tools.jars import fetch_for_spark
from tools.servers import moto_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_REGION = "us-east-1"
_TIMED, _COUNTED = "timed", "counted"  # two buckets of one server; the second is reached through the proxy
_BYTES_A_ROW = 64
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is written: so many files, so many bytes in all of them."""

    name: str
    files: int
    megabytes: int


CASES = (Case("200 files, 20 MB", 200, 20), Case("1 file, 200 MB", 1, 200))


@dataclass(frozen=True, slots=True)
class Took:
    """What one managed write took: Spark's writing, and then commit and publish."""

    write_s: float
    publish_s: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/staging.json`."""
    parser = argparse.ArgumentParser("python -m benchmarks.staging", description="What staging costs on S3.")
    parser.add_argument("--server", choices=("versitygw", "moto"), default="versitygw")
    parser.add_argument("--rounds", type=int, default=5, help="timed writes of each kind per case")
    parser.add_argument("--committer", type=int, choices=(1, 2), default=2, help="version of Hadoop's file committer")
    given = parser.parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    figures: list[Figure] = []
    counts: dict[str, dict[str, dict[str, int]]] = {}
    print(header())
    with (
        tempfile.TemporaryDirectory(prefix="bench-staging-") as folder,
        _server(given.server, Path(folder)) as url,
        s3_wire(url) as wire,
        _spark(url, wire.url, given.committer, f"{folder}/spark") as spark,
    ):
        bench = Bench(spark, _store(Path(folder)), wire)
        for case in CASES:
            frame = bench.frame(case)
            counts[case.name] = bench.count(frame)
            for kind, requests in counts[case.name].items():
                print(f"{case.name}, {kind}: {sum(requests.values())} requests: {requests}", flush=True)
            bench.measure(case, frame, given.rounds, figures)
            frame.unpersist()
    document = {**vars(given), "figures": [figure.as_dict() for figure in figures], "requests": counts}
    place = Path("build/bench")
    place.mkdir(parents=True, exist_ok=True)
    (place / "staging.json").write_text(json.dumps(document, indent=2) + "\n")


class Bench:
    """Writes frames both ways."""

    def __init__(self, spark: SparkSession, store: BookmarkStore, wire: S3Wire) -> None:
        self._spark, self._store, self._wire = spark, store, wire
        self._targets = 0

    def measure(self, case: Case, frame: DataFrame, rounds: int, figures: list[Figure]) -> None:
        """Write in turns; add what it took."""
        direct: list[float] = []
        staged: list[Took] = []
        for _ in range(rounds):
            direct.append(self._direct(frame, _TIMED))
            staged.append(self._staged(frame, _TIMED))
        for name, values in (
            ("df.write", direct),
            ("job.write", [one.write_s + one.publish_s for one in staged]),
            ("job.write: write", [one.write_s for one in staged]),
            ("job.write: commit and publish", [one.publish_s for one in staged]),
            (
                "job.write more",
                [one.write_s + one.publish_s - plain for one, plain in zip(staged, direct, strict=True)],
            ),
        ):
            figures.append(Figure.of(case.name, name, "s", values))
            print(line(figures[-1]), flush=True)

    def count(self, frame: DataFrame) -> dict[str, dict[str, int]]:
        """Write once each way through the proxy; return the requests of each."""
        self._direct(frame, _COUNTED)
        direct = self._wire.take()
        self._staged(frame, _COUNTED)
        return {"df.write": direct, "job.write": self._wire.take()}

    def frame(self, case: Case) -> DataFrame:
        """Make the rows of a case, in memory: how long that takes is not what is asked."""
        from pyspark.sql import functions as F

        rows = case.megabytes * _MB // _BYTES_A_ROW
        frame = self._spark.range(0, rows, 1, case.files).select(F.sha2(F.col("id").cast("string"), 256).alias("value"))
        frame.cache().count()
        return frame

    def _direct(self, frame: DataFrame, bucket: str) -> float:
        begun = time.perf_counter()
        frame.write.option("compression", "none").parquet(self._target(bucket))
        return time.perf_counter() - begun

    def _staged(self, frame: DataFrame, bucket: str) -> Took:
        target = self._target(bucket)
        with BookmarkedJob(self._spark, f"staging.{self._targets}", store=self._store) as job:
            begun = time.perf_counter()
            job.write(frame, "out").option("compression", "none").parquet(target)
            written = time.perf_counter()
        return Took(written - begun, time.perf_counter() - written)

    def _target(self, bucket: str) -> str:
        self._targets += 1
        return f"s3a://{bucket}/{self._targets:04d}"


def _store(folder: Path) -> BookmarkStore:
    store = BookmarkStore(SqliteTable(folder / "bookmarks.db"), "bench")
    store.init()
    return store


@contextmanager
def _server(name: str, folder: Path) -> Iterator[str]:
    """Run an S3 server with both buckets."""
    if name == "moto":
        with moto_server() as url:
            _make_buckets(url)
            yield url
        return
    program = versitygw()
    if program is None:
        raise SystemExit("versitygw is not in the cache, and Go, which builds it, is not on PATH; or: --server moto")
    (folder / "buckets").mkdir()
    with versitygw_server(program, folder / "buckets") as url:
        _make_buckets(url)
        yield url


def _make_buckets(url: str) -> None:
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    client = boto3.session.Session().client("s3", endpoint_url=url, region_name=_REGION, **keys)  # type: ignore[call-overload]
    for bucket in (_TIMED, _COUNTED):
        client.create_bucket(Bucket=bucket)


@contextmanager
def _spark(url: str, counted_url: str, committer: int, work: str) -> Iterator[SparkSession]:
    from benchmarks.spark_reading import session  # imports pyspark

    option = "spark.hadoop.fs.s3a"
    settings = {
        "spark.driver.extraClassPath": f"{fetch_for_spark('s3a')}/*",
        "spark.driver.memory": "2g",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": str(committer),
        f"{option}.endpoint": url,
        f"{option}.bucket.{_COUNTED}.endpoint": counted_url,
        f"{option}.endpoint.region": _REGION,
        f"{option}.path.style.access": "true",
        f"{option}.connection.ssl.enabled": "false",
        f"{option}.access.key": ACCESS_KEY,
        f"{option}.secret.key": SECRET_KEY,
    }
    with session(work, settings) as spark:
        yield spark


if __name__ == "__main__":
    main()
