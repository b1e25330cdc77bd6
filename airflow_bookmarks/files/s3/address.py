"""Where an object or a folder lies in S3."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.s3.settings import S3_SCHEMES

# The scheme of canonical paths in the store: the one that any Spark reads.
SCHEME = "s3a"

_DIRECTORY_BUCKET = "--x-s3"  # how the names of such buckets end, and no other's may


@dataclass(frozen=True, slots=True)
class S3Address:
    """A bucket, and a key in it or what keys in it begin with; `str` is the canonical path."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, path: str) -> S3Address:
        """Return the address of a path.

        Raises:
            OptionError: it is none in S3, or one in a bucket that can't be listed as needed.

        Example:
            >>> str(S3Address.parse("s3://lake/raw"))
            's3a://lake/raw'
        """
        scheme, sign, rest = path.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme not in S3_SCHEMES or not sign or not bucket:
            raise OptionError(
                f"{path!r} is no path in S3. Nothing was read or changed. Write it as s3a://bucket/folder, and keep "
                "sources or targets that belong together on one file system."
            )
        if "@" in bucket or ":" in bucket:
            raise OptionError(
                f"a path in bucket {bucket.rpartition('@')[2]!r} has credentials or a port before the bucket's name. "
                "Nothing was read or changed. Write s3a://bucket/folder; give credentials by environment or Spark conf."
            )
        if bucket.endswith(_DIRECTORY_BUCKET):
            raise OptionError(
                f"{path!r} lies in a directory bucket (S3 Express One Zone), which lists keys in no order and has "
                "etags that tell nothing of the content: what was read could not be told from what is new. Nothing was "
                "read or changed. Use a general purpose bucket."
            )
        return cls(bucket, key)

    def __str__(self) -> str:
        return f"{SCHEME}://{self.bucket}/{self.key}" if self.key else f"{SCHEME}://{self.bucket}"

    @property
    def inside(self) -> str:
        """What the keys of a folder of this name begin with."""
        return f"{self.key}/" if self.key else ""
