"""Stores of files for tests of file systems. Each worker process starts a server when its first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import boto3.session
import pytest

from airflow_bookmarks.files.s3.settings import S3Settings
from tests.files.s3.s3_ground import BUCKET, client_for, settings_for
from tests.files.s3.versitygw import ACCESS_KEY, SECRET_KEY, versitygw, versitygw_server


@pytest.fixture(scope="session")
def moto_settings(moto_url: str, aws_session: boto3.session.Session) -> S3Settings:
    """Make the bucket in moto, and return how it is reached."""
    settings = settings_for(moto_url)
    client_for(aws_session, settings).create_bucket(Bucket=BUCKET)
    return settings


@pytest.fixture(scope="session")
def versitygw_settings(
    tmp_path_factory: pytest.TempPathFactory, aws_session: boto3.session.Session
) -> Iterator[S3Settings]:
    """Run versitygw, make the bucket, and return how it is reached."""
    program = versitygw()
    if program is None:
        pytest.skip("versitygw is not in the cache, and Go, which builds it, is not on PATH or could not")
    folder = tmp_path_factory.mktemp("versitygw") / "buckets"
    folder.mkdir()
    with versitygw_server(program, folder) as url:
        settings = settings_for(url, (ACCESS_KEY, SECRET_KEY))
        client_for(aws_session, settings).create_bucket(Bucket=BUCKET)
        yield settings
