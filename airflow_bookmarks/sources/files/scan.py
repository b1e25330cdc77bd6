"""List the folders of a source: what a listing has to cover (its spec), and the listing, whatever is new in it."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from airflow_bookmarks.core.selection.glob import Exclusions, Glob, NamePattern
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition_time import PartitionTime, newest_allowed
from airflow_bookmarks.core.selection.predicate.predicate import Predicate
from airflow_bookmarks.core.selection.reason import EMPTY_PARTITIONS, EXCLUDED, NESTED
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.progress import Progress
from airflow_bookmarks.sources.files.partition_rule import PartitionCutoff, PartitionRule, values_above, values_in
from airflow_bookmarks.sources.files.scan_filter import Below, Names, ScanFilter, ScanRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
    from airflow_bookmarks.core.rules.shard import ShardBy, VirtualShard
    from airflow_bookmarks.core.selection.sequence import SequenceRule
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.files.options import FileOptions
    from airflow_bookmarks.sources.files.scan_filter import ScanResult
    from airflow_bookmarks.sources.source import PlanInput


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """What is loaded: `roots` are folders and files by name, `globs` patterns; `named` the user's column types.

    With `listed`, the partitions that a catalog lists, the one root is the folder of its table, and only these are
    read: below that folder or elsewhere.
    """

    roots: tuple[str, ...]
    globs: tuple[str, ...]
    options: FileOptions
    named: Mapping[str, str] = field(default_factory=dict)
    listed: ListedPartitions | None = None

    @property
    def folders(self) -> tuple[str, ...]:
        """What is listed: the roots, and of each pattern the part without one."""
        if self.listed is not None:
            return tuple(dict.fromkeys([*self.roots, *self._outside()]))
        return tuple(dict.fromkeys(place.root for place in self.places()))

    def _outside(self) -> list[str]:
        """Return the listed partitions that do not lie below the roots."""
        tables = [ScanRoot(root) for root in self.roots]
        folders = () if self.listed is None else self.listed.folders
        return [folder for folder in folders if not any(table.holds(folder) for table in tables)]

    @property
    def narrows(self) -> bool:
        """Whether folders below the roots may be left unlisted."""
        return bool(self.globs or self.listed or self.options.partition_filter or self.options.partition_time)

    def places(self) -> Sequence[ScanRoot]:
        """Return what is to be listed, in the order in which files that lie below several belong to them."""
        roots = [*self.roots, *(() if self.listed is None else self.listed.folders)]
        return [*map(ScanRoot, dict.fromkeys(roots)), *(place for each in self.globs for place in _places_of(each))]

    @property
    def optional(self) -> frozenset[str]:
        """Those of `folders` that may be missing: only alternatives of a pattern load them."""
        places = self.places()
        needed = {place.root for place in places if not place.is_alternative}
        return frozenset(place.root for place in places if place.root not in needed)

    def key(self, found: PlanInput) -> Hashable:
        """Return a key that is equal for two sources with the same listing."""
        types = tuple(sorted(self._types(found).items()))
        # If files wait behind a bound, the time limit of that source alone is further back, and another source's
        # listing would miss their partitions.
        line = found.file_metadata.newest_partition if self.options.partition_time else None
        known = types, line
        listed = None if self.listed is None else tuple(self.listed.folders)
        return (self.roots, self.globs, repr(self.options), known if self.narrows else None, listed)

    def read_until(self, found: PlanInput, now: datetime) -> datetime | None:
        """Return the start of the partition up to which earlier runs have read; None if there is none.

        What a clock that was ahead has let in before is taken back: later partitions would never be listed.
        """
        text = found.file_metadata.newest_partition
        if self.options.partition_time is None or text is None:
            return None
        start = datetime.fromisoformat(text)
        return start if start <= newest_allowed(now) else None

    def newest_partition(self, samples: Iterable[tuple[str, str]], found: PlanInput, now: datetime) -> datetime | None:
        """Return the start of the newest partition that is listed, or was read before; None without a time.

        Args:
            samples: a file of each folder that is listed, and below which folder its partitions are.
            found: what the source is planned from.
            now: the present time: partitions dated later don't count.
        """
        if self.options.partition_time is None:
            return None
        time, limit = PartitionTime.parse(self.options.partition_time), newest_allowed(now)
        spans = (time.span(_values(path, base)) for path, base in samples)
        starts = [span.start for span in spans if span is not None and span.start <= limit]
        before = self.read_until(found, now)
        return max([*starts, *([] if before is None else [before])], default=None)

    def oldest_partition(self, folders: Iterable[str]) -> datetime | None:
        """Return the start of the oldest partition among folders that have a time."""
        if self.options.partition_time is None:
            return None
        time = PartitionTime.parse(self.options.partition_time)
        spans = (time.span(_lower(values_above(folder))) for folder in folders)
        return min((span.start for span in spans if span is not None), default=None)

    def names(self) -> Names:
        """Return which files are left out by their names."""
        options = self.options
        return Names(
            None if options.name_pattern is None else NamePattern.of(options.name_pattern),
            Exclusions.of(options.exclusions) if options.exclusions else None,
        )

    def scan_filter(self, found: PlanInput, newest: datetime | None) -> ScanFilter:
        """Return what of the places is listed."""
        options, names = self.options, self.names()
        predicate = None if options.partition_filter is None else Predicate.parse(options.partition_filter)
        time = None if options.partition_time is None else PartitionTime.parse(options.partition_time)
        may_be_gone = options.empties and found.position is not None
        if predicate is None and time is None:
            return ScanFilter(options.recursive, names, may_be_gone=may_be_gone)
        asked = (*(predicate.columns if predicate else ()), *(time.columns if time else ()))
        known = tuple(found.partition_types)
        rule = PartitionRule(predicate, self.line(newest), self._types(found), known, asked)
        return ScanFilter(options.recursive, names, rule, may_be_gone=may_be_gone)

    def line(self, newest: datetime | None) -> PartitionCutoff | None:
        """Return before which time partitions are not listed; None: all are."""
        text, late_after = self.options.partition_time, self.options.late_after
        if text is None or late_after is None or newest is None:
            return None
        return PartitionCutoff(PartitionTime.parse(text), newest, late_after)

    def without_time(self) -> ScanSpec:
        """Return the reach that lists partitions of any age."""
        return replace(self, options=replace(self.options, partition_time=None))

    def stats(self) -> Mapping[str, Any]:
        """Return as plain values what the roots of a plan do not tell."""
        return {"roots": list(self.roots), "globs": list(self.globs)} if self.globs else {}

    def _types(self, found: PlanInput) -> dict[str, str]:
        given = [*found.partition_types.items(), *self.named.items()]
        return {name.lower(): type_name for name, type_name in given}


def _places_of(pattern: str) -> list[ScanRoot]:
    expanded = Glob.expand(pattern)
    # Of a pattern in which everything is escaped nothing is left to match: it is a path.
    return [ScanRoot(glob.root, glob if glob.depth else None, pattern, len(expanded) > 1) for glob in expanded]


def _values(path: str, base: str) -> Mapping[str, str]:
    return _lower(values_in(path[len(base) :].strip("/").split("/")[:-1]) or {})


def _lower(values: Mapping[str, str]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in values.items()}


# ---- a listing


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


class SharedScans:
    """The listings of one task: its virtual shards read the same folders, which are listed once for all of them."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, FolderScan] = {}

    def at(self, key: Hashable, scan: Callable[[], FolderScan]) -> FolderScan:
        """Return the listing under `key`; `scan` makes it the first time."""
        if key not in self._kept:
            self._kept[key] = scan()
        return self._kept[key]


