"""Compress stored JSON documents, and decompress them with a limit on their size.

The format is one zlib stream, then `RAW`, a zero byte and the uncompressed number of bytes, in 8 bytes, the most
significant first. What was written before that number was recorded ends with the stream.
"""

from __future__ import annotations

import json
import struct
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.stored_json import read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_RAW_BYTES = 1024**3  # some ten million files
LEAST_RAW_BYTES = 64 * 1024**2  # anything may become as much
MOST_RATIO = 200  # and above that, so many times its size: lists of files become ten or twenty times theirs

_PARTED = b'{"v":2,'
_MOST_INDEX_BYTES = 1024**2
_MARK = b"RAW\0"
_TRAILER = struct.Struct(">4sQ")


def deflated(document: Any) -> bytes:
    """Return a document as stored.

    Example:
        >>> inflated(deflated(["a", "b"]), "list")
        ['a', 'b']
    """
    raw = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return zlib.compress(raw, 6) + _TRAILER.pack(_MARK, len(raw))


def inflated(body: bytes, what: str) -> Any:
    """Return the document that `deflated` packed; `what` names it in errors.

    Raises:
        StateCorruptError: it is damaged, or becomes more than is recorded, or than anything may become.
        TooLargeHereError: it is more than this process parses at a time.
    """
    most = min(MOST_RAW_BYTES, max(LEAST_RAW_BYTES, MOST_RATIO * len(body)))
    recorded = _recorded(body)
    if recorded is not None and recorded > most:
        raise _refused(what, f"it says that it becomes {recorded} bytes, and {most} are the most that it may")
    try:
        raw = _unpacked(body, most if recorded is None else recorded, what)
        if recorded not in (None, len(raw)):
            raise _refused(what, f"it becomes {len(raw)} bytes, and {recorded} are recorded")
        return _read(raw, what)
    except (zlib.error, ValueError, RecursionError) as error:
        raise _refused(what, str(error)) from error


def packed_parts(index: dict[str, Any], parts: Sequence[bytes]) -> bytes:
    """Return several `deflated` documents, each to be decompressed by itself, after a small one with their sizes.

    A version that knows of no parts reads that small one, and finds a format in it that it does not know.
    """
    document = {**index, "sizes": [len(part) for part in parts]}
    raw = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return zlib.compress(raw, 6) + b"".join(parts)


def parts_of(body: bytes, what: str) -> tuple[dict[str, Any], list[bytes]] | None:
    """Return the small document and the parts, still packed, that `packed_parts` joined; None for a single document.

    Raises:
        StateCorruptError: it is damaged.
    """
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(body, _MOST_INDEX_BYTES)
        if not unpacking.eof or not raw.startswith(_PARTED):
            return None
        index = read_json(raw, what)
        sizes = index["sizes"]
    except zlib.error:
        return None  # `inflated` says more of it
    except (ValueError, LookupError, RecursionError) as error:
        raise _refused(what, str(error)) from error
    rest = unpacking.unused_data
    is_known = isinstance(sizes, list) and all(isinstance(size, int) and size >= 0 for size in sizes)
    if not is_known or sum(sizes) != len(rest):
        raise _refused(what, "its parts are not as long as it says")
    parts = [rest[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)]
    if sum(_recorded(part) or 0 for part in parts) > MOST_RAW_BYTES or any(_recorded(part) is None for part in parts):
        raise _refused(what, f"its parts become more than {MOST_RAW_BYTES} bytes, or don't say how many")
    return index, parts


def _read(raw: bytes, what: str) -> Any:
    document = read_json(raw, what)
    if b"\\ud" in raw or b"\\uD" in raw:
        # Half a character, which `deflated` never writes: nothing could show it.
        json.dumps(document, ensure_ascii=False).encode()
    return document


def _recorded(body: bytes) -> int | None:
    if len(body) < _TRAILER.size:
        return None
    mark, size = _TRAILER.unpack_from(body, len(body) - _TRAILER.size)
    return int(size) if mark == _MARK else None


def _unpacked(body: bytes, most: int, what: str) -> bytes:
    unpacking = zlib.decompressobj()
    raw = unpacking.decompress(body, most + 1)
    if len(raw) > most:
        raise _refused(what, f"it becomes more than {most} bytes")
    if not unpacking.eof:
        raise _refused(what, "it is cut off")
    if unpacking.unused_data and (
        len(unpacking.unused_data) != _TRAILER.size or not unpacking.unused_data.startswith(_MARK)
    ):
        raise _refused(what, "something else follows it")
    return raw


def _refused(what: str, why: str) -> StateCorruptError:
    return StateCorruptError(f"a stored {what} can't be read ({why}); nothing was changed")
