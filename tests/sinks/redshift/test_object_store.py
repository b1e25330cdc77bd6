"""What is staged for a COPY lies in S3, under the names by which Redshift reads it (GLUE-11). Moto is that S3."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import boto3.session
import pytest

from airflow_bookmarks.core.database.copy.token import CopyToken
from airflow_bookmarks.core.errors import OutOfBoundsError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.redshift.place import name_of, rows_folder
from airflow_bookmarks.sinks.redshift.staging import CopyStaging
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME, OTHER_JOB
from tests.sinks.redshift.copy_ground import CopyGround


def test_manifest_names_the_files_as_redshift_does_and_is_swept_with_them(
    login: DatabaseLogin,
    blobs: BlobStore,
    tmp_path: Path,
    moto_url: str,
    aws_session: boto3.session.Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    s3, bucket = aws_session.client("s3", region_name="us-east-1", endpoint_url=moto_url), f"tmp-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=bucket)
    ground, files = CopyGround(login, blobs, tmp_path), open_filesystem(f"s3://{bucket}/loads")
    ground.request = replace(ground.request, staging=files.canonical(f"s3://{bucket}/loads"))
    entry, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    folder, name = rows_folder(entry.place), name_of(entry.place)
    assert root is not None
    assert name is not None
    key = f"{folder.removeprefix(f's3a://{bucket}/')}/part-0.parquet"
    s3.put_object(Bucket=bucket, Key=key, Body=b"PAR1")
    listed = [(each.path, each.size_bytes) for each in files.list(folder).files]
    staging, token = CopyStaging("job", ground.target), CopyToken("public", name)

    with ground.opened() as database:
        staging.create(database, token, "job")
        staging.seal(database, files, token, entry.place, listed, 1)

    told = s3.get_object(Bucket=bucket, Key="loads/test/job/1.1/out/manifest")["Body"].read()
    url = f"s3://{bucket}/loads/test/job/1.1/out/rows/part-0.parquet"
    assert json.loads(told) == {"entries": [{"url": url, "mandatory": True, "meta": {"content_length": 4}}]}
    manifest = f"'s3://{bucket}/loads/test/job/1.1/out/manifest'"
    assert manifest in ground.target.load(entry.place, 1).copy(str(name))
    ground.sink.sweep(JOB, root, 1)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize(
    "root",
    ["", "conn:dw", "conn:dw#public", "conn:dw##/tmp/test/job", "dw#public#/tmp/test/job", "conn:dw#a#b#/tmp/test/job"],
)
def test_root_that_this_kind_has_not_made_is_refused(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path, root: str
) -> None:
    with pytest.raises(OutOfBoundsError):
        CopyGround(login, blobs, tmp_path).sink.check_root(JOB, root)


def test_root_is_found_again_whatever_the_schema_is_called(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path
) -> None:
    ground = CopyGround(login, blobs, tmp_path)
    ground.request = replace(ground.request, target='conn:dw#"a#b/ %23".dim')
    _, root = ground.sink.stage(JOB, RunKey(1, 1), NAME, ground.request)
    assert root is not None

    ground.sink.check_root(JOB, root)
    with pytest.raises(OutOfBoundsError):
        ground.sink.check_root(OTHER_JOB, root)
