"""Segments of a file ledger: which versions of which files were read, 16 bytes a file, sorted, checksummed, immutable.

Layout, format 1, all numbers little endian, for n files (`docs/reference/formats.md` has the same layout):

    offset      bytes  type     what
    0           4      bytes    magic, b"ABLS"
    4           2      u16      format version, 1
    6           2      u16      bytes per file, 16
    8           8      u64      n, 1 or more
    16          8      i64      newest: no file in it has a later time (ms since 1970 UTC)
    24          8      i64      oldest: no file in it has an earlier time (ms since 1970 UTC)
    32          8n     u64[n]   path: blake2b, 8 bytes, of the canonical path without its scheme; strictly ascending
    32 + 8n     4n     u32[n]   version: 32 bits made of the etag, or of size and time (`version_bits`)
    32 + 12n    4n     u32[n]   time of the file in seconds since 1970 UTC, clamped to what a u32 holds
    32 + 16n    16     bytes    checksum: blake2b, 16 bytes, of everything before it

Columns and not rows, so that numpy searches the bytes where they lie.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from airflow_bookmarks.core.errors import StateCorruptError

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.listing import Listing

Bits64: TypeAlias = npt.NDArray[np.uint64]
Bits32: TypeAlias = npt.NDArray[np.uint32]
Hasher: TypeAlias = Callable[[Sequence[str]], Bits64]

MAGIC = b"ABLS"
FORMAT = 1
ENTRY_BYTES = 16
CHECKSUM_BYTES = 16
_HEADER = struct.Struct("<4sHHQqq")
OVERHEAD_BYTES = _HEADER.size + CHECKSUM_BYTES

_LATEST_SECOND = 2**32 - 1
_HASH_CHUNK = 65_536  # bounds the names and digests that are held at one time


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Files that were read, one entry for each path.

    `data` is the whole segment as stored; the columns are read-only views of it. `newest_ms` and `oldest_ms` bound the
    times of its files; after a merge an entry that went may have set a bound.
    """

    data: bytes
    hashes: Bits64
    versions: Bits32
    seconds: Bits32
    newest_ms: int
    oldest_ms: int

    @classmethod
    def of(cls, hashes: Bits64, versions: Bits32, times_ms: npt.NDArray[np.int64]) -> Segment:
        """Make a segment of one file or more, in any order; of several entries with one hash the last one stays."""
        return cls._newest_of(
            hashes[::-1], versions[::-1], whole_seconds(times_ms)[::-1], int(times_ms.max()), int(times_ms.min())
        )

    @classmethod
    def merged(cls, newest_first: Sequence[Segment]) -> Segment:
        """Make one segment of several that are given newest first; of each path the newest entry stays."""
        if len(newest_first) == 1:
            return newest_first[0]
        return cls._newest_of(
            np.concatenate([s.hashes for s in newest_first]),
            np.concatenate([s.versions for s in newest_first]),
            np.concatenate([s.seconds for s in newest_first]),
            max(s.newest_ms for s in newest_first),
            min(s.oldest_ms for s in newest_first),
        )

    @classmethod
    def _newest_of(cls, hashes: Bits64, versions: Bits32, seconds: Bits32, newest_ms: int, oldest_ms: int) -> Segment:
        # A stable sort keeps the newest entry of each path in front of its older ones.
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        is_newest = np.ones(len(ordered), np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_newest[1:])
        kept = order[is_newest]
        content = b"".join(
            (
                _HEADER.pack(MAGIC, FORMAT, ENTRY_BYTES, len(kept), newest_ms, oldest_ms),
                hashes[kept].astype("<u8", copy=False).tobytes(),
                versions[kept].astype("<u4", copy=False).tobytes(),
                seconds[kept].astype("<u4", copy=False).tobytes(),
            )
        )
        return cls._viewing(content + _checksum(content), len(kept), newest_ms, oldest_ms)

    @classmethod
    def from_bytes(cls, data: bytes, name: str | None = None) -> Segment:
        """Read a segment as it was stored.

        Args:
            data: the whole segment.
            name: the id that it has to have (sha256 of `data`, in hex); it is looked at in place of the checksum
                within, because one hash over all bytes is enough. Default: not known, the checksum is looked at.

        Raises:
            StateCorruptError: a wrong magic, format, length, name, checksum or order: damage is never an empty ledger.
        """
        if len(data) < OVERHEAD_BYTES + ENTRY_BYTES:
            raise corrupt(f"a ledger segment has only {len(data)} bytes")
        magic, version, entry_bytes, count, newest_ms, oldest_ms = _HEADER.unpack_from(data)
        if magic != MAGIC:
            raise corrupt(f"a ledger segment starts with {magic!r} instead of {MAGIC!r}")
        if (version, entry_bytes) != (FORMAT, ENTRY_BYTES):
            raise corrupt(
                f"a ledger segment has format {version} with {entry_bytes} bytes per file, and this version of "
                f"airflow_bookmarks knows format {FORMAT} with {ENTRY_BYTES} (was it written by a newer one?)"
            )
        if len(data) != OVERHEAD_BYTES + ENTRY_BYTES * count:
            raise corrupt(f"a ledger segment of {count} files has {len(data)} bytes")
        if name is not None and hashlib.sha256(data).hexdigest() != name:
            raise corrupt(f"the ledger segment {name} has the bytes of another one, or is damaged")
        if name is None and _checksum(memoryview(data)[:-CHECKSUM_BYTES]) != data[-CHECKSUM_BYTES:]:
            raise corrupt("a ledger segment does not match its checksum")
        segment = cls._viewing(data, count, newest_ms, oldest_ms)
        if not (segment.hashes[1:] > segment.hashes[:-1]).all():
            raise corrupt("a ledger segment is not sorted")
        return segment

    @classmethod
    def _viewing(cls, data: bytes, count: int, newest_ms: int, oldest_ms: int) -> Segment:
        start = _HEADER.size
        return cls(
            data,
            np.frombuffer(data, "<u8", count, start),
            np.frombuffer(data, "<u4", count, start + 8 * count),
            np.frombuffer(data, "<u4", count, start + 12 * count),
            newest_ms,
            oldest_ms,
        )

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def id(self) -> str:
        """The name under which the segment is stored: sha256 of its bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    def find(self, hashes: Bits64) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Return for each hash whether it has an entry, and its index; the index is meaningless if it has none.

        Pass a million hashes in ascending order: each is looked for near the one before, which is several times faster.
        """
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self) - 1)
        return self.hashes[at] == hashes, at


