"""List the folders of a source, independently of what is new in them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.files.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
    from datetime import datetime

    import numpy.typing as npt

    from airflow_bookmarks.core.rules.shard import ShardBy, VirtualShard
    from airflow_bookmarks.core.selection.sequence import SequenceRule
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.files.scan_filter import ScanFilter, ScanResult, ScanRoot


@dataclass(frozen=True, slots=True, eq=False)
class FolderScan:
    """One listing of some folders: the files, the root of each, what was left out, and when.

    The root of a file that a pattern found is the folder below which Spark takes folders for partitions. `unmatched`
    are patterns that match nothing, `pruned` counts the partitions that were left out, `partition_values`
    holds what theirs and all others say, by column. `links` are files and folders that lie elsewhere.
    """

    listing: Listing
    root_of: Sequence[str]
    skipped: Mapping[str, int]
    listed_at: datetime
    unmatched: Sequence[str] = ()
    pruned: int = 0
    partition_values: Mapping[str, Collection[str]] = field(default_factory=dict)
    links: Sequence[str] = ()
    _numbers: dict[ShardBy, npt.NDArray[np.uint8]] = field(default_factory=dict)
    _samples: list[tuple[str, str]] = field(default_factory=list)
    _sequences: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def belongs_to(self, shard: VirtualShard) -> npt.NDArray[np.bool_]:
        """Say which files belong to a virtual shard. What is hashed is hashed once, for all 64 of them.

        Raises:
            OptionError: it goes by partition, and a file lies in none.
        """
        if shard.by not in self._numbers:
            self._numbers[shard.by] = virtual_shards(self.listing.paths, shard.by)
        is_own: npt.NDArray[np.bool_] = self._numbers[shard.by] == shard.number
        return is_own

    def numbers_of(self, rule: SequenceRule, roots: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of a sequence that all files have, each once; computed once for all shards."""
        if rule.text not in self._sequences:
            self._sequences[rule.text] = np.unique(rule.numbers_of(self.listing.paths, roots))
        return self._sequences[rule.text]

    def one_of_each_folder(self) -> Sequence[tuple[str, str]]:
        """Return the path and root of one file of each folder: all files of a folder have the same partition."""
        if not self._samples:
            paths, root_of = self.listing.paths, self.root_of
            self._samples.extend((paths[row], root_of[row]) for row in self.listing.in_folders().first_files())
        return self._samples


class Looks:
    """The listings of one task: its virtual shards read the same folders, which are listed once for all of them."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, FolderScan] = {}

    def at(self, key: Hashable, scan: Callable[[], FolderScan]) -> FolderScan:
        """Return the listing under `key`; `scan` makes it the first time."""
        if key not in self._kept:
            self._kept[key] = scan()
        return self._kept[key]


def look_at(
    files: FileSystem,
    places: Sequence[ScanRoot],
    scope: ScanFilter,
    *,
    listed_at: datetime,
    monotonic: Callable[[], float] = time.monotonic,
) -> FolderScan:
    """List the input files at all places; one that lies below several belongs to the first.

    A listing that takes long logs its progress; `monotonic` returns seconds.

    Raises:
        SourceError: a root is not there, or can't be listed: a part is never taken for the whole. Of the alternatives
            of one pattern, which are a union, one has to be there.
        OptionError: the scope can't judge what it was asked to.
    """
    parts: list[Listing] = []
    root_of: list[str] = []
    skipped: dict[str, int] = {}
    first_root = places[0].root
    progress = Progress(first_root if len(places) == 1 else f"{first_root} and more", monotonic=monotonic)
    found = [scope.list(files, place, progress.saw) for place in places]
    unmatched = _unmatched(places, found)
    for there in found:
        parts.append(there.files)
        root_of += there.base_of
        for reason, count in there.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    listing = Listing.joined(parts)
    if not scope.recursive:  # partitions are listed folder by folder
        listing = listing.with_folders()
    if len(parts) > 1 and len(set(listing.paths)) < len(listing):
        # Roots that lie within each other: each file once, under the first root that names it.
        first = {path: i for i, path in reversed(list(enumerate(listing.paths)))}
        keep = np.array(sorted(first.values()), np.intp)
        listing, root_of = listing.take(keep), [root_of[i] for i in keep]
    is_read = scope.judge(listing, root_of)
    if is_read is not None and not is_read.all():
        rows = np.flatnonzero(is_read)
        listing, root_of = listing.take(rows), [root_of[i] for i in rows.tolist()]
    values = {} if scope.rule is None else scope.rule.seen
    links = [link for there in found for link in there.links]
    return FolderScan(listing, root_of, skipped, listed_at, unmatched, scope.pruned, values, links)


def _unmatched(places: Sequence[ScanRoot], found: Sequence[ScanResult]) -> list[str]:
    """Return the patterns that nothing at any place matches.

    Raises:
        SourceMissingError: of one, not even the root of any of its places is there.
    """
    found_of: dict[str, list[ScanResult]] = {}
    for place, there in zip(places, found, strict=True):
        if place.pattern is not None:
            found_of.setdefault(place.pattern, []).append(there)
    for pattern, all_of_it in found_of.items():
        missing = [there.missing for there in all_of_it if there.missing is not None]
        if len(missing) == len(all_of_it):
            raise SourceMissingError(f"nothing matches {pattern!r}, whose folders are all missing: {missing[0]}")
    return [pattern for pattern, all_of_it in found_of.items() if not any(there.is_there for there in all_of_it)]
