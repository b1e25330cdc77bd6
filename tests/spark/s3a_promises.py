"""The main promises on files in S3, read and written by Spark's s3a. `test_s3a.py` runs them in a process of their own:
a session that was started without s3a can't have it. By hand: `pytest tests/spark/s3a_promises.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3.session
import pytest
from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.core.errors import OptionError, SourceChangedError, SourceError, SourceMissingError
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.session import session_access
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.spark.lake import OpenSession, lines_of, reader_of, rows_of
from tools.jars import fetch_for_spark
from tools.servers import moto_server

if TYPE_CHECKING:  # the types of boto3 are not where a driver is alone
    from mypy_boto3_s3.client import S3Client

BUCKET = "lake"
OTHER_BUCKET = "lake-elsewhere"
ODD_NAMES = [
    "a b.txt",
    "a+b.txt",
    "a%20b.txt",
    "a,b.txt",
    "[é]{1}.txt",
    "a=b&c.txt",
    "日本語.txt",
    "year?.txt",
    "a*.txt",
]


@pytest.fixture(scope="session")
def more_conf(moto_url: str) -> Mapping[str, str]:
    """Start Spark with s3a. Only its conf tells where S3 is."""
    return {
        "spark.driver.extraClassPath": f"{fetch_for_spark('s3a')}/*",
        "spark.hadoop.fs.s3a.endpoint": moto_url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "testing",
        "spark.hadoop.fs.s3a.secret.key": "testing",
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",  # as EMR has an s3 of its own
    }


@pytest.fixture(scope="session")
def bucket(moto_url: str, aws_session: boto3.session.Session) -> S3Client:
    """Make the bucket."""
    s3 = client(moto_url, aws_session)
    s3.create_bucket(Bucket=BUCKET)
    return s3


def client(url: str, session: boto3.session.Session) -> S3Client:
    return session.client("s3", endpoint_url=url, region_name="us-east-1")


@dataclass(frozen=True)
class Lake:
    """A folder in the bucket, and jobs that keep their bookmark in `store`."""

    root: str
    store: BookmarkStore
    spark: SparkSession
    client: S3Client
    another_session: OpenSession

    def path(self, *parts: str, scheme: str = "s3a") -> str:
        return f"{scheme}://{BUCKET}/" + "/".join([self.root, *parts])

    def put(self, name: str, *lines: str) -> None:
        body = "".join(f"{line}\n" for line in lines).encode()
        self.client.put_object(Bucket=BUCKET, Key=f"{self.root}/raw/{name}", Body=body)

    def job(self, name: str = "copy", **kwargs: Any) -> BookmarkedJob:
        return BookmarkedJob(self.spark, name, store=self.store, **kwargs)

    def read(self, job: BookmarkedJob, scheme: str = "s3a", **kwargs: Any) -> DataFrame:
        return reader_of(job, "raw", **kwargs).format("text").load(self.path("raw", scheme=scheme))

    def run(self, scheme: str = "s3a") -> list[str]:
        """Make one whole run that reads the raw folder; return the lines read."""
        with self.job() as job:
            return lines_of(self.read(job, scheme))

    def copy(self) -> None:
        """Make one whole run that copies the raw folder to `copy`, by partition."""
        with self.job() as job:
            job.write(self.read(job), "out").partitionBy("m").parquet(self.path("copy"))

    def copied(self) -> list[tuple[Any, ...]]:
        return rows_of(self.spark.read.parquet(self.path("copy")))

    def keys(self, folder: str) -> list[str]:
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{self.root}/{folder}/").get("Contents", [])
        return [item["Key"] for item in found if not item["Key"].endswith("/")]


@pytest.fixture
def lake(spark: SparkSession, store: BookmarkStore, bucket: S3Client, open_session: OpenSession) -> Lake:
    return Lake(uuid.uuid4().hex, store, spark, bucket, open_session)


def test_two_runs_read_and_publish_each_row_once(lake: Lake) -> None:
    lake.put("m=01/a.txt", "a")
    lake.put("m=02/b.txt", "b")
    with lake.job() as job:
        job.write(lake.read(job), "out").partitionBy("m").parquet(lake.path("copy"))
        assert all("/_bookmarks/" in key for key in lake.keys("copy"))  # nothing to be seen before the commit
    assert lake.copied() == [("a", 1), ("b", 2)]

    lake.put("m=02/c.txt", "c")
    lake.copy()

    assert lake.copied() == [("a", 1), ("b", 2), ("c", 2)]
    lake.copy()
    assert lake.copied() == [("a", 1), ("b", 2), ("c", 2)]
    assert [key for key in lake.keys("copy") if "_bookmarks" in key] == []
    assert lake.store.head("copy").published == 3


def test_overwritten_file_is_read_again_and_a_touched_one_is_not(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.put("b.txt", "b")
    assert lake.run() == ["a", "b"]

    lake.put("a.txt", "a2")
    lake.put("b.txt", "b")  # another time, the same etag

    assert lake.run() == ["a2"]


def test_job_that_changes_the_scheme_reads_nothing_twice(lake: Lake) -> None:
    lake.put("a.txt", "a")
    assert lake.run("s3a") == ["a"]
    lake.put("b.txt", "b")

    assert lake.run("s3") == ["b"]


def test_odd_names_are_read_once(lake: Lake) -> None:
    for name in ODD_NAMES:
        lake.put(name, name)
    assert lake.run() == sorted(ODD_NAMES)
    lake.put("last.txt", "last")

    assert lake.run() == ["last"]


@pytest.fixture
def by_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few files be many, so that they are read by directory."""
    monkeypatch.setattr("airflow_bookmarks.spark.readers.files._FEW_FILES", 5)