def opened(segment: bytes | Segment, name: str) -> Segment:
    """Return a segment unchanged if it is already opened, else from its bytes.

    Raises:
        StateCorruptError: as `Segment.from_bytes`.
    """
    return segment if isinstance(segment, Segment) else Segment.from_bytes(segment, name)


def corrupt(what: str) -> StateCorruptError:
    """Return the error for damaged ledger bytes; `what` describes the damage."""
    return StateCorruptError(
        f"{what}. Nothing was read or changed, and the damage is not taken for an empty ledger. Restore the state "
        "table from a backup, or rewind the job to a run whose ledger is whole; a reset would read every file again."
    )


def _checksum(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


# ---- what an entry is made of


def blake2b_64(names: Sequence[str]) -> Bits64:
    """Return blake2b, 8 bytes, of each name.

    Example:
        >>> [hex(h) for h in blake2b_64(["lake/raw/flights/a.csv"])]
        ['0xc12e2fe26924dba6']
    """
    try:
        return _blake2b_64(map(str.encode, names))
    except UnicodeEncodeError:
        # A local file name that is no UTF-8 reaches Python with lone surrogates; surrogatepass keeps such names apart.
        return _blake2b_64(name.encode("utf-8", "surrogatepass") for name in names)


def _blake2b_64(names: Iterable[bytes]) -> Bits64:
    fresh = hashlib.blake2b(digest_size=8).copy  # a third less than to say again what is wanted, a million times
    digests = []
    for name in names:
        hashing = fresh()
        hashing.update(name)
        digests.append(hashing.digest())
    return np.frombuffer(b"".join(digests), "<u8")


def scheme_of(path: str) -> str:
    """Return the scheme of `path` with its slashes, empty if it has none.

    Example:
        >>> scheme_of("s3a://lake/raw/a.csv"), scheme_of("/data/odd://name")
        ('s3a://', '')
    """
    scheme, separator, _ = path.partition("://")
    return scheme + separator if separator and "/" not in scheme else ""


def bare_name(path: str) -> str:
    """Return `path` without its scheme: `s3://b/k` and `s3a://b/k` are one file, whichever client lists it."""
    return path[len(scheme_of(path)) :]


def bare_names(paths: Sequence[str]) -> Sequence[str]:
    """Return all `paths` (one or more) without their schemes."""
    # What the least and the greatest of some strings start with, all of them start with; asking these two costs a fifth
    # of asking each of a million paths.
    least, greatest = min(paths), max(paths)
    if least.startswith("/") and greatest.startswith("/"):
        return paths
    scheme = scheme_of(least)
    if scheme and greatest.startswith(scheme):
        return [path[len(scheme) :] for path in paths]
    return [bare_name(path) for path in paths]


def whole_seconds(times_ms: npt.NDArray[np.int64]) -> Bits32:
    """Return times in ms as seconds, clamped to what a u32 holds (1970 to 2106)."""
    return np.clip(times_ms // 1000, 0, _LATEST_SECOND).astype(np.uint32)


def version_bits(listing: Listing) -> Bits32:
    """Return 32 bits of the version of each file: of its etag if it has one, else of its size and time in ms."""
    bits = _size_and_time_bits(listing.sizes, listing.times_ms)
    if listing.etags is None:
        return bits
    # crc32 and not a cryptographic hash: it costs a quarter of one, an etag is a digest or a counter already, and two
    # etags of one length that differ only within four neighbouring bytes never get the same bits.
    etag_bits = np.fromiter(map(_etag_bits, listing.etags), np.uint32, len(listing))
    has_etag = np.fromiter((etag is not None for etag in listing.etags), np.bool_, len(listing))
    return np.where(has_etag, etag_bits, bits)


def _etag_bits(etag: str | None) -> int:
    return 0 if etag is None else zlib.crc32(etag.encode("utf-8", "surrogatepass"))


def _size_and_time_bits(sizes: npt.NDArray[np.int64], times_ms: npt.NDArray[np.int64]) -> Bits32:
    mixed = _mix(_mix(times_ms.astype(np.uint64)) ^ sizes.astype(np.uint64))
    return (mixed >> np.uint64(32)).astype(np.uint32)


def _mix(values: Bits64) -> Bits64:
    """Spread each bit over all 64: one step of splitmix64 (Steele, Lea, Flood 2014), a bijection, wrapping."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# ---- the bits of a listing


@dataclass(frozen=True, slots=True, eq=False)
class Hashed:
    """The bits of each path of a listing, and the rows of different paths that share theirs, group by group.

    `order` lists the rows by ascending bits.
    """

    hashes: Bits64
    order: npt.NDArray[np.intp]
    collisions: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, paths: Sequence[str], hashes: Bits64) -> Hashed:
        """Find out which of these paths share their bits."""
        order = np.argsort(hashes)
        return cls(hashes, order, _collisions(paths, hashes, hashes[order]))

    @property
    def collided_bits(self) -> Bits64:
        """The bits that several paths share, once each."""
        return self.hashes[np.array([rows[0] for rows in self.collisions], np.intp)]


class PathHashes:
    """Hashes paths, and remembers the last listing: a run classifies one and then adds some files of the same."""

    def __init__(self, hasher: Hasher) -> None:
        self._hasher = hasher
        self._last: tuple[Listing, Hashed] | None = None

    def of(self, names: Sequence[str]) -> Bits64:
        """Return the bits of names that have no scheme."""
        return self._hasher(names)

    def hashed(self, listing: Listing) -> Hashed:
        """Return the bits of each path, and which paths share theirs."""
        if self._last is not None:
            whole, known = self._last
            if whole is listing:
                return known
            rows = listing.rows_in(whole)
            if rows is not None:  # the whole stays the last one: more may be taken from it
                return Hashed.of(listing.paths, known.hashes[rows])
        parts = [self._hasher(bare_names(chunk)) for chunk in _chunks(listing.paths)]
        hashed = Hashed.of(listing.paths, np.concatenate([np.empty(0, np.uint64), *parts]))
        self._last = listing, hashed
        return hashed


def _chunks(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    return (paths[start : start + _HASH_CHUNK] for start in range(0, len(paths), _HASH_CHUNK))


def _collisions(paths: Sequence[str], hashes: Bits64, ordered: Bits64) -> tuple[tuple[int, ...], ...]:
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return ()
    groups: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.isin(hashes, repeated)).tolist():
        groups.setdefault(int(hashes[row]), []).append(row)
    # One path listed twice is no collision.
    return tuple(tuple(rows) for rows in groups.values() if len({bare_name(paths[row]) for row in rows}) > 1)
