"""Promises on files in HDFS, which Spark reads and writes by its own client, and bookmarks see over HTTP."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.filesystem import FileSystemError
from airflow_bookmarks.files.hadoop.hdfs import HdfsFileSystem
from airflow_bookmarks.files.hadoop.hdfs_settings import Address, HdfsSettings
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.session import session_access
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.spark.lake import lines_of, rows_of
from tools.hdfs_cluster import HdfsCluster, hdfs_cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.seldom,  # files/hadoop/test_hadoop.py has the file system; above it HDFS is one like any other
    pytest.mark.xdist_group("spark"),
]

ODD_NAMES = ["a b.txt", "a+b.txt", "a%20b.txt", "a,b.txt", "[é]{1}.txt", "cafe\u0301.txt", "a=b&c.txt", "a*.txt"]


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with hdfs_cluster(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@dataclass(frozen=True)
class HdfsLake:
    """A folder in HDFS, and jobs that keep their bookmark in `store`."""

    root: str
    store: BookmarkStore
    spark: SparkSession
    files: HdfsFileSystem

    def path(self, *parts: str) -> str:
        return "/".join([self.root, *parts])

    def put(self, name: str, *lines: str) -> None:
        self.files.write(self.path("raw", name), io.BytesIO("".join(f"{line}\n" for line in lines).encode()))

    def job(self, name: str = "copy", **kwargs: Any) -> BookmarkedJob:
        return BookmarkedJob(self.spark, name, store=self.store, **kwargs)

    def read(self, job: BookmarkedJob) -> DataFrame:
        return job.read("raw").format("text").load(self.path("raw"))

    def copy(self) -> None:
        """Make one whole run that copies the raw folder to `copy`, by partition."""
        with self.job() as job:
            job.write(self.read(job), "out").partitionBy("m").parquet(self.path("copy"))

    def copied(self) -> list[tuple[Any, ...]]:
        return rows_of(self.spark.read.parquet(self.path("copy")))


@pytest.fixture
def lake(hdfs: HdfsCluster, store: BookmarkStore, spark: SparkSession) -> HdfsLake:
    """Open a folder of its own. Only the conf of the session tells where the REST API is."""
    spark.conf.set("spark.bookmarks.hdfs.http", hdfs.http)
    files = HdfsFileSystem(HdfsSettings(http=(Address.of(hdfs.http),)))
    return HdfsLake(f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}", store, spark, files)


def test_two_runs_read_and_publish_each_row_once(lake: HdfsLake) -> None:
    lake.put("m=01/a.txt", "a")
    lake.put("m=02/b.txt", "b")
    with lake.job() as job:
        job.write(lake.read(job), "out").partitionBy("m").parquet(lake.path("copy"))
        assert lake.files.list(lake.path("copy")).files.paths == []  # nothing to be seen before the commit
    assert lake.copied() == [("a", 1), ("b", 2)]

    lake.put("m=02/c.txt", "c")
    lake.copy()

    assert lake.copied() == [("a", 1), ("b", 2), ("c", 2)]
    lake.copy()
    assert lake.copied() == [("a", 1), ("b", 2), ("c", 2)]
    assert lake.files.folders(lake.path("copy/_bookmarks/test/copy")) == []
    assert lake.store.head("copy").published == 3


def test_publish_that_broke_off_half_way_is_finished_by_the_next_run(
    lake: HdfsLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("m=01/a.txt", "a")
    lake.put("m=02/b.txt", "b")
    rename = HdfsFileSystem._rename

    def break_at_the_second(files: HdfsFileSystem, here: Any, there: Any) -> bool:
        if "/m=2/" in str(there):
            raise FileSystemError("the name node is gone")
        return rename(files, here, there)

    monkeypatch.setattr(HdfsFileSystem, "_rename", break_at_the_second)
    with pytest.raises(PublishError, match="the name node is gone"):
        lake.copy()
    monkeypatch.undo()
    assert lake.copied() == [("a", 1)]  # it was on its way when the other one failed

    lake.copy()

    assert lake.copied() == [("a", 1), ("b", 2)]


def test_overwritten_file_is_read_again(lake: HdfsLake) -> None:
    lake.put("a.txt", "a")
    lake.put("b.txt", "b")
    with lake.job() as job:
        assert lines_of(lake.read(job)) == ["a", "b"]
    lake.put("a.txt", "c")

    with lake.job() as job:
        assert lines_of(lake.read(job)) == ["c"]


def test_odd_names_are_read_once(lake: HdfsLake) -> None:
    for name in ODD_NAMES:
        lake.put(name, name)
    with lake.job() as job:
        assert lines_of(lake.read(job)) == sorted(ODD_NAMES)
    lake.put("last.txt", "last")

    with lake.job() as job:
        assert lines_of(lake.read(job)) == ["last"]


def test_reset_that_cleans_takes_back_what_was_published(lake: HdfsLake) -> None:
    lake.put("m=01/a.txt", "a")
    lake.copy()

    with reached_by(session_access(lake.spark, session_conf(lake.spark))):
        reset(lake.store, "copy", reason="again", who="ada", clean=True)
    lake.put("m=01/b.txt", "b")
    lake.copy()

    assert lake.copied() == [("a", 1), ("b", 1)]
