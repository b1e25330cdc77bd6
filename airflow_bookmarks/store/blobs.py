"""Store blobs: immutable bytes named by their content hash, in chunks that fit an item, or as an object under
`state_uri`.

A blob above `OBJECT_BYTES` becomes an object if the store has a `state_uri`; other blobs stay in the table. The item of
the first chunk says which it is: it has `data`, or `uri`. An object is put before the item that names it, and that
before the transaction that refers to the blob: a process killed in between leaves something that a collection finds.
"""

from __future__ import annotations

import hashlib
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, NoReturn, TypeVar

from airflow_bookmarks.core.errors import ConditionFailedError, SourceError, StateCorruptError, StoreAccessError
from airflow_bookmarks.core.run import Payload
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.core.text.ulid import new_ulid
from airflow_bookmarks.store.codec.item import SCHEMA
from airflow_bookmarks.store.object_store import (
    MOST_BYTES,
    ObjectFolders,
    check_state_uri,
    is_object_below,
    object_name,
)
from airflow_bookmarks.store.table import Attributes, Check, Equals, Exists, Key, Lacks, Put, Table, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.store.object_store import ObjectStore

log = logging.getLogger(__name__)

CHUNK_BYTES = 350_000  # an item holds 400 KB, its names included
INLINE_BYTES = 16_384
OBJECT_BYTES = 1_048_576  # from four chunks on, one object costs less to write, and is faster
MOST_CHUNKS = -(-MOST_BYTES // CHUNK_BYTES)
URI = "uri"  # of the first item of a blob: where its object lies

_FIRST_CHUNKS = 40  # in one request, which answers with 16 MB at most: more would be asked for again
_CHUNKS_TOGETHER = 10
_AT_ONCE = 8  # requests of one reader

_T = TypeVar("_T")
_RESTORE = "Restore the table from a backup, or reset the job: its next run then reads everything."


class BlobMissingError(StateCorruptError):
    """Raised when a blob that is referred to, or a part of it, is missing; `what` briefly describes the reference."""

    def __init__(self, sha256: str, what: str, advice: str = "") -> None:
        super().__init__(f"blob {sha256} {what}. Nothing was changed. {advice}{_RESTORE}")
        self.sha256, self.what = sha256, what


class BlobStore:
    """Puts and gets blobs of one namespace. A blob is written before the transaction that refers to it.

    Args:
        state_uri: folder for large blobs; None: all lie in the table. Those that lie in another one are read if the
            table records that (`BookmarkStore.init`).
        objects: what reaches that folder; None: files, as sources and targets are reached.

    Raises:
        OptionError: the state_uri is none.
    """

    def __init__(
        self,
        table: Table,
        namespace: str,
        clock: Callable[[], datetime] = utc_now,
        *,
        state_uri: str | None = None,
        objects: ObjectStore | None = None,
    ) -> None:
        self._table = table
        self._namespace = namespace
        self._clock = clock
        self.state_uri = None if state_uri is None else check_state_uri(state_uri)
        self._given_objects = objects
        self._known_folders: ObjectFolders | None = None

    # ---- put

    def put(self, data: bytes) -> Payload:
        """Store `data` and return the reference. Repeating it is harmless: same content, same name.

        Raises:
            StoreAccessError: `state_uri` can't be written. Nothing refers to what was stored by then.
        """
        payload = self._reference(data)
        folder = self.folder if self._becomes_object(data) else None
        if folder is None:
            self._put_chunks(payload.sha256, data)
        else:
            self._put_object(folder, payload.sha256, data)
        return payload

    def _put_chunks(self, sha256: str, data: bytes) -> None:
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)] or [b""]
        stamp = to_text(self._clock())
        puts = [
            Put(self._key(sha256, number), {"data": piece, "chunks": len(pieces), "stamped_at": stamp})
            for number, piece in enumerate(pieces)
        ]
        first, *others = puts
        try:
            self._table.transact([Put(first.key, first.attributes, [Lacks(URI)])])
        except ConditionFailedError:
            # An object of it was put while there was a state_uri. Its item goes last: a concurrent reader finds the
            # object or all chunks.
            others = [*others, first]
        for put in others:
            self._table.transact([put])

    def _put_object(self, folder: str, sha256: str, data: bytes) -> None:
        key, stamp = self._key(sha256, 0), to_text(self._clock())
        there = self._table.get([key]).get(key, {}).get(URI)
        is_here = isinstance(there, str) and there.startswith(f"{folder}/") and self._may_hold(there, sha256)
        if is_here and self._size(str(there)) == len(data):
            try:
                self._table.transact([Update(key, set={"stamped_at": stamp}, conditions=[Equals(URI, there)])])
            except ConditionFailedError:
                log.debug("the object %s was collected meanwhile", there)
            else:
                return
        uri = f"{folder}/{object_name(sha256, new_ulid(self._clock(), SystemRandom()))}"
        try:
            self.files.put(uri, data)
        except (OSError, SourceError) as error:
            self._refuse(f"blob {sha256} can't be written to {uri}", "s3:PutObject", error)
        self._table.transact([Put(key, {URI: uri, "bytes": len(data), "chunks": 1, "stamped_at": stamp})])

    def payload(self, data: bytes, inline_bytes: int = INLINE_BYTES) -> Payload:
        """Return `data` inline if it has at most `inline_bytes`, else put it."""
        if len(data) <= inline_bytes:
            return Payload(hashlib.sha256(data).hexdigest(), len(data), inline=data)
        return self.put(data)

    def refer(self, data: bytes, inline_bytes: int = INLINE_BYTES) -> Payload:
        """Return what `payload` would return, without storing anything."""
        if len(data) <= inline_bytes:
            return Payload(hashlib.sha256(data).hexdigest(), len(data), inline=data)
        return self._reference(data)

    def _reference(self, data: bytes) -> Payload:
        chunks = 1 if self._becomes_object(data) else max(1, -(-len(data) // CHUNK_BYTES))
        return Payload(hashlib.sha256(data).hexdigest(), len(data), chunks=chunks)

    def proof(self, data: bytes) -> Check:
        """Return the part of a transaction that proves that a blob is there: its last chunk, which is the smallest."""
        payload = self._reference(data)
        return Check(self._key(payload.sha256, (payload.chunks or 1) - 1), [Exists()])

    # ---- get

    def get(self, payload: Payload) -> bytes:
        """Return the bytes of a payload, checked.

        Raises:
            StateCorruptError: a chunk or object is missing, or the bytes do not match their hash.
            StoreAccessError: its object can't be read from here.
        """
        if payload.inline is not None:
            return _checked(payload.inline, payload.sha256)
        return self.get_named([payload.sha256])[payload.sha256]

    def get_named(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Return the bytes of the blobs with these hashes, checked; several requests at a time where they are large.

        Raises:
            StateCorruptError: a chunk or object is missing, or the bytes do not match their hash.
            StoreAccessError: an object can't be read from here.
        """
        found = self._items([self._key(name, 0) for name in dict.fromkeys(names)], _FIRST_CHUNKS)
        found |= self._items([key for first in found for key in _others(first, found[first])], _CHUNKS_TOGETHER)
        named = {name: item for name in names if URI in (item := found.get(self._key(name, 0), {}))}
        places = [partial(self._object, name, *self._place(name, item)) for name, item in named.items()]
        objects = dict(zip(named, _each(places), strict=True))
        return {name: objects[name] if name in objects else self._joined(name, found) for name in names}

    def _items(self, keys: Sequence[Key], together: int) -> dict[Key, Attributes]:
        parts = [keys[start : start + together] for start in range(0, len(keys), together)]
        answers = _each([partial(self._table.get, part) for part in parts])
        return {key: item for answer in answers for key, item in answer.items()}

    def _joined(self, sha256: str, found: Mapping[Key, Attributes]) -> bytes:
        first = self._key(sha256, 0)
        if first not in found:
            left = [item.get("chunks") for _, item in self._table.query(first.pk)]
            raise BlobMissingError(sha256, f"has {len(left)} of {left[0]!r} chunks" if left else "has 0 of all chunks")
        chunks = found[first].get("chunks", 0)
        count = chunks if isinstance(chunks, int) else 0
        items = [found[key] for number in range(count) if (key := self._key(sha256, number)) in found]
        pieces = [data for item in items if isinstance(data := item.get("data"), bytes)]
        if count != chunks or len(pieces) != len(items):
            raise StateCorruptError(f"blob {sha256} has a chunk without data or count. Nothing was changed. {_RESTORE}")
        if not pieces or len(pieces) != count:
            raise BlobMissingError(sha256, f"has {len(pieces)} of {count or 'all'} chunks")
        return _checked(b"".join(pieces), sha256)

    # ---- objects

    @property
    def folder(self) -> str | None:
        """The folder in which this table keeps its objects now; None without a `state_uri`."""
        return None if self.state_uri is None else f"{self.state_uri}{self._folders.tail}"

    def owns(self, uri: str, sha256: str) -> bool:
        """Whether an object belongs to a blob of this table: a copy names objects of the table it was made from."""
        return self._folders.own(uri, sha256)

    @property
    def _folders(self) -> ObjectFolders:
        if self._known_folders is None:
            schema = self._table.get([SCHEMA]).get(SCHEMA, {})
            self._known_folders = ObjectFolders.of(self._namespace, self._table, schema, self.state_uri)
        return self._known_folders

    def objects(self) -> Sequence[str]:
        """Return the URIs of all objects that this table has under its present `state_uri`.

        Raises:
            StoreAccessError: they can't be listed from here.
        """
        folder = self.folder
        if folder is None:
            return []
        try:
            return [f"{folder}/{name}" for name in self.files.names(folder)]
        except (OSError, SourceError) as error:
            self._refuse(f"the blobs in {folder} can't be listed", "s3:ListBucket", error)

    def delete_object(self, uri: str) -> None:
        """Delete an object that no item names any more.

        Raises:
            StoreAccessError: it can't be deleted from here.
        """
        try:
            self.files.delete(uri)
        except (OSError, SourceError) as error:
            self._refuse(f"the object {uri}, which nothing names any more, can't be deleted", "s3:DeleteObject", error)

    @property
    def artifacts_folder(self) -> str | None:
        """The folder with a folder for each job, for what belongs to its positions; None without a `state_uri`."""
        return None if self.state_uri is None else f"{self.state_uri}{self.artifacts_tail}"

    @property
    def artifacts_tail(self) -> str:
        """The path of that folder below a `state_uri`."""
        return self._folders.artifacts_tail

    @property
    def files(self) -> ObjectStore:
        """What reaches the files below `state_uri`."""
        if self._given_objects is None:
            # Imported where it is needed: most stores have no objects.
            from airflow_bookmarks.files.objects import FileObjects

            self._given_objects = FileObjects()
        return self._given_objects

    def _place(self, sha256: str, item: Attributes) -> tuple[str, int]:
        """Return where the object of a blob lies and how many bytes it has, if the store has put one."""
        uri, size = item[URI], item.get("bytes", MOST_BYTES)
        where = f"{self._key(sha256, 0).pk}, {self._key(sha256, 0).sk}"
        if not isinstance(uri, str) or not self._may_hold(uri, sha256):
            raise StateCorruptError(
                f"the item {where} of the state table names the object {uri!r}, which lies where this store has put "
                "none. Nothing was read or changed. If state_uri had another value when it was put, let an admin call "
                "'airflow-bookmarks init' once with that one: the table then knows it. Otherwise somebody has changed "
                f"the item. {_RESTORE}"
            )
        if not isinstance(size, int) or not 0 <= size <= MOST_BYTES:
            raise StateCorruptError(
                f"the item {where} of the state table says that its object has {size!r} bytes, and a blob has "
                f"{MOST_BYTES} at most. Nothing was read or changed. {_RESTORE}"
            )
        return uri, size

    def _may_hold(self, uri: str, sha256: str) -> bool:
        """Whether a store with this `state_uri`, or one that the table records, gives an object of a blob this name."""
        # The table is read only if its answer is needed.
        is_below = self.state_uri is not None and is_object_below(self.state_uri, self._namespace, uri, sha256)
        return is_below or self._folders.hold(uri, sha256)

    def _object(self, sha256: str, uri: str, size: int) -> bytes:
        try:
            return _checked(self.files.get(uri, size), sha256)
        except FileNotFoundError as error:
            raise BlobMissingError(
                sha256,
                f"is the object {uri}, and that is not there",
                "If it lies in a folder of another machine, mount that here, or take one in S3 as state_uri. Else: ",
            ) from error
        except (OSError, SourceError) as error:
            self._refuse(f"blob {sha256} is the object {uri}, and that can't be read", "s3:GetObject", error)

    def _size(self, uri: str) -> int | None:
        try:
            return self.files.size(uri)
        except (OSError, SourceError) as error:
            self._refuse(f"the object {uri} can't be looked at", "s3:GetObject", error)

    def _becomes_object(self, data: bytes) -> bool:
        return self.state_uri is not None and len(data) > OBJECT_BYTES

    def _refuse(self, what: str, right: str, error: Exception) -> NoReturn:
        raise StoreAccessError(
            f"{what}: {error} No state was changed. This process needs access to state_uri: in S3 {right} on the "
            "keys below it, else the folder itself."
        ) from error

    # ---- keys

    def _key(self, sha256: str, number: int) -> Key:
        return _chunk(f"{self._namespace}#BLOB#{sha256}", number)


def _chunk(partition: str, number: int) -> Key:
    return Key(partition, f"{number:010d}")


def _others(first: Key, item: Attributes) -> Iterator[Key]:
    """Yield the keys of the further chunks of a blob; an object has none."""
    chunks = item.get("chunks")
    if URI not in item and isinstance(chunks, int):
        if chunks > MOST_CHUNKS:
            raise StateCorruptError(
                f"the item {first.pk}, {first.sk} of the state table says that its blob has {chunks} chunks, and one "
                f"has {MOST_CHUNKS} at most. Nothing was read or changed. {_RESTORE}"
            )
        yield from (_chunk(first.pk, number) for number in range(1, chunks))


def _each(requests: Sequence[Callable[[], _T]]) -> list[_T]:
    """Return the answers of all requests, several of which are sent at a time."""
    if len(requests) < 2:
        return [request() for request in requests]
    with ThreadPoolExecutor(min(len(requests), _AT_ONCE), "bookmark-blobs") as pool:
        try:
            # Each in a copy of this context, which says how the job reaches its files.
            answers = [pool.submit(copy_context().run, request) for request in requests]
            return [answer.result() for answer in answers]
        finally:
            pool.shutdown(cancel_futures=True)


def _checked(data: bytes, sha256: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StateCorruptError(
            f"stored bytes do not match their checksum {sha256}: the state was changed from outside. Nothing was "
            f"changed now. {_RESTORE}"
        )
    return data
