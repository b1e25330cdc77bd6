"""Files as a stored plan holds them: by columns, and many of them in parts of which each can be unpacked by itself."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.text.deflated import MOST_RAW_BYTES, inflated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_PART_BYTES = 256 * 1024**2


def columns_of(files: Listing) -> dict[str, Any]:
    """Return the columns `path`, `size`, `time` (ms) and `etag` (or null), and the `base` that all paths begin with."""
    # Character by character on purpose: the longest common text, not the longest common folder.
    base = os.path.commonprefix(list(files.paths)) if len(files) else ""  # noqa: RUF071 (of texts)
    return {
        "base": base,
        "path": [p[len(base) :] for p in files.paths],
        "size": files.sizes.tolist(),
        "time": files.times_ms.tolist(),
        "etag": None if files.etags is None else list(files.etags),
    }


def listing_of(columns: Mapping[str, Any], most_bytes: int = MOST_RAW_BYTES) -> Listing:
    """Return the files of the columns that `columns_of` wrote.

    Raises:
        StateCorruptError: their paths would take more than `most_bytes`.
        LookupError, TypeError, ValueError: they are not such columns.
    """
    base, paths, etags = columns["base"], texts(columns["path"]), columns["etag"]
    texts([base])
    # What all paths begin with is written once, and each of them has it.
    if len(base) * len(paths) > most_bytes:
        raise _too_long()
    sizes, times = np.array(columns["size"], np.int64), np.array(columns["time"], np.int64)
    known = paths if etags is None else texts(etags, or_none=True)
    if not sizes.shape == times.shape == (len(paths),) or len(known) != len(paths):
        raise ValueError("its columns are not of one length")
    return Listing([base + path for path in paths], sizes, times, etags)


def listing_of_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]]) -> Listing:
    """Return the files of all parts of a stored plan: its index, then its head and the parts.

    Raises:
        StateCorruptError: a part can't be read, or is not what the index says.
    """
    return _joined(list(_all_parts(parted)))


def page_of_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]], offset: int, limit: int) -> tuple[int, Listing]:
    """Return how many files all parts have, and some of them, with no other part unpacked than those they lie in.

    Raises:
        StateCorruptError: a part can't be read, or is not what the index says.
    """
    found, at = [], 0
    for part, count in _file_parts(parted):
        first, last = max(offset - at, 0), min(offset + limit - at, count)
        if first < last:
            found.append(_part(part, count).take(np.arange(first, last)))
        at += count
    return at, _joined(found)


def texts(values: object, *, or_none: bool = False) -> list[Any]:
    """Return a stored list of texts (or nulls).

    Raises:
        TypeError: it is something else.
    """
    kinds = {str, type(None)} if or_none else {str}
    if not isinstance(values, list) or not set(map(type, values)) <= kinds:
        raise TypeError("what should be a list of texts is something else")
    return values


def _file_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]]) -> list[tuple[bytes, int]]:
    index, parts = parted
    counts = index.get("files")
    if (
        not isinstance(counts, list)
        or len(counts) != len(parts) - 1
        or not all(isinstance(count, int) and count >= 0 for count in counts)
    ):
        raise StateCorruptError("a stored plan does not say how many files its parts have; nothing was changed")
    return list(zip(parts[1:], counts, strict=True))


def _part(body: bytes, count: int) -> Listing:
    try:
        files = listing_of(inflated(body, "part of a plan"), _MOST_PART_BYTES)
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise StateCorruptError(f"a part of a stored plan can't be read ({error}); nothing was changed") from error
    if len(files) != count:
        raise StateCorruptError(
            f"a part of a stored plan has {len(files)} files, and {count} are recorded; nothing was changed"
        )
    return files


def _joined(parts: Sequence[Listing]) -> Listing:
    if not parts:
        return Listing.of([])
    etags = [etag for part in parts for etag in (part.etags or [None] * len(part))]
    return Listing(
        [path for part in parts for path in part.paths],
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.times_ms for part in parts]),
        etags if any(part.etags is not None for part in parts) else None,
    )


def _all_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]]) -> Iterator[Listing]:
    length = 0
    for part, count in _file_parts(parted):
        files = _part(part, count)
        length += sum(map(len, files.paths))
        if length > MOST_RAW_BYTES:
            raise _too_long()
        yield files


def _too_long() -> StateCorruptError:
    return StateCorruptError("a stored plan has paths that are longer than any can be; nothing was changed")
