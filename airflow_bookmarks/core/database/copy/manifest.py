"""The manifest of a COPY: exactly the files of one attempt, each of which has to be there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def object_url(path: str) -> str:
    """Return a path as Redshift names it: its scheme is s3, whatever Spark calls it.

    Example:
        >>> object_url("s3a://tmp/prod/orders/manifest"), object_url("/tmp/manifest")
        ('s3://tmp/prod/orders/manifest', '/tmp/manifest')
    """
    scheme, sign, rest = path.partition("://")
    return f"s3://{rest}" if sign and scheme in ("s3a", "s3n") else path


def manifest_of(files: Iterable[tuple[str, int]]) -> bytes:
    """Return the manifest of files, by path and size in bytes.

    Without `mandatory` a COPY passes over a file that is gone; `content_length` is required for Parquet.

    Example:
        >>> manifest_of([("s3a://tmp/a.parquet", 12)]).decode()
        '{"entries": [{"url": "s3://tmp/a.parquet", "mandatory": true, "meta": {"content_length": 12}}]}'
    """
    entries = [{"url": object_url(path), "mandatory": True, "meta": {"content_length": size}} for path, size in files]
    return json.dumps({"entries": entries}).encode()
