"""A bucket of the demo's own, in a server with the API of S3 that runs in this process, in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3.session

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

NAME = "flights"
REGION = "us-east-1"


class Bucket:
    """Objects, put and fetched by plain boto3: nothing of what is shown here helps to check it.

    Args:
        client: of the server.
        url: where that answers.
        objects: the server's own table of this bucket, to set times in.
    """

    def __init__(self, client: S3Client, url: str, objects: Any) -> None:
        self.url = url
        self._client, self._objects = client, objects

    def put(self, path: Path, key: str, modified_at: datetime) -> None:
        """Deliver a file under a key. It gets a time of its own, as a large upload has that of its beginning."""
        self._client.put_object(Bucket=NAME, Key=key, Body=path.read_bytes())
        self._objects[key].last_modified = modified_at.astimezone(UTC).replace(tzinfo=None)

    def fetch(self, prefix: str, folder: Path) -> None:
        """Make a folder hold what lies below a prefix, and nothing else."""
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {folder / key.removeprefix(prefix): (key, modified) for key, modified in self._below(prefix)}
        for path in [path for path in folder.rglob("*") if path.is_file() and path not in wanted]:
            path.unlink()
        for path, (key, modified) in wanted.items():
            if not path.exists() or path.stat().st_mtime != modified:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._client.get_object(Bucket=NAME, Key=key)["Body"].read())
                os.utime(path, (modified, modified))

    def _below(self, prefix: str) -> Iterator[tuple[str, float]]:
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=NAME, Prefix=prefix):
            for found in page.get("Contents", []):
                if not found["Key"].endswith("/"):  # it stands for a folder
                    yield found["Key"], found["LastModified"].timestamp()


@contextmanager
def running_bucket() -> Iterator[Bucket]:
    """Run the server, make the bucket in it; both end with the block."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it names each request
    # In this process and not in one of its own: so a file can be given an older time than it has, as S3 would.
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        client = boto3.session.Session().client("s3", endpoint_url=url, region_name=REGION)
        client.create_bucket(Bucket=NAME)
        yield Bucket(client, url, s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[NAME].keys)
    finally:
        server.stop()
