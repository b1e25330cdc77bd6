"""Read the head of a file for its columns: the writer's schema in Avro, a header in CSV."""

from __future__ import annotations

import gzip
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_bookmarks.files.filesystem import FileSystem

_AVRO = b"Obj\x01"
_MOST_BYTES = 1 << 20  # a longer header is no header
_HEAD_BYTES = 1 << 16
HEADS_AT_ONCE = 200  # of so many bytes in memory
_OF_SPARK_ALONE = (".bz2", ".zst", ".zstd", ".snappy", ".lz4", ".deflate", ".xz")  # compressed by what only it reads
_AT_ONCE = 16  # opens that wait for an object store

Head = bytes | None


def by_head(files: FileSystem, paths: Sequence[str], head: Callable[[str, IO[bytes]], Head]) -> list[list[str]]:
    """Return the paths in groups of one head each, in the order in which they are first met.

    A file whose head can't be read, or that is gone, is a group of its own: Spark reports what is wrong with it.
    """
    groups: dict[bytes | str, list[str]] = {}
    for path, found in zip(paths, heads_of(files, paths, head), strict=True):
        groups.setdefault(path if found is None else found, []).append(path)
    return list(groups.values())


def heads_of(files: FileSystem, paths: Sequence[str], head: Callable[[str, IO[bytes]], Head]) -> list[Head]:
    """Return the head of each file; None where it can't be read, or is gone."""
    with ThreadPoolExecutor(_AT_ONCE, "bookmark-head") as pool:
        return list(pool.map(lambda path: _read(files, path, head), paths))


def _read(files: FileSystem, path: str, head: Callable[[str, IO[bytes]], Head]) -> Head:
    try:
        with files.open(path) as stream:
            return head(path, stream)
    except (FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        return None


# ---- CSV


def first_line(path: str, stream: IO[bytes]) -> Head:
    r"""Return the first line of a text file that has anything on it; None if it is compressed by what only Spark reads.

    Example:
        >>> from io import BytesIO
        >>> first_line("a.csv", BytesIO(b"carrier,delay\r\nAA,1"))
        b'carrier,delay'
    """
    if path.endswith((".gz", ".gzip")):
        return first_line("", cast("IO[bytes]", gzip.GzipFile(fileobj=stream)))
    if path.endswith(_OF_SPARK_ALONE):
        return None
    line = stream.readline(_MOST_BYTES)
    while line and not line.strip():
        line = stream.readline(_MOST_BYTES)
    return line.strip(b"\r\n")


def first_lines(path: str, stream: IO[bytes]) -> Head:
    """Return the lines at the head of a text file, the last one whole; None as `first_line` does."""
    if path.endswith((".gz", ".gzip")):
        return first_lines("", cast("IO[bytes]", gzip.GzipFile(fileobj=stream)))
    if path.endswith(_OF_SPARK_ALONE):
        return None
    head = stream.read(_HEAD_BYTES)
    return head + (stream.readline(_HEAD_BYTES) if len(head) == _HEAD_BYTES else b"")


# ---- Avro


def avro_schema(path: str, stream: IO[bytes]) -> Head:
    """Return the schema with which an Avro file was written, as its JSON text; None if it is no Avro file.

    Layout, as the Avro specification has it: `Obj` 1, then a map in blocks. A block is a count, that many pairs of key
    and value, each a length and so many bytes; a negative count is followed by the block's size in bytes. A count of 0
    ends it. Numbers are variable-length and zigzag.
    """
    if stream.read(len(_AVRO)) != _AVRO:
        return None
    count = _long(stream)
    while count:
        if count < 0:
            _long(stream)
        for _ in range(abs(count)):
            key, value = _bytes(stream), _bytes(stream)
            if key == b"avro.schema":
                return value
        count = _long(stream)
    return None


def _bytes(stream: IO[bytes]) -> bytes:
    length = _long(stream)
    found = stream.read(length) if 0 <= length <= _MOST_BYTES else b""
    if len(found) != length:
        raise EOFError("the head of an Avro file ends early")
    return found


def _long(stream: IO[bytes]) -> int:
    number = shift = 0
    while True:
        byte = stream.read(1)
        if not byte or shift > 63:
            raise EOFError("the head of an Avro file ends early")
        number |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return (number >> 1) ^ -(number & 1)
