"""The demo's bucket: what is delivered has the time of its delivery, and what lies there can be counted here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings
from demo.bucket import NAME, REGION, Bucket, running_bucket
from demo.lake import BucketLanding
from demo.landing import Flights

DAY = date(2013, 1, 31)
CHRISTMAS = datetime(2012, 12, 24, tzinfo=UTC)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with running_bucket() as running:
        yield running


def test_delivery_lands_with_the_time_that_it_is_given(bucket: Bucket, tmp_path: Path) -> None:
    landing = BucketLanding(tmp_path, Flights("year\n", {DAY: ("2013\n",)}), bucket)

    landing.land(1, {DAY: CHRISTMAS})

    access = S3Access(bucket.url, REGION, path_style=True, access_key="demo", secret_key="demo")
    (listed,) = S3FileSystem(S3Settings(access)).list(f"s3a://{NAME}/raw/flights").files
    assert (listed.path, listed.modified) == (f"s3a://{NAME}/raw/flights/flights_2013-01-31.csv", CHRISTMAS)


def test_folder_that_is_fetched_holds_what_the_bucket_does_and_nothing_else(bucket: Bucket, tmp_path: Path) -> None:
    source, folder = tmp_path / "file", tmp_path / "here"
    source.write_text("new")
    (folder / "month=1").mkdir(parents=True)
    (folder / "month=1" / "gone.parquet").write_text("old")
    bucket.put(source, "clean/month=2/a.parquet", CHRISTMAS)
    bucket.put(source, "clean-other/b.parquet", CHRISTMAS)

    bucket.fetch("clean/", folder)

    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [(path.relative_to(folder).as_posix(), path.read_text()) for path in files] == [("month=2/a.parquet", "new")]