def is_read_by_directory(frame: DataFrame) -> bool:
    """Whether a frame over a folder leaves files out by their name."""
    return "file_path" in frame._jdf.queryExecution().analyzed().toString()


@pytest.mark.needs("listing once")
@pytest.mark.usefixtures("by_directory")
@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_large_plan_is_read_by_directory_and_gives_exactly_the_planned_files(lake: Lake, scheme: str) -> None:
    for name in ODD_NAMES:
        lake.put(name, f"old {name}")
    assert lake.run(scheme) == sorted(f"old {name}" for name in ODD_NAMES)
    for name in [*ODD_NAMES, "more.txt"]:
        lake.put(f"new {name}", f"new {name}")

    with lake.job() as job:
        frame = lake.read(job, scheme)
        lake.put("later.txt", "later")

        assert is_read_by_directory(frame)
        assert lines_of(frame) == sorted(f"new {name}" for name in [*ODD_NAMES, "more.txt"])
    assert lake.run(scheme) == ["later"]


@pytest.mark.needs("listing once")
@pytest.mark.usefixtures("by_directory")
def test_partition_columns_are_the_same_by_paths_and_by_directory(lake: Lake) -> None:
    lake.put("day=2013-01-01/m=01/word=x/old.txt", "old")
    lake.run()
    for i in range(6):
        lake.put(f"day=2013-01-0{i + 1}/m=0{i}/word=a%2F{i} b/a.txt", str(i))
    lake.put("day=2013-02-01/m=7/word=__HIVE_DEFAULT_PARTITION__/a.txt", "7")

    seen = {}
    for way in ("paths", "directory"):
        with lake.job(option="pause") as job:
            frame = lake.read(job, read_by=way)
            seen[is_read_by_directory(frame)] = (frame.dtypes, rows_of(frame))

    assert seen[True] == seen[False]
    assert seen[True][0] == [("value", "string"), ("day", "date"), ("m", "int"), ("word", "string")]
    assert len(seen[True][1]) == 7


@pytest.mark.needs("listing once")
@pytest.mark.usefixtures("by_directory")
def test_folder_that_went_before_a_large_plan_is_read_is_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(6):
        lake.put(f"{i}.txt", str(i))

    def remove_and_choose(*_: object) -> str:
        for key in lake.keys("raw"):
            lake.client.delete_object(Bucket=BUCKET, Key=key)
        return "directory"

    monkeypatch.setattr("airflow_bookmarks.spark.readers.files.choose_way", remove_and_choose)

    with pytest.raises(SourceChangedError, match=r"6 planned file.* went before they were read"), lake.job() as job:
        lake.read(job)


def test_sources_on_several_file_systems_are_refused(lake: Lake, tmp_path: Path) -> None:
    lake.put("a.txt", "a")
    (tmp_path / "b.txt").write_text("b\n")

    with lake.job() as job:
        with pytest.raises(OptionError, match=r"different file systems.*Nothing was read"):
            job.read("raw").format("text").load([lake.path("raw"), str(tmp_path)])

        assert rows_of(
            job.read("raw").format("text").load([lake.path("raw"), lake.path("raw/a.txt", scheme="s3")])
        ) == [("a",)]


