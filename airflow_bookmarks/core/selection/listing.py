"""Listed files: path, size, time and etag of one, and a columnar form for many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from operator import le
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
        """The identity of one content of this path: the etag if there is one, else size and time in ms."""
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
class Folders:
    """The folders that some files lie in: `numbers` gives for each file its folder among `names`.

    A folder may have lost its files (`take`), and one that was listed under two roots appears twice.
    """

    names: Sequence[str]
    numbers: npt.NDArray[np.int32]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Folders:
        """Find the folders of `paths`.

        Example:
            >>> found = Folders.of(["/d/x=1/a.csv", "/d/x=1/b.csv", "/d/x=2/a.csv"])
            >>> found.names, found.numbers.tolist()
            (['/d/x=1', '/d/x=2'], [0, 0, 1])
        """
        known: dict[str, int] = {}
        numbers = [known.setdefault(path.rpartition("/")[0], len(known)) for path in paths]
        return cls(list(known), np.array(numbers, np.int32))

    @classmethod
    def in_turn(cls, names: Sequence[str], counts: Sequence[int]) -> Folders:
        """Say that the first so many files lie in the first folder, the next ones in the second, and so on."""
        return cls(names, np.repeat(np.arange(len(names), dtype=np.int32), np.array(counts, np.intp)))

    @classmethod
    def joined(cls, parts: Sequence[Folders]) -> Folders:
        """Put the folders of one listing behind those of another."""
        starts = np.cumsum([0, *(len(part.names) for part in parts)], dtype=np.int32)
        numbers = [part.numbers + start for part, start in zip(parts, starts, strict=False)]
        return cls([name for part in parts for name in part.names], np.concatenate([np.empty(0, np.int32), *numbers]))

    def take(self, indices: npt.NDArray[np.intp]) -> Folders:
        """Return the folders of the files at `indices`."""
        return Folders(self.names, self.numbers[indices])

    def first_files(self) -> Sequence[int]:
        """Return the first file of each folder that has one, in the order of the files."""
        # Files of a folder mostly stand together, so that few of them are left to ask.
        starts = np.flatnonzero(np.diff(self.numbers, prepend=-1))
        first: dict[int, int] = {}
        for number, start in zip(self.numbers[starts].tolist(), starts.tolist(), strict=True):
            first.setdefault(number, start)
        return list(first.values())

    def in_use(self) -> set[str]:
        """Return the names of the folders that have a file."""
        is_used = np.zeros(len(self.names), np.bool_)
        is_used[self.numbers] = True
        return {self.names[number] for number in np.flatnonzero(is_used).tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Files in columns of one length: a million of them fit where a million objects would not.

    `etags` is None when no file has one. `folders` is None where the listing did not go folder by folder; `in_folders`
    finds them then.
    """

    paths: Sequence[str]
    sizes: npt.NDArray[np.int64]
    times_ms: npt.NDArray[np.int64]
    etags: Sequence[str | None] | None = None
    folders: Folders | None = None
    _taken: tuple[Listing, npt.NDArray[np.intp]] | None = None  # from which listing, and which rows of it

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

    @classmethod
    def joined(cls, parts: Sequence[Listing]) -> Listing:
        """Concatenate listings. A folder in which several have files counts once for each."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            [path for part in parts for path in part.paths],
            np.concatenate([np.empty(0, np.int64), *(part.sizes for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.times_ms for part in parts)]),
            _joined_etags(parts),
            Folders.joined([part.in_folders() for part in parts]),
        )

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
        """Return the rows at `indices`, in that order; the same listing where that is all of it as it is."""
        if len(indices) == len(self) and np.array_equal(indices, np.arange(len(self))):
            return self
        rows = indices.tolist()  # numbers of Python's: a list is slow to ask for numpy's
        return Listing(
            list(map(self.paths.__getitem__, rows)),
            self.sizes[indices],
            self.times_ms[indices],
            None if self.etags is None else list(map(self.etags.__getitem__, rows)),
            None if self.folders is None else self.folders.take(indices),
            (self, indices),
        )

    def rows_in(self, whole: Listing) -> npt.NDArray[np.intp] | None:
        """Return which rows of `whole` these are, None where they were not taken from it.

        What is known of each row of `whole`, such as the hash of its path, is known of these then.
        """
        if self is whole:
            return np.arange(len(self))
        if self._taken is not None:
            parent, rows = self._taken
            above = parent.rows_in(whole)
            if above is not None:
                return above[rows]
        if whole._taken is None:
            return None
        # Both may have been taken from one listing: `in_reading_order` takes from there, and not from in between.
        parent, rows = whole._taken
        among = self.rows_in(parent)
        if among is None:
            return None
        place = np.full(len(parent), -1, np.intp)
        place[rows] = np.arange(len(rows))
        found = place[among]
        return found if bool(np.all(found >= 0)) else None

    def has_versions_of(self, other: Listing) -> npt.NDArray[np.bool_]:
        """Return for each file whether it has the version (as in `FileInfo`) of the file in the same row of `other`."""
        is_same: npt.NDArray[np.bool_] = (self.sizes == other.sizes) & (self.times_ms == other.times_ms)
        if self.etags is None and other.etags is None:
            return is_same
        pairs = zip(_etags_of(self), _etags_of(other), strict=True)
        has_same_etag = np.fromiter((mine == its for mine, its in pairs), np.bool_, len(self))
        has_etag = np.fromiter((etag is not None for etag in _etags_of(self)), np.bool_, len(self))
        return has_same_etag & (has_etag | is_same)

    def in_reading_order(self) -> Listing:
        """Return the rows oldest first, ties by path: the order in which a bounded run takes them."""
        order = self._reading_order()
        if self._taken is None:
            return self.take(order)
        parent, rows = self._taken  # directly from there, so that nothing in between is kept alive
        return parent.take(rows[order])

    def _reading_order(self) -> npt.NDArray[np.intp]:
        if all(map(le, self.paths, islice(self.paths, 1, None))):  # as most listings come
            return np.argsort(self.times_ms, kind="stable")
        by_path = np.array(sorted(range(len(self)), key=self.paths.__getitem__), np.intp)
        return by_path[np.argsort(self.times_ms[by_path], kind="stable")]

    def in_folders(self) -> Folders:
        """Return the folders that the files lie in, as the listing tells or as the paths do."""
        return self.folders if self.folders is not None else Folders.of(self.paths)

    def with_folders(self) -> Listing:
        """Return the same files, with their folders computed once for all callers, and for subsets of them."""
        return self if self.folders is not None else replace(self, folders=Folders.of(self.paths))

    @property
    def total_bytes(self) -> int:
        """The sum of the sizes."""
        return int(self.sizes.sum())

    @property
    def newest_ms(self) -> int | None:
        """The greatest time, None for no files."""
        return int(self.times_ms.max()) if len(self) else None


def _joined_etags(parts: Sequence[Listing]) -> Sequence[str | None] | None:
    if all(part.etags is None for part in parts):
        return None
    return [etag for part in parts for etag in _etags_of(part)]


def _etags_of(listing: Listing) -> Sequence[str | None]:
    return [None] * len(listing) if listing.etags is None else listing.etags
