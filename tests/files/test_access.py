"""Each job reaches S3 by the settings of its own session, however many jobs are in one process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import boto3.session
import pytest

from airflow_bookmarks.files.access import FileAccess, by_own_access, given_access, present_access, reached_by
from airflow_bookmarks.files.objects import FileObjects
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.s3.settings import S3Settings
from tests.files.s3.s3_ground import BUCKET, client_for, settings_for
from tools.servers import moto_server


@dataclass(frozen=True)
class Reader:
    """What a job is to its files: it has settings of its own."""

    access: FileAccess

    @by_own_access
    def names(self, folder: str) -> list[str]:
        return [path.rpartition("/")[2] for path in open_filesystem(folder).list(folder).files.paths]


@pytest.fixture
def other_settings(aws_session: boto3.session.Session) -> Iterator[S3Settings]:
    """Run a second S3, with an empty bucket of the same name."""
    with moto_server() as url:
        settings = settings_for(url)
        client_for(aws_session, settings).create_bucket(Bucket=BUCKET)
        yield settings


def test_two_readers_in_one_process_read_from_an_endpoint_each_in_any_order_and_thread(
    moto_settings: S3Settings, other_settings: S3Settings, aws_session: boto3.session.Session
) -> None:
    folder = uuid.uuid4().hex
    for settings, name in ((moto_settings, "here.csv"), (other_settings, "there.csv")):
        client_for(aws_session, settings).put_object(Bucket=BUCKET, Key=f"{folder}/{name}", Body=b"a\n")
    here, there = Reader(FileAccess(moto_settings)), Reader(FileAccess(other_settings))
    root = f"s3a://{BUCKET}/{folder}"

    assert [here.names(root), there.names(root), here.names(root)] == [["here.csv"], ["there.csv"], ["here.csv"]]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda reader: reader.names(root), [here, there] * 4))
    assert found == [["here.csv"], ["there.csv"]] * 4


def test_settings_end_with_their_block() -> None:
    access = FileAccess(S3Settings(scheme="s3"))
    with reached_by(access):
        with reached_by(None):
            assert present_access() is access
        assert given_access() is access
    assert given_access() is None
    assert present_access() == FileAccess()


def test_objects_of_a_store_keep_the_settings_of_the_job_that_opened_it(moto_settings: S3Settings) -> None:
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}/blob"
    with reached_by(FileAccess(moto_settings)):
        objects = FileObjects()

    objects.put(uri, b"state")

    assert objects.get(uri, 100) == b"state"
