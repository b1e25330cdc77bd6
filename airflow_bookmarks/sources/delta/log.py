"""The log of a Delta table, read as the files that it is: no Spark, and no other client.

    <table>/_delta_log/00000000000000000007.json                     a commit
                       00000000000000000010.checkpoint.parquet       a checkpoint
                       00000000000000000010.checkpoint.0000000001.0000000002.parquet     one of two parts
                       00000000000000000010.checkpoint.<uuid>.parquet or .json           with sidecars, maybe

A run needs the commits since its position, which are there as long as the table keeps its log (30 days by default).
Only to begin, or to read the table anew, it needs a checkpoint.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceError, SourceMissingError
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.delta.commit import commit_of, fingerprint_of
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.delta.commit import DeltaCommit

_COMMIT = re.compile(r"([0-9]{20})\.json", re.ASCII)
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.(?:([0-9]{10})\.([0-9]{10})\.parquet|parquet|.+\.(?:parquet|json))")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint of the log at a version; `paths` are its files."""

    version: int
    paths: tuple[str, ...]


class DeltaLog:
    """The log of one table as it was listed once.

    Args:
        table: the folder of the table, in its one spelling.
        files: the file system it lies on.
        listing: the files of its log.
        read: the commits that were read of it, to which what is read is added.
    """

    def __init__(self, table: str, files: FileSystem, listing: Listing, read: dict[int, DeltaCommit]) -> None:
        self.table, self.files, self._read = table, files, read
        self._times: dict[int, int] = {}
        self._parts: dict[int, list[tuple[str, re.Match[str]]]] = defaultdict(list)
        for path, time_ms in zip(listing.paths, listing.times_ms, strict=True):
            name = path.rpartition("/")[2]
            if found := _COMMIT.fullmatch(name):
                self._times[int(found[1])] = int(time_ms)
            elif found := _CHECKPOINT.fullmatch(name):
                self._parts[int(found[1])].append((path, found))
        if not self._times:
            raise _no_table(table)

    @classmethod
    def open(cls, table: str, read: dict[int, DeltaCommit] | None = None) -> DeltaLog:
        """List the log of the table in a folder.

        Args:
            read: the commits of this very table that were read before, none of which changes; None: there are none.

        Raises:
            SourceMissingError: there is no Delta table. SourceError: it can't be listed.
        """
        files = open_filesystem(table)
        root = files.canonical(table)
        try:
            listed = files.list(f"{root.rstrip('/')}/_delta_log")
        except SourceMissingError as error:
            raise _no_table(table) from error
        return cls(root, files, listed.files, {} if read is None else read)

    @cached_property
    def versions(self) -> Sequence[int]:
        """The versions whose commits are in the log, ascending."""
        return sorted(self._times)

    @property
    def oldest(self) -> int:
        """The oldest version from which on all commits are there."""
        first = self.latest
        while first - 1 in self._times:
            first -= 1
        return first

    @property
    def latest(self) -> int:
        """The version of the table now."""
        return self.versions[-1]

    def has(self, version: int) -> bool:
        """Whether the commit of a version is in the log."""
        return version in self._times

    def has_all(self, first: int, last: int) -> bool:
        """Whether the commits of all versions from one to another are in the log."""
        return all(version in self._times for version in range(first, last + 1))

    def checkpoint(self, version: int) -> Checkpoint | None:
        """Return the newest whole checkpoint at or before a version, from which on all commits are there."""
        for at in sorted((each for each in self._parts if each <= version), reverse=True):
            paths = _whole(self._parts[at])
            if paths and self.has_all(at + 1, version):
                return Checkpoint(at, paths)
        return None

    def can_rebuild(self, version: int) -> bool:
        """Whether the table can still be read as of a version."""
        return self.has(version) and (self.has_all(0, version) or self.checkpoint(version) is not None)

    # ---- commits

    def fingerprint(self, version: int) -> str:
        """Return that of a commit as it is there now: by it a table is known again.

        Raises:
            VersionGoneError: it is not there any more.
        """
        self._check_all(version, version)
        found = fingerprint_of(self._body(version))
        known = self._read.get(version)
        if known is not None and known.fingerprint != found:
            self._read.clear()  # they are of another table
        return found

    def commits(self, first: int, last: int) -> list[DeltaCommit]:
        """Return the commits of all versions from one to another.

        Raises:
            VersionGoneError: one is not there any more. SourceError: one can't be read.
        """
        self._check_all(first, last)
        unread = [version for version in range(first, last + 1) if version not in self._read]
        self.files.concurrency.each(self._fetch, unread, self._read.__setitem__)
        return [self._read[version] for version in range(first, last + 1)]

    def bodies(self, first: int, last: int) -> list[bytes]:
        """Return the bytes of the commits of all versions from one to another.

        Raises:
            VersionGoneError: one is not there any more.
        """
        self._check_all(first, last)
        found: dict[int, bytes] = {}
        self.files.concurrency.each(self._body, range(first, last + 1), found.__setitem__)
        return [found[version] for version in range(first, last + 1)]

    def _check_all(self, first: int, last: int) -> None:
        gone = next((version for version in range(first, last + 1) if version not in self._times), None)
        if gone is not None:
            raise self._gone(gone)

    def _body(self, version: int) -> bytes:
        try:
            with self.files.open(f"{self.table.rstrip('/')}/_delta_log/{version:020}.json") as file:
                return file.read()
        except FileNotFoundError as error:
            raise self._gone(version) from error

    def _fetch(self, version: int) -> DeltaCommit:
        try:
            return commit_of(version, self._body(version))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"version {version} of the Delta table {self.table!r} can't be read: its commit is not what the "
                f"protocol of Delta says ({type(error).__name__}: {error}). Nothing was read or changed. Does Spark "
                "read it?"
            ) from error

    def _gone(self, version: int) -> VersionGoneError:
        return VersionGoneError(
            f"version {version} of the Delta table {self.table!r} is no longer in its log, which goes from "
            f"{self.oldest} to {self.latest}"
        )

    # ---- times

    def time_ms(self, version: int) -> int:
        """Return when a version was made, in ms since 1970 UTC: as its commit says, or else by the time of its file."""
        told = self.commits(version, version)[0].time_ms
        return self._times[version] if told is None else told

    def last_before(self, time: datetime) -> int | None:
        """Return the last version that was made before a time; None where all in the log are later.

        Raises:
            SourceError: a commit can't be read.
        """
        moment_us = (time.astimezone(UTC) - _EPOCH) // _MICROSECOND
        first, last = self.oldest, self.latest
        if self.time_ms(first) * 1000 >= moment_us:
            return None
        while first < last:  # times never go down from version to version, as Delta keeps them
            middle = (first + last + 1) // 2
            first, last = (middle, last) if self.time_ms(middle) * 1000 < moment_us else (first, middle - 1)
        return first


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = datetime.resolution


def _no_table(table: str) -> SourceMissingError:
    return SourceMissingError(
        f"{table!r} is no Delta table: it has no commits in _delta_log. Nothing was read or changed. Check the path; a "
        "table has to be made before it is read."
    )


def _whole(parts: Iterable[tuple[str, re.Match[str]]]) -> tuple[str, ...]:
    """Return the files of one whole checkpoint among those of a version; none where it is being written still."""
    by_count: Mapping[str, list[str]] = defaultdict(list)
    for path, found in sorted(parts, key=lambda part: part[0]):
        if found[2] is None:
            return (path,)
        by_count[found[3]].append(path)
    return next((tuple(paths) for count, paths in by_count.items() if len(paths) == int(count)), ())
