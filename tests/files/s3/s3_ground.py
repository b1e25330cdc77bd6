"""Ground in a bucket, for stores that speak S3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3.session
from botocore.config import Config

from airflow_bookmarks.files.s3.client import _checksums
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings
from tests.files.conformance import Ground

if TYPE_CHECKING:  # the types of boto3 are not where a driver is alone
    from mypy_boto3_s3.client import S3Client

BUCKET = "lake"


@dataclass(frozen=True)
class S3Ground(Ground):
    client: S3Client

    def put(self, name: str, content: bytes = b"a row\n") -> str:
        path = self.path(name)
        self.client.put_object(Bucket=BUCKET, Key=path.removeprefix(f"s3a://{BUCKET}/"), Body=content)
        return path


def settings_for(url: str, keys: tuple[str, str] = ("testing", "testing")) -> S3Settings:
    """Return how a store on the loopback is reached."""
    access = S3Access(url, "us-east-1", path_style=True, access_key=keys[0], secret_key=keys[1])
    return S3Settings(access, connections=8)


def client_for(session: boto3.session.Session, settings: S3Settings) -> S3Client:
    """Return a plain client of the same store."""
    access = settings.access
    return session.client(
        "s3",
        endpoint_url=access.url,
        region_name="us-east-1",
        aws_access_key_id=access.access_key,
        aws_secret_access_key=access.secret_key,
        config=_checksums().merge(Config(s3={"addressing_style": "path"})),
    )


def s3_ground(client: S3Client, settings: S3Settings, folder: str) -> S3Ground:
    """Return an empty folder of the bucket."""
    return S3Ground(S3FileSystem(settings), f"s3a://{BUCKET}/{folder}", client)