def scan_folders(
    files: FileSystem,
    places: Sequence[ScanRoot],
    scan_filter: ScanFilter,
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
    found = [scan_filter.list(files, place, progress.saw) for place in places]
    unmatched = _unmatched(places, found)
    for there in found:
        parts.append(there.files)
        root_of += there.base_of
        for reason, count in there.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    listing = Listing.joined(parts)
    if not scan_filter.recursive:  # partitions are listed folder by folder
        listing = listing.with_folders()
    if len(parts) > 1 and len(set(listing.paths)) < len(listing):
        # Roots that lie within each other: each file once, under the first root that names it.
        first = {path: i for i, path in reversed(list(enumerate(listing.paths)))}
        keep = np.array(sorted(first.values()), np.intp)
        listing, root_of = listing.take(keep), [root_of[i] for i in keep]
    is_read = scan_filter.judge(listing, root_of)
    if is_read is not None and not is_read.all():
        rows = np.flatnonzero(is_read)
        listing, root_of = listing.take(rows), [root_of[i] for i in rows.tolist()]
    values = {} if scan_filter.rule is None else scan_filter.rule.seen
    links = [link for there in found for link in there.links]
    return FolderScan(listing, root_of, skipped, listed_at, unmatched, scan_filter.pruned, values, links)


def scan_partitions(
    files: FileSystem,
    spec: ScanSpec,
    listed: ListedPartitions,
    *,
    listed_at: datetime,
    monotonic: Callable[[], float] = time.monotonic,
) -> FolderScan:
    """List the input files of the partitions that a catalog lists; one whose folder is missing or empty has none.

    Those below the folder of the table are listed together, several at a time, without any other folder there. A file
    belongs to a partition if it lies in its folder, and with `recursive` in a folder below that.

    Raises:
        SourceError: one can't be listed: a part is never taken for the whole.
    """
    progress = Progress(f"the partitions of {spec.roots[0]}", monotonic=monotonic)
    parts: list[Listing] = []
    skipped: dict[str, int] = {}
    links: list[str] = []
    for root, enters in _listed_from(spec.roots, listed):
        try:
            found = files.list(root, recursive=True, enters=enters, saw=progress.saw)
        except SourceMissingError:
            continue  # the caller counts the partitions without files
        parts.append(found.files)
        links += found.links
        for reason, count in found.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    listing = Listing.joined(parts) if parts else Listing.of([])
    names, tables = spec.names(), [ScanRoot(root) for root in spec.roots]
    rows: list[int] = []
    root_of: list[str] = []
    # A partition may lie within another one: each file once.
    for row in sorted({path: row for row, path in enumerate(listing.paths)}.values()):
        path = listing.paths[row]
        folder = listed.folder_of(path)
        if folder is None:
            continue  # beside the partitions, in the folder of the table
        loaded = next((table for table in tables if table.holds(path)), ScanRoot(folder))
        is_nested = not spec.options.recursive and path.rpartition("/")[0] != folder
        if is_nested or names.excludes(loaded.below(path)):
            reason = NESTED if is_nested else EXCLUDED
            skipped[reason] = skipped.get(reason, 0) + 1
            continue
        rows.append(row)
        root_of.append(folder)
    if empty := len(listed.folders) - len(set(root_of)):
        skipped[EMPTY_PARTITIONS] = empty
    return FolderScan(listing.take(np.array(rows, np.intp)).with_folders(), root_of, skipped, listed_at, links=links)


def _listed_from(roots: Sequence[str], listed: ListedPartitions) -> Iterator[tuple[str, Below | None]]:
    """Yield what to list, and which folders below that; None: all."""
    together: set[str] = set()
    for root in roots:
        inside = [folder for folder in listed.folders if _is_listed_from(root, folder)]
        together.update(inside)
        if inside:
            yield root, Below(root, inside)
    yield from ((folder, None) for folder in listed.folders if folder not in together)


def _is_listed_from(root: str, folder: str) -> bool:
    """Whether a listing of a root comes to a folder below it: not through a name that says that it is no input."""
    place = ScanRoot(root)
    return place.holds(folder) and not any(map(is_hidden, place.below(folder).split("/")))


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
