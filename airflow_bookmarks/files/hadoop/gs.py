"""Files in Google Cloud Storage, through gcsfs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.hadoop.filesystem import HadoopFileSystem, HadoopPath


class GcsFileSystem(HadoopFileSystem):
    """Objects in Google Cloud Storage, with the identity that Google's own library finds."""

    schemes = ("gs",)
    protocol = "gs"
    package = "gcsfs"
    example = "gs://bucket/folder"

    def authority(self, text: str, path: str) -> str:
        """Return the bucket."""
        if not text or "@" in text or ":" in text:
            raise OptionError(f"{path!r} names no bucket. Nothing was read or changed. Write it as {self.example}.")
        return text

    def options(self, authority: str) -> Mapping[str, Any]:
        """Return nothing: fsspec's own configuration has all settings."""
        return {}

    def inner(self, at: HadoopPath) -> str:
        """Return the bucket and the name of the object."""
        return f"{at.authority}{at.path}".rstrip("/")

    def time_ms(self, info: Mapping[str, Any]) -> int:
        """Return when the object was changed last."""
        return int(info["mtime"].timestamp() * 1000)

    def etag(self, info: Mapping[str, Any]) -> str | None:
        """Return a digest of the content; Google's etag is another one after each copy and each change of labels."""
        return info.get("md5Hash") or info.get("crc32c")

    def other_errors(self) -> tuple[type[Exception], ...]:
        """Return what gcsfs and Google's library raise."""
        found = (
            ("gcsfs.retry", "HttpError"),
            ("google.auth.exceptions", "GoogleAuthError"),
            ("aiohttp", "ClientError"),
        )
        return tuple(getattr(importlib.import_module(module), name) for module, name in found)


@lru_cache(maxsize=1)
def open_gs() -> GcsFileSystem:
    """Return the one Google Cloud Storage, with its connections."""
    return GcsFileSystem()


# A child has connections of its own: on those of its parent their answers would be mixed up.
os.register_at_fork(after_in_child=open_gs.cache_clear)