def test_plan_names_what_spark_reads(lake: Lake) -> None:
    for name in ["a.txt", "_SUCCESS", ".b.txt", "_tmp/c.txt", "d.txt/", "", "e_$folder$", "f._COPYING_"]:
        lake.put(name, name)

    assert lake.run() == lines_of(lake.spark.read.text(lake.path("raw"))) == ["a.txt"]


@pytest.mark.needs("listing once")
@pytest.mark.usefixtures("by_directory")
@pytest.mark.parametrize("count", [1, 6])
def test_key_that_spark_cannot_open_stops_no_run(lake: Lake, count: int) -> None:
    for i in range(count):
        lake.put(f"{i}.txt", str(i))
    lake.put("/b.txt", "b")  # Spark lists it, and looks for it without the second slash

    assert lake.run() == [str(i) for i in range(count)]


def test_consumer_reads_what_its_upstream_published(lake: Lake) -> None:
    lake.put("m=01/a.txt", "a")
    lake.copy()
    with lake.job("report") as job:
        assert rows_of(job.read("copy").upstream("copy")) == [("a", 1)]
    lake.put("m=01/b.txt", "b")
    lake.copy()

    with lake.job("report") as job:
        assert rows_of(job.read("copy").upstream("copy")) == [("b", 1)]


def test_overwrite_replaces_the_target_in_the_publish(lake: Lake) -> None:
    for line in ("a", "b"):
        lake.put(f"{line}.txt", line)
        with lake.job() as job:
            job.write(lake.read(job), "out").mode("overwrite").text(lake.path("newest"))

    assert lines_of(lake.spark.read.text(lake.path("newest"))) == ["b"]


def test_reset_that_cleans_takes_back_what_was_published(lake: Lake) -> None:
    lake.put("m=01/a.txt", "a")
    lake.copy()

    with reached_by(session_access(lake.spark, session_conf(lake.spark))):
        reset(lake.store, "copy", reason="again", who="ada", clean=True)
    lake.put("m=01/b.txt", "b")
    lake.copy()

    assert lake.copied() == [("a", 1), ("b", 1)]


def test_missing_folder_and_missing_bucket_are_told_apart(lake: Lake) -> None:
    with lake.job() as job, pytest.raises(SourceMissingError):
        lake.read(job)
    with lake.job("other") as job, pytest.raises(SourceError, match="no such bucket"):
        job.read("raw").format("text").load("s3a://no-such-bucket-here/raw")


def test_misspelt_setting_of_s3_is_an_error(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.s3.endpiont", "http://127.0.0.1:1")

    with pytest.raises(OptionError, match=r"unknown setting spark\.bookmarks\.s3\.endpiont"):
        lake.job()


@pytest.mark.needs("classic")
def test_two_jobs_in_one_process_reach_an_endpoint_each(lake: Lake, aws_session: boto3.session.Session) -> None:
    with moto_server() as url:
        there = client(url, aws_session)
        there.create_bucket(Bucket=OTHER_BUCKET)
        there.put_object(Bucket=OTHER_BUCKET, Key="raw/b.txt", Body=b"b\n")
        lake.put("a.txt", "a")
        other = lake.another_session()
        other.conf.set("spark.bookmarks.s3.endpoint", url)
        # What tells Spark itself where the bucket is; the conf of the sessions, which the jobs go by, does not show it.
        hadoop: Any = other._jsc.hadoopConfiguration()
        hadoop.set(f"fs.s3a.bucket.{OTHER_BUCKET}.endpoint", url)

        with lake.job("here") as here, BookmarkedJob(other, "there", store=lake.store) as far:
            lines = lake.read(here)
            far_lines = far.read("raw").format("text").load(f"s3a://{OTHER_BUCKET}/raw")
            assert (lines_of(lines), lines_of(far_lines)) == (["a"], ["b"])
            here.write(lines, "out").text(lake.path("copy"))
            far.write(far_lines, "out").text(f"s3a://{OTHER_BUCKET}/copy")

        found = there.list_objects_v2(Bucket=OTHER_BUCKET, Prefix="copy/run-").get("Contents", [])
        assert (len(lake.keys("copy")), len(found)) == (1, 1)
