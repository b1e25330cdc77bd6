"""Files as a listing sees them: path, size, time, etag; and many of them, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_FIRST_MS = -62_135_596_800_000  # year 1
_LAST_MS = 253_402_300_799_999  # the end of year 9999


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file at one moment.

    `path` is canonical: absolute, as the file system lists it, without a trailing slash; local paths have no scheme.
    `size_bytes` >= 0. `modified_ms` is the time of last modification in milliseconds since 1970 UTC: a hint, never the
    truth. `etag` is None where the store has none.
    """

    path: str
    size_bytes: int
    modified_ms: int
    etag: str | None = None

    @property
    def version(self) -> str:
        """What tells one content of this path from another: the etag where there is one, else size and time in ms."""
        return self.etag if self.etag is not None else f"{self.size_bytes}-{self.modified_ms}"

    @property
    def modified(self) -> datetime:
        """The time of last modification, aware, UTC."""
        return instant(self.modified_ms)


def instant(milliseconds: int) -> datetime:
    """Return the aware UTC time of so many milliseconds since 1970.

    Example:
        >>> instant(1_357_000_000_123).isoformat(timespec="milliseconds")
        '2013-01-01T00:26:40.123+00:00'
    """
    # File systems keep times that datetime can't; a time is a hint, so the nearest that it can will do.
    kept = min(max(milliseconds, _FIRST_MS), _LAST_MS)
    return datetime.fromtimestamp(kept // 1000, UTC).replace(microsecond=kept % 1000 * 1000)


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Files in columns of one length: a million of them fit where a million objects would not.

    `etags` is None when no file has one.
    """

    paths: Sequence[str]
    sizes: npt.NDArray[np.int64]
    times_ms: npt.NDArray[np.int64]
    etags: Sequence[str | None] | None = None

    @classmethod
    def of(cls, files: Iterable[FileInfo]) -> Listing:
        """Collect `files`, in their order."""
        paths: list[str] = []
        sizes: list[int] = []
        times: list[int] = []
        etags: list[str | None] = []
        for file in files:
            paths.append(file.path)
            sizes.append(file.size_bytes)
            times.append(file.modified_ms)
            etags.append(file.etag)
        has_etags = any(e is not None for e in etags)
        return cls(paths, np.array(sizes, np.int64), np.array(times, np.int64), etags if has_etags else None)

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[FileInfo]:
        for i in range(len(self.paths)):
            yield self.file(i)

    def file(self, index: int) -> FileInfo:
        """Return one row."""
        etag = self.etags[index] if self.etags is not None else None
        return FileInfo(self.paths[index], int(self.sizes[index]), int(self.times_ms[index]), etag)

    def take(self, indices: npt.NDArray[np.intp]) -> Listing:
        """Return the rows at `indices`, in that order."""
        etags = None if self.etags is None else [self.etags[i] for i in indices]
        return Listing([self.paths[i] for i in indices], self.sizes[indices], self.times_ms[indices], etags)

    def in_reading_order(self) -> Listing:
        """Return the rows oldest first, ties by path: the order in which a bounded run takes them."""
        order = sorted(range(len(self)), key=lambda i: (int(self.times_ms[i]), self.paths[i]))
        return self.take(np.array(order, np.intp))

    @property
    def total_bytes(self) -> int:
        """The sum of the sizes."""
        return int(self.sizes.sum())

    @property
    def newest_ms(self) -> int | None:
        """The greatest time, None for no files."""
        return int(self.times_ms.max()) if len(self) else None
