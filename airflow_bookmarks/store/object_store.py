"""Store blobs that are too large for the table as objects: each a file of its own under `state_uri`.

    <state_uri>/<namespace>/blobs/<table>-<12 hexadecimal digits>/<sha256>-<ULID>
    s3://lake-state/bookmarks/prod/blobs/bookmarks-5f0c1d2e3a4b/9c56cc51...-01K7Q8ZC5T1V4H9W3M6N8P0R2S

The item under the blob's key in the table (`<ns>#BLOB#<sha256>`, `0000000000`) names its object by `uri`, and has no
data. So the item leads to the bytes even after `state_uri` has changed: the schema item of the table lists, as
`state_uris`, each one that an `init` was given. An item that names any other place is not followed: the right to write
items of a job must not let anyone choose what others read or delete.

The name holds more than the hash of the content, because a collection deletes the item, if its stamp is old, and then
the object. If the name were only the hash, a driver that puts the same content between the two would lose it. With a
name for each put, the collection deletes an object to which no item can refer again.

The folder carries the table's name, because objects that no item of the table names are collected. Another table with
the same `state_uri` and namespace, or a copy of this one that was restored from a backup, must not take the objects of
this one for its own.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from airflow_bookmarks.core.errors import ConditionFailedError, OptionError
from airflow_bookmarks.core.text.endpoint import is_loopback
from airflow_bookmarks.store.codec.item import SCHEMA
from airflow_bookmarks.store.table import Equals, Lacks, Put
from airflow_bookmarks.store.table_settings import DEFAULT, TableSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.store.table import Attributes, Table

SETTINGS = "table_settings"  # of the schema item: what the table was made with
STATE_URIS = "state_uris"  # of the schema item: each folder that an `init` was given
MOST_BYTES = 2 * 1024**3  # of a blob

_S3_SCHEMES = ("s3", "s3a", "s3n")
_UNFIT = re.compile(r"[\x00-\x1f*?\[\]{}#]")
_NAME = re.compile(r"([0-9a-f]{64})-([0-9A-HJKMNP-TV-Z]{26})")


class ObjectStore(Protocol):
    """Files that are written once, under URIs. Failures are an `OSError` or a `SourceError`."""

    def put(self, uri: str, data: bytes) -> None:
        """Write a file whole, with the folders above it."""
        ...

    def get(self, uri: str, most_bytes: int) -> bytes:
        """Return the content of a file, up to one byte more than `most_bytes`.

        Raises:
            FileNotFoundError: it is not there. StateCorruptError: it is no regular file.
        """
        ...

    def size(self, uri: str) -> int | None:
        """Return how many bytes a file has; None if it is not there."""
        ...

    def delete(self, uri: str) -> None:
        """Delete a file; no error when it is gone."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """Return the names of the files in a folder; none if it is not there."""
        ...

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders in a folder; none if it is not there."""
        ...

    def remove(self, folder: str) -> None:
        """Remove a folder with everything in it; no error when it is gone."""
        ...


