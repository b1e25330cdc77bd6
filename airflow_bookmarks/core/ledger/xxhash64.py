"""XXH64, the hash behind Spark's SQL function `xxhash64`, computed for many texts at once, with the same results as
Spark.

The algorithm is Yann Collet's (github.com/Cyan4973/xxHash, doc/xxhash_spec.md); the seed is Spark's, 42. Texts of one
length go through it together, as rows of a matrix of bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Words: TypeAlias = npt.NDArray[np.uint64]

_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def xxhash64(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return for each text what Spark's `xxhash64(text)` gives.

    Example:
        >>> xxhash64(["", "Spark"]).tolist()
        [-7444071767201028348, -4294468057691064905]
    """
    encoded = [text.encode() for text in texts]
    rows_of: dict[int, list[int]] = {}
    for row, each in enumerate(encoded):
        rows_of.setdefault(len(each), []).append(row)
    hashes = np.empty(len(encoded), np.uint64)
    for length, rows in rows_of.items():
        matrix = np.frombuffer(b"".join(encoded[row] for row in rows), np.uint8).reshape(len(rows), length)
        with np.errstate(over="ignore"):
            hashes[rows] = _hashed(matrix)
    return hashes.view(np.int64)


def _hashed(matrix: npt.NDArray[np.uint8]) -> Words:
    count, length = matrix.shape
    whole = length - length % _STRIPE
    hashes = _of_stripes(_words(matrix[:, :whole], "<u8"), count) if whole else np.full(count, np.uint64(_SEED) + _P5)
    hashes = hashes + np.uint64(length)
    eights = length - length % 8
    for word in _columns(_words(matrix[:, whole:eights], "<u8")):
        hashes = _rotated(hashes ^ _round(word), 27) * _P1 + _P4
    fours = length - length % 4
    for word in _columns(_words(matrix[:, eights:fours], "<u4")):
        hashes = _rotated(hashes ^ (word * _P1), 23) * _P2 + _P3
    for byte in _columns(matrix[:, fours:].astype(np.uint64)):
        hashes = _rotated(hashes ^ (byte * _P5), 11) * _P1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _of_stripes(words: Words, count: int) -> Words:
    seed = np.uint64(_SEED)
    lanes = [np.full(count, start) for start in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for at in range(0, words.shape[1], 4):
        lanes = [_rotated(lane + words[:, at + i] * _P2, 31) * _P1 for i, lane in enumerate(lanes)]
    hashes = _rotated(lanes[0], 1) + _rotated(lanes[1], 7) + _rotated(lanes[2], 12) + _rotated(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ _round(lane)) * _P1 + _P4
    return hashes


def _round(word: Words) -> Words:
    return _rotated(word * _P2, 31) * _P1


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _words(matrix: npt.NDArray[np.uint8], kind: str) -> Words:
    """Return the bytes of each row as numbers of a kind, little endian."""
    return np.ascontiguousarray(matrix).view(kind).astype(np.uint64) if matrix.shape[1] else matrix.astype(np.uint64)


def _columns(words: Words) -> Iterable[Words]:
    return (words[:, at] for at in range(words.shape[1]))
