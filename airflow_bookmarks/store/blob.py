"""Blobs: immutable bytes named by their content hash, cut into chunks that fit a DynamoDB item."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.instant import to_text, utc_now
from airflow_bookmarks.core.run import Payload
from airflow_bookmarks.store.table import Attributes, Check, Exists, Key, Put, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

CHUNK_BYTES = 350_000  # an item holds 400 KB, its names included
INLINE_BYTES = 16_384


class BlobStore:
    """Puts and gets blobs of one namespace. A blob is written before the transaction that refers to it."""

    def __init__(self, table: Table, namespace: str, clock: Callable[[], datetime] = utc_now) -> None:
        self._table = table
        self._namespace = namespace
        self._clock = clock

    def put(self, data: bytes) -> Payload:
        """Store `data` as chunks and return the reference. Repeating it is harmless: same content, same name."""
        sha256 = hashlib.sha256(data).hexdigest()
        pieces = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)] or [b""]
        stamp = to_text(self._clock())
        for number, piece in enumerate(pieces):
            attributes: Attributes = {"data": piece, "chunks": len(pieces), "stamped_at": stamp}
            self._table.transact([Put(self._key(sha256, number), attributes)])
        return Payload(sha256, len(data), chunks=len(pieces))

    def payload(self, data: bytes, inline_bytes: int = INLINE_BYTES) -> Payload:
        """Return `data` inline when it has `inline_bytes` or less, else put it."""
        if len(data) <= inline_bytes:
            return Payload(hashlib.sha256(data).hexdigest(), len(data), inline=data)
        return self.put(data)

    def refer(self, data: bytes, inline_bytes: int = INLINE_BYTES) -> Payload:
        """Return what `payload` would, without storing anything."""
        sha256 = hashlib.sha256(data).hexdigest()
        if len(data) <= inline_bytes:
            return Payload(sha256, len(data), inline=data)
        return Payload(sha256, len(data), chunks=max(1, -(-len(data) // CHUNK_BYTES)))

    def proof(self, data: bytes) -> Check:
        """Return the part of a transaction which proves that a blob is there: its last chunk, as it is the smallest."""
        payload = self.refer(data, inline_bytes=-1)
        return Check(self._key(payload.sha256, (payload.chunks or 1) - 1), [Exists()])

    def get(self, payload: Payload) -> bytes:
        """Return the bytes of a payload, checked.

        Raises:
            StateCorruptError: a chunk is missing, or the bytes do not match their hash.
        """
        if payload.inline is not None:
            return _checked(payload.inline, payload.sha256)
        return self.get_named([payload.sha256])[payload.sha256]

    def get_named(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Return the bytes of the blobs with these hashes, checked.

        Raises:
            StateCorruptError: a chunk is missing, or the bytes do not match their hash.
        """
        return {name: self._whole(name) for name in names}

    def _whole(self, sha256: str) -> bytes:
        pieces: list[bytes] = []
        chunks = 1
        for _, item in self._table.query(self._partition(sha256)):
            data, count = item.get("data"), item.get("chunks")
            if not isinstance(data, bytes) or not isinstance(count, int):
                raise StateCorruptError(f"blob {sha256} has a chunk without data. Nothing was changed.")
            pieces.append(data)
            chunks = count
        if len(pieces) != chunks:
            raise StateCorruptError(
                f"blob {sha256} has {len(pieces)} of {chunks} chunks. Nothing was changed. Restore the table from a "
                "backup, or reset the job: its next run then reads everything."
            )
        return _checked(b"".join(pieces), sha256)

    def _partition(self, sha256: str) -> str:
        return f"{self._namespace}#BLOB#{sha256}"

    def _key(self, sha256: str, number: int) -> Key:
        return Key(self._partition(sha256), f"{number:010d}")


def _checked(data: bytes, sha256: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StateCorruptError(
            f"stored bytes do not match their checksum {sha256}: the state was changed from outside. Nothing was "
            "changed now. Restore the table from a backup, or reset the job: its next run then reads everything."
        )
    return data
