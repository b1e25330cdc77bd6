"""Sides that list a bucket: ours, boto3's paginator as it comes, and Spark's s3a."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3.session
from botocore.config import Config

from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings
from tools.jars import fetch_for_spark

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

    from benchmarks.side import Play, Told

BUCKET, FOLDER = "lake", "raw"
_REGION, _CREDENTIAL = "us-east-1", "testing"


@contextmanager
def ours(url: str) -> Iterator[Play]:
    """List into a `Listing`, as a run does."""
    access = S3Access(url, _REGION, path_style=True, access_key=_CREDENTIAL, secret_key=_CREDENTIAL)
    files = S3FileSystem(S3Settings(access))

    def play(_: Told) -> Told:
        begun = time.perf_counter()
        listed = files.list(f"s3a://{BUCKET}/{FOLDER}")
        return {"seconds": time.perf_counter() - begun, "files": len(set(listed.files.paths))}

    yield play


@contextmanager
def paginator(url: str) -> Iterator[Play]:
    """List with the paginator, and keep of each object what a `Listing` keeps."""
    client: S3Client = boto3.session.Session().client(
        "s3",
        endpoint_url=url,
        region_name=_REGION,
        aws_access_key_id=_CREDENTIAL,
        aws_secret_access_key=_CREDENTIAL,
        config=Config(s3={"addressing_style": "path"}),
    )

    def play(_: Told) -> Told:
        begun = time.perf_counter()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{FOLDER}/")
        rows = [
            (one["Key"], one["Size"], one["LastModified"], one["ETag"])
            for page in pages
            for one in page.get("Contents", ())
        ]
        return {"seconds": time.perf_counter() - begun, "files": len({row[0] for row in rows})}

    yield play


@contextmanager
def s3a(url: str, work: str) -> Iterator[Play]:
    """List as Spark does when a frame over the folder is made; what is asked of the frame afterwards is not timed."""
    from benchmarks.spark_reading import session  # imports pyspark

    option = "spark.hadoop.fs.s3a"
    settings = {
        "spark.driver.extraClassPath": f"{fetch_for_spark('s3a')}/*",
        f"{option}.endpoint": url,
        f"{option}.endpoint.region": _REGION,
        f"{option}.path.style.access": "true",
        f"{option}.connection.ssl.enabled": "false",
        f"{option}.access.key": _CREDENTIAL,
        f"{option}.secret.key": _CREDENTIAL,
    }
    with session(work, settings) as spark:

        def play(_: Told) -> Told:
            begun = time.perf_counter()
            frame = spark.read.schema("id INT").parquet(f"s3a://{BUCKET}/{FOLDER}")
            seconds = time.perf_counter() - begun
            return {"seconds": seconds, "files": len(frame.inputFiles())}

        yield play
