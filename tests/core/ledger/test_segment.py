"""Promises of a segment: its bytes are what `docs/reference/formats.md` says, and damage is an error."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np
import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.segment import (
    OVERHEAD_BYTES,
    Bits64,
    PathHashes,
    Segment,
    bare_name,
    bare_names,
    blake2b_64,
    version_bits,
    whole_seconds,
)
from airflow_bookmarks.core.selection.listing import FileInfo, Listing


def segment(*entries: tuple[int, int, int]) -> Segment:
    """Return the segment of (hash, version bits, time in ms) entries."""
    hashes, versions, times = zip(*entries, strict=True)
    return Segment.of(np.array(hashes, np.uint64), np.array(versions, np.uint32), np.array(times, np.int64))


def entries_of(made: Segment) -> list[tuple[int, int, int]]:
    return list(zip(made.hashes.tolist(), made.versions.tolist(), made.seconds.tolist(), strict=True))


def sealed(content: bytes) -> bytes:
    """Return `content` with a checksum that fits."""
    return content + hashlib.blake2b(content, digest_size=16).digest()


# ---- the layout


def test_bytes_are_as_documented() -> None:
    data = segment((7, 70, 9_999), (2, 20, -1)).data

    assert data[:32] == struct.pack("<4sHHQqq", b"ABLS", 1, 16, 2, 9_999, -1)
    assert data[32:64] == struct.pack("<QQIIII", 2, 7, 20, 70, 0, 9)
    assert data[64:] == hashlib.blake2b(data[:64], digest_size=16).digest()


def test_segment_read_back_is_the_same() -> None:
    made = segment((7, 70, 9_999), (2, 20, 5_000))

    read = Segment.from_bytes(made.data)

    assert (entries_of(read), read.newest_ms, read.oldest_ms, read.id) == (entries_of(made), 9_999, 5_000, made.id)


def test_a_file_costs_sixteen_bytes() -> None:
    made = segment(*((h, 0, 0) for h in range(1000)))

    assert len(made.data) == 16 * 1000 + OVERHEAD_BYTES


def test_columns_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        segment((1, 1, 1)).hashes[0] = 5


# ---- what stays


def test_of_entries_with_one_path_the_last_stays() -> None:
    made = segment((5, 1, 1_000), (5, 3, 3_000), (5, 2, 2_000))

    assert entries_of(made) == [(5, 2, 2)]


def test_merge_keeps_the_newest_entry_of_each_path() -> None:
    old, middle, new = segment((1, 1, 0), (2, 1, 0)), segment((2, 2, 0), (3, 2, 0)), segment((3, 3, 0), (1, 1, 0))

    merged = Segment.merged([new, middle, old])

    assert [(h, v) for h, v, _ in entries_of(merged)] == [(1, 1), (2, 2), (3, 3)]


def test_merge_bounds_the_times_of_its_parts() -> None:
    merged = Segment.merged([segment((1, 1, 500)), segment((2, 1, 9_000)), segment((3, 1, -7))])

    assert (merged.newest_ms, merged.oldest_ms) == (9_000, -7)


def test_hashes_with_the_highest_bit_sort_behind_the_others() -> None:
    made = segment((2**64 - 1, 1, 0), (2**63, 2, 0), (1, 3, 0))

    found, at = made.find(np.array([1, 2, 2**63, 2**64 - 1, 0], np.uint64))

    assert found.tolist() == [True, False, True, True, False]
    assert made.versions[at[found]].tolist() == [3, 2, 1]


# ---- damage


def test_each_flipped_bit_is_an_error() -> None:
    data = segment((7, 70, 9_999), (2, 20, 5_000)).data

    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StateCorruptError):
            Segment.from_bytes(bytes(damaged))


def test_each_truncation_is_an_error() -> None:
    data = segment((7, 70, 9_999), (2, 20, 5_000)).data

    for length in range(len(data)):
        with pytest.raises(StateCorruptError):
            Segment.from_bytes(data[:length])


def test_bytes_behind_the_end_are_an_error() -> None:
    with pytest.raises(StateCorruptError, match="of 1 files has 65 bytes"):
        Segment.from_bytes(segment((7, 70, 9_999)).data + b"\0")


def test_other_magic_is_an_error_that_shows_it() -> None:
    with pytest.raises(StateCorruptError, match=r"starts with b'PAR1' instead of b'ABLS'"):
        Segment.from_bytes(sealed(b"PAR1" + segment((7, 70, 9_999)).data[4:-16]))


@pytest.mark.parametrize(("version", "entry_bytes"), [(2, 16), (0, 16), (1, 24)])
def test_unknown_format_is_an_error_that_names_both(version: int, entry_bytes: int) -> None:
    data = segment((7, 70, 9_999)).data
    newer = sealed(data[:4] + struct.pack("<HH", version, entry_bytes) + data[8:-16])

    with pytest.raises(StateCorruptError, match=f"format {version} with {entry_bytes} bytes.*knows format 1 with 16"):
        Segment.from_bytes(newer)


@pytest.mark.parametrize("count", [0, 1, 3, 2**60, 2**64 - 1])
def test_wrong_count_is_an_error_though_the_checksum_fits(count: int) -> None:
    data = segment((7, 70, 9_999), (2, 20, 5_000)).data

    with pytest.raises(StateCorruptError, match=f"of {count} files has 80 bytes"):
        Segment.from_bytes(sealed(data[:8] + struct.pack("<Q", count) + data[16:-16]))


def test_segment_without_files_is_an_error() -> None:
    with pytest.raises(StateCorruptError, match="only 48 bytes"):
        Segment.from_bytes(sealed(struct.pack("<4sHHQqq", b"ABLS", 1, 16, 0, 0, 0)))


@pytest.mark.parametrize("hashes", [(7, 2), (2, 2)])
def test_unsorted_segment_is_an_error_though_the_checksum_fits(hashes: tuple[int, int]) -> None:
    data = segment((2, 20, 5_000), (7, 70, 9_999)).data

    with pytest.raises(StateCorruptError, match="not sorted"):
        Segment.from_bytes(sealed(data[:32] + struct.pack("<QQ", *hashes) + data[48:-16]))


def test_error_says_what_to_do() -> None:
    with pytest.raises(StateCorruptError, match=r"Nothing was read or changed.*Restore .* or rewind"):
        Segment.from_bytes(b"")


# ---- what an entry is made of: these values lie in tables of users, so they never change


def test_bits_of_a_path_never_change() -> None:
    bits = blake2b_64(["lake/raw/a.csv", "/data/ä.csv"])

    assert bits.astype("<u8").tobytes().hex() == "6f57b49700b62559" + "a3246ee34f9e511f"


def test_bits_of_a_version_never_change() -> None:
    files = [
        FileInfo("/a", 0, 0),
        FileInfo("/a", 10, 1_357_000_000_123),
        FileInfo("/a", 10, -1),
        FileInfo("/a", 10, 5, "d41d8cd98f00b204e9800998ecf8427e-3"),
    ]

    assert version_bits(Listing.of(files)).tolist() == [0xA706DD2F, 0x98EA2379, 0xDA148284, 0xDCDC2B3C]


def test_etag_alone_decides_where_there_is_one() -> None:
    files = [FileInfo("/a", 1, 1, "x"), FileInfo("/a", 2, 2, "x"), FileInfo("/a", 1, 1, None), FileInfo("/a", 1, 1, "")]

    bits = version_bits(Listing.of(files))

    assert bits[0] == bits[1]
    assert len(set(bits.tolist())) == 3


def test_size_and_time_in_milliseconds_both_count() -> None:
    files = [FileInfo("/a", size, time) for size in range(300) for time in range(300)]

    bits = version_bits(Listing.of(files))

    # 90,000 versions that differ in few bits: with even 32 bits one pair in common is expected.
    assert len(set(bits.tolist())) >= len(files) - 5


def test_time_is_clamped_to_what_the_column_holds() -> None:
    times = np.array([-(10**15), -1, 0, 1_999, 10**15], np.int64)

    assert whole_seconds(times).tolist() == [0, 0, 0, 1, 2**32 - 1]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3://lake/a.csv", "lake/a.csv"),
        ("s3a://lake/a.csv", "lake/a.csv"),
        ("hdfs://nn:8020/a.csv", "nn:8020/a.csv"),
        ("file:///data/a.csv", "/data/a.csv"),
        ("/data/a.csv", "/data/a.csv"),
        ("/data/odd://a.csv", "/data/odd://a.csv"),
        ("s3://lake/odd://a.csv", "lake/odd://a.csv"),
    ],
)
def test_scheme_is_no_part_of_a_name(path: str, name: str) -> None:
    assert bare_name(path) == name


@pytest.mark.parametrize(
    "paths",
    [
        ["s3a://lake/b", "s3a://lake/a"],
        ["s3a://lake/b", "s3://lake/a"],
        ["/data/b", "/data/odd://a"],
        ["/data/b", "s3://lake/a"],
        ["s3a://lake/b", "/data/a", "s3a://lake/c"],
    ],
)
def test_names_of_many_paths_are_those_of_each(paths: list[str]) -> None:
    assert list(bare_names(paths)) == [bare_name(path) for path in paths]


def test_file_names_that_are_no_utf8_are_told_apart() -> None:
    assert len(set(blake2b_64(["/a\udcff", "/a\udcfe", "/a"]).tolist())) == 3


def test_name_that_is_no_utf8_changes_the_bits_of_no_other() -> None:
    names = ["/a", "/ä", "/a\udcff", "/b"]

    assert blake2b_64(names).tolist() == [int(blake2b_64([name])[0]) for name in names]
    assert int(blake2b_64(["/ä"])[0]) == int.from_bytes(
        hashlib.blake2b("/ä".encode(), digest_size=8).digest(), "little"
    )


def test_paths_of_many_chunks_are_hashed_in_their_order() -> None:
    paths = [f"s3://lake/{i}" for i in range(140_000)]
    listing = Listing(paths, np.zeros(len(paths), np.int64), np.zeros(len(paths), np.int64))

    hashed = PathHashes(blake2b_64).hashed(listing)

    assert hashed.hashes.tolist() == blake2b_64([path[5:] for path in paths]).tolist()
    assert hashed.collisions == ()


def test_files_of_a_listing_are_hashed_once_however_they_are_taken() -> None:
    asked: list[str] = []

    def hasher(names: Sequence[str]) -> Bits64:
        asked.extend(names)
        return blake2b_64(names)

    listing = Listing.of(FileInfo(f"/d/{i}", i, -i) for i in range(6))
    paths = PathHashes(hasher)
    whole = paths.hashed(listing)
    taken = listing.take(np.array([1, 3, 5])).in_reading_order()

    assert paths.hashed(taken).hashes.tolist() == whole.hashes[[5, 3, 1]].tolist()
    assert paths.hashed(listing) is whole
    assert asked == list(listing.paths)


def test_paths_that_share_bits_are_found_among_those_that_are_taken() -> None:
    listing = Listing.of(FileInfo(f"/{name}", 1, 1) for name in "abcd")
    paths = PathHashes(lambda names: np.array([ord(name[-1]) // 2 for name in names], np.uint64))  # b and c share

    assert paths.hashed(listing).collisions == ((1, 2),)
    assert paths.hashed(listing.take(np.array([2, 1]))).collisions == ((0, 1),)
    assert paths.hashed(listing.take(np.array([0, 1]))).collisions == ()
