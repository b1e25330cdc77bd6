"""Specify a scan: what is loaded, and how much of it a listing has to cover."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.selection.glob import Exclusions, Glob, NamePattern
from airflow_bookmarks.core.selection.partition_time import PartitionTime, newest_allowed
from airflow_bookmarks.core.selection.predicate import Predicate
from airflow_bookmarks.sources.files.partition_rule import PartitionCutoff, PartitionRule, values_above, values_in
from airflow_bookmarks.sources.files.scan_filter import Names, ScanFilter, ScanRoot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.sources.files.options import FileOptions
    from airflow_bookmarks.sources.source import PlanInput


@dataclass(frozen=True, slots=True)
class ScanSpec:
    """What is loaded: `roots` are folders and files by name, `globs` patterns; `named` the user's column types."""

    roots: tuple[str, ...]
    globs: tuple[str, ...]
    options: FileOptions
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> tuple[str, ...]:
        """What is listed: the roots, and of each pattern the part without one."""
        return tuple(dict.fromkeys(place.root for place in self.places()))

    @property
    def narrows(self) -> bool:
        """Whether folders below the roots may be left unlisted."""
        return bool(self.globs or self.options.partition_filter or self.options.partition_time)

    def places(self) -> Sequence[ScanRoot]:
        """Return what is to be listed, in the order in which files that lie below several belong to them."""
        return [*(ScanRoot(root) for root in self.roots), *(place for each in self.globs for place in _places_of(each))]

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
        return (self.roots, self.globs, repr(self.options), known if self.narrows else None)

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

    def scope(self, found: PlanInput, newest: datetime | None) -> ScanFilter:
        """Return what of the places is listed."""
        options = self.options
        names = Names(
            None if options.name_pattern is None else NamePattern.of(options.name_pattern),
            Exclusions.of(options.exclusions) if options.exclusions else None,
        )
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