def check_state_uri(state_uri: str) -> str:
    """Return a `state_uri` without a trailing slash, if objects can lie there.

    Raises:
        OptionError: it is no folder in S3 and no absolute local one, or holds credentials, a query or a pattern.

    Example:
        >>> check_state_uri("s3://lake-state/bookmarks/")
        's3://lake-state/bookmarks'
    """
    uri = state_uri.rstrip("/")
    scheme, sign, rest = uri.partition("://")
    if sign and scheme not in (*_S3_SCHEMES, "file"):
        # The message does not repeat the text, which may hold a password.
        raise OptionError(
            f"state_uri has the scheme {scheme!r}, and state can lie in S3 (s3://bucket/prefix) or in a local folder "
            "(/var/lib/bookmarks), in no other store. Nothing was read or changed. Name one of these, or leave "
            "state_uri out: the table then holds everything."
        )
    if "@" in rest.partition("/")[0]:
        # The message does not repeat the text, which holds what may be a password.
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
    """Make sure that every machine that reaches the table can reach a checked `state_uri`: a local folder is on one
    machine.

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
    """Where one table keeps the objects of one namespace: `tail` is the path below each of the `state_uris`."""

    namespace: str
    tail: str
    state_uris: tuple[str, ...]

    @classmethod
    def of(
        cls, namespace: str, table: Table, schema: Mapping[str, object], state_uri: str | None = None
    ) -> ObjectFolders:
        """Return the folders of a table that has this schema item, and of a store with this `state_uri`."""
        details = table.describe()
        # The host is not compared: one table has several (a VPC endpoint, a proxy).
        known = [str(schema.get("created_at", ""))]
        known += [details.get(name, "") for name in ("kind", "region", "table", "path")]
        mark = hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]
        tail = f"/{namespace}/blobs/{details.get('table', details['kind'])}-{mark}"
        return cls(namespace, tail, (*([] if state_uri is None else [state_uri]), *recorded_uris(schema)))

    @property
    def artifacts_tail(self) -> str:
        """The path below a `state_uri` of the folders that belong to positions of this table and namespace."""
        return f"/{self.namespace}/artifacts/{self.tail.rpartition('/')[2]}"

    def own(self, uri: str, sha256: str) -> bool:
        """Whether an object is one of this table and namespace, with this content."""
        return uri.rpartition("/")[0].endswith(self.tail) and self.hold(uri, sha256)

    def hold(self, uri: str, sha256: str) -> bool:
        """Whether a URI is that of an object with this content, of this table or of one that it copies."""
        return any(is_object_below(each, self.namespace, uri, sha256) for each in self.state_uris)


def is_object_below(state_uri: str, namespace: str, uri: str, sha256: str) -> bool:
    """Whether a store with this `state_uri` gives an object of a namespace with this content this URI.

    Example:
        >>> sha256 = "9c" * 32
        >>> name = f"prod/blobs/bookmarks-5f0c1d2e3a4b/{sha256}-01K7Q8ZC5T1V4H9W3M6N8P0R2S"
        >>> [is_object_below("s3://b/x", "prod", f"{at}/{name}", sha256) for at in ("s3a://b/x", "s3://b/y", "/b/x")]
        [True, False, False]
    """
    base = f"{_in_one_spelling(state_uri)}/"
    spelled = _in_one_spelling(uri)
    parts = spelled.removeprefix(base).split("/")
    if not spelled.startswith(base) or len(parts) != 4 or parts[:2] != [namespace, "blobs"]:
        return False
    name = _NAME.fullmatch(parts[3])
    return parts[2] not in ("", ".", "..") and name is not None and name[1] == sha256


def _in_one_spelling(uri: str) -> str:
    scheme, sign, rest = uri.partition("://")
    if sign and scheme in _S3_SCHEMES:
        return f"s3://{rest}"
    return rest if sign and scheme == "file" else uri


def recorded_uris(schema: Mapping[str, object]) -> tuple[str, ...]:
    """Return the folders that a schema item records."""
    recorded = schema.get(STATE_URIS)
    return tuple(each for each in recorded if isinstance(each, str)) if isinstance(recorded, list) else ()


def note_state_uri(table: Table, state_uri: str) -> None:
    """Add a folder to those that the schema item records, unless it is there in any spelling."""
    while True:
        schema = table.get([SCHEMA])[SCHEMA]
        recorded = recorded_uris(schema)
        if _in_one_spelling(state_uri) in map(_in_one_spelling, recorded):
            return
        as_seen = [Equals(name, schema[name]) if name in schema else Lacks(name) for name in (SETTINGS, STATE_URIS)]
        try:
            table.transact([Put(SCHEMA, {**schema, STATE_URIS: [*recorded, state_uri]}, as_seen)])
        except ConditionFailedError:
            continue  # another one was added meanwhile: both stay


def note_settings(table: Table, settings: TableSettings) -> None:
    """Write what `init` was asked to make the table with into the schema item, replacing an earlier note."""
    note: Attributes = {
        "kms_key": settings.kms_key,
        "deletion_protection": settings.deletion_protection,
        "tags": dict(settings.tags),
        "stream": settings.stream,
    }
    while True:
        schema = table.get([SCHEMA])[SCHEMA]
        if schema.get(SETTINGS) == note:
            return
        as_seen = [Equals(name, schema[name]) if name in schema else Lacks(name) for name in (SETTINGS, STATE_URIS)]
        try:
            table.transact([Put(SCHEMA, {**schema, SETTINGS: note}, as_seen)])
        except ConditionFailedError:
            continue  # another init was faster, and nothing that it noted is lost


def noted_settings(schema: Attributes) -> TableSettings:
    """Return what the schema item notes; nothing if it has no note, or one that no `init` has written."""
    note = schema.get(SETTINGS)
    if not isinstance(note, dict):
        return DEFAULT
    key, tags = note.get("kms_key"), note.get("tags")
    return TableSettings(
        key if isinstance(key, str) else None,
        note.get("deletion_protection") is True,
        {name: str(value) for name, value in tags.items()} if isinstance(tags, dict) else {},
        note.get("stream") is True,
    )


def object_name(sha256: str, ulid: str) -> str:
    """Return the name of an object that is about to be put."""
    return f"{sha256}-{ulid}"


def ulid_of(name: str) -> str | None:
    """Return the ULID in the name of an object, which tells when it was put; None for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else match[2]
