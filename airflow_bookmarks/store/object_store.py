"""Objects: blobs that are too large for the table, each a file of its own under `state_uri`.

    <state_uri>/<namespace>/blobs/<table>-<12 hexadecimal digits>/<sha256>-<ULID>
    s3://lake-state/bookmarks/prod/blobs/bookmarks-5f0c1d2e3a4b/9c56cc51...-01K7Q8ZC5T1V4H9W3M6N8P0R2S

The item under the blob's key in the table (`<ns>#BLOB#<sha256>`, `0000000000`) names its object by `uri`, and has no
data. So whoever finds the item finds the bytes, whatever `state_uri` is by then.

Why the name has more in it than the hash of the content: a collection deletes the item, if its stamp is old, and then
the object. Were the name the hash alone, a driver that puts the same content between the two would lose it. With a name
for each put the collection deletes an object to which no item can refer again.

Why the folder has the table in its name: objects that no item of the table names are collected. Another table that was
given the same `state_uri` and namespace, or a copy of this one that was restored from a backup, must not take the
objects of this one for its own.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from airflow_bookmarks.core.endpoint import is_loopback
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.store.table import Table

_S3_SCHEMES = ("s3", "s3a", "s3n")
_UNFIT = re.compile(r"[\x00-\x1f*?\[\]{}#]")
_NAME = re.compile(r"([0-9a-f]{64})-([0-9A-HJKMNP-TV-Z]{26})")


class ObjectStore(Protocol):
    """Files that are written once, under URIs. What it refuses is an `OSError` or a `SourceError`."""

    def put(self, uri: str, data: bytes) -> None:
        """Write a file whole, with the folders above it."""
        ...

    def get(self, uri: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: it is not there.
        """
        ...

    def size(self, uri: str) -> int | None:
        """Return how many bytes a file has, None where it is not there."""
        ...

    def delete(self, uri: str) -> None:
        """Delete a file; no error when it is gone."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of the files in a folder; none when it is not there."""
        ...


def check_state_uri(state_uri: str) -> str:
    """Return a `state_uri` without a slash at its end, if objects can lie there.

    Raises:
        OptionError: it is no folder in S3 and no absolute local one, or holds credentials, a query or a pattern.

    Example:
        >>> check_state_uri("s3://lake-state/bookmarks/")
        's3://lake-state/bookmarks'
    """
    uri = state_uri.rstrip("/")
    scheme, sign, rest = uri.partition("://")
    if "@" in rest.partition("/")[0]:
        # The text is not repeated in the message: it holds what may be a password.
        raise OptionError(
            "state_uri holds a user or password. Nothing was read or changed. Credentials come from the environment, "
            "the machine's role or the Airflow connection."
        )
    is_s3 = bool(sign) and scheme in _S3_SCHEMES and bool(rest.partition("/")[0])
    is_local = uri.startswith("/") or (scheme == "file" and rest.startswith("/"))
    if not (is_s3 or is_local) or _UNFIT.search(uri) or any(part in (".", "..") for part in uri.split("/")):
        raise OptionError(
            f"state_uri={state_uri!r} is no folder that state can lie in. Nothing was read or changed. Right is, for "
            "example, s3://bucket/prefix, or, on one machine, /var/lib/bookmarks."
        )
    return uri


def is_in_s3(uri: str) -> bool:
    """Whether a checked `state_uri` is a folder in S3."""
    return uri.partition("://")[0] in _S3_SCHEMES and "://" in uri


def check_reach(state_uri: str, scheme: str, endpoint: str | None) -> None:
    """Make sure that who reaches the table can reach a checked `state_uri`: a local folder is of one machine.

    Raises:
        OptionError: a local folder beside a DynamoDB table that other machines use as well.
    """
    if is_in_s3(state_uri) or scheme == "sqlite":
        return
    if endpoint is None or not is_loopback(urlsplit(endpoint).netloc):
        raise OptionError(
            f"state_uri={state_uri!r} is a folder of one machine, and the table in DynamoDB is used by several: what "
            "one writes the others could not read. Nothing was read or changed. Name a folder in S3 (s3://bucket/"
            "prefix), or leave state_uri out: the table then holds everything."
        )


@dataclass(frozen=True, slots=True)
class ObjectFolders:
    """Where one table keeps the objects of one namespace, in whichever `state_uri`: `tail` is the rest of the path."""

    tail: str

    @classmethod
    def of(cls, namespace: str, table: Table, schema: Mapping[str, object]) -> ObjectFolders:
        """Return the folders of a table that has this schema item."""
        facts = table.describe()
        # Not by its host: one table has several (a VPC endpoint, a proxy).
        known = [str(schema.get("created_at", ""))]
        known += [facts.get(name, "") for name in ("kind", "region", "table", "path")]
        mark = hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]
        return cls(f"/{namespace}/blobs/{facts.get('table', facts['kind'])}-{mark}")

    def own(self, uri: str) -> bool:
        """Whether an object is one of this table and namespace."""
        folder, _, name = uri.rpartition("/")
        return folder.endswith(self.tail) and _NAME.fullmatch(name) is not None


def object_name(sha256: str, ulid: str) -> str:
    """Return the name of an object that is about to be put."""
    return f"{sha256}-{ulid}"


def ulid_of(name: str) -> str | None:
    """Return the ULID in the name of an object, which tells when it was put; None for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else match[2]
