"""Objects in storage classes that a read leaves out: counted, and read once they are in another class."""

from __future__ import annotations

import uuid

import boto3.session
import pytest

from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from tests.files.s3.s3_ground import BUCKET, S3Ground, client_for, s3_ground, settings_for


@pytest.fixture
def ground(moto_url: str, aws_session: boto3.session.Session) -> S3Ground:
    settings = settings_for(moto_url)
    client = client_for(aws_session, settings)
    if BUCKET not in [each["Name"] for each in client.list_buckets()["Buckets"]]:
        client.create_bucket(Bucket=BUCKET)
    return s3_ground(client, settings, uuid.uuid4().hex)


def names(files: Listing) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in files.paths)


def put(ground: S3Ground, name: str, storage_class: str) -> None:
    key = ground.path(name).removeprefix(f"s3a://{BUCKET}/")
    ground.client.put_object(Bucket=BUCKET, Key=key, Body=b"a row\n", StorageClass=storage_class)  # type: ignore[arg-type]


def test_objects_in_these_classes_are_left_out_and_counted(ground: S3Ground) -> None:
    ground.put("a.csv")
    put(ground, "b.csv", "GLACIER")
    put(ground, "c.csv", "STANDARD_IA")
    options = FileOptions(exclude_storage_classes=["GLACIER", "DEEP_ARCHIVE"])
    plan = FileSource(ground.files, [ground.root], options).plan(PlanInput())
    assert names(plan.files) == ["a.csv", "c.csv"]
    assert plan.skipped == {"excluded": 1}
    assert FileOptions.of_stats(options.stats()) == options


def test_object_without_a_class_is_standard(ground: S3Ground) -> None:
    ground.put("a.csv")
    options = FileOptions(exclude_storage_classes=["standard"])
    assert FileSource(ground.files, [ground.root], options).plan(PlanInput()).is_empty


def test_object_that_is_restored_to_another_class_is_read(ground: S3Ground) -> None:
    put(ground, "b.csv", "GLACIER")
    source = FileSource(ground.files, [ground.root], FileOptions(exclude_storage_classes=["GLACIER"]))
    assert source.plan(PlanInput()).is_empty
    put(ground, "b.csv", "STANDARD")
    assert names(source.plan(PlanInput()).files) == ["b.csv"]
