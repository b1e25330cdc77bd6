"""Reach: what is loaded, and how much of it a look has to list."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.bound import WAITING_FROM
from airflow_bookmarks.core.glob import Exclusions, Glob, NamePattern
from airflow_bookmarks.core.partition_time import NEWEST_PARTITION, PartitionTime, newest_allowed
from airflow_bookmarks.core.predicate import Predicate
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.sources.partition_rule import Line, PartitionRule, values_in
from airflow_bookmarks.sources.scope import Names, Place, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.file_options import FileOptions
    from airflow_bookmarks.sources.source import Found


@dataclass(frozen=True, slots=True)
class Reach:
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

    def places(self) -> Sequence[Place]:
        """Return what is to be listed, in the order in which files that lie below several belong to them."""
        return [*(Place(root) for root in self.roots), *(place for each in self.globs for place in _places_of(each))]

    @property
    def optional(self) -> frozenset[str]:
        """Those of `folders` that may be missing: all that loads them are alternatives of a pattern."""
        places = self.places()
        needed = {place.root for place in places if not place.is_alternative}
        return frozenset(place.root for place in places if place.root not in needed)

    def key(self, found: Found) -> Hashable:
        """Return what two sources have in common whose looks are the same."""
        types = tuple(sorted(self._types(found).items()))
        # All that `newest_partition` goes by: where files wait behind a bound, the line stands still for that source
        # alone, and the look of another one would leave their partitions out.
        line = (found.facts.get(NEWEST_PARTITION), WAITING_FROM in found.facts) if self.options.partition_time else None
        known = types, line
        return (self.roots, self.globs, repr(self.options), known if self.narrows else None)

    def newest_partition(self, files: FileSystem, found: Found, now: datetime) -> datetime | None:
        """Return the start of the newest partition, of those that are there and those that were; None without a time.

        One request or two for each level of folders: only the newest folder of each level is looked into.
        """
        if self.options.partition_time is None:
            return None
        before = found.facts.get(NEWEST_PARTITION)
        if before is not None and WAITING_FROM in found.facts:
            return datetime.fromisoformat(before)  # what a bound has left over must not grow too old by waiting
        time, limit = PartitionTime.parse(self.options.partition_time), newest_allowed(now)
        starts = [_newest_start(files, place, time, limit) for place in self.places()]
        starts += [] if before is None else [datetime.fromisoformat(before)]
        # What a clock that was ahead has let in before is taken back: later partitions would never be listed.
        return max((start for start in starts if start is not None and start <= limit), default=None)

    def scope(self, found: Found, newest: datetime | None) -> Scope:
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
            return Scope(options.recursive, names, may_be_gone=may_be_gone)
        asked = (*(predicate.columns if predicate else ()), *(time.columns if time else ()))
        known = tuple(found.partition_types)
        rule = PartitionRule(predicate, self.line(newest), self._types(found), known, asked)
        return Scope(options.recursive, names, rule, may_be_gone=may_be_gone)

    def line(self, newest: datetime | None) -> Line | None:
        """Return before which time partitions are not listed; None: all are."""
        text, late_after = self.options.partition_time, self.options.late_after
        if text is None or late_after is None or newest is None:
            return None
        return Line(PartitionTime.parse(text), newest, late_after)

    def without_time(self) -> Reach:
        """Return the reach that lists partitions of any age."""
        return replace(self, options=replace(self.options, partition_time=None))

    def facts(self) -> Mapping[str, Any]:
        """Return as plain values what the roots of a plan do not tell."""
        return {"roots": list(self.roots), "globs": list(self.globs)} if self.globs else {}

    def _types(self, found: Found) -> dict[str, str]:
        given = [*found.partition_types.items(), *self.named.items()]
        return {name.lower(): type_name for name, type_name in given}


def _places_of(pattern: str) -> list[Place]:
    expanded = Glob.expand(pattern)
    # Of a pattern in which everything is escaped nothing is left to match: it is a path.
    return [Place(glob.root, glob if glob.depth else None, pattern, len(expanded) > 1) for glob in expanded]


def _newest_start(files: FileSystem, place: Place, time: PartitionTime, limit: datetime) -> datetime | None:
    newest: datetime | None = None
    ahead: Sequence[str] = [""]
    while ahead:
        below = [inner for folder in ahead for inner in _inside(files, place, folder)]
        spans = {folder: time.span(_values(place, folder)) for folder in below}
        starts = [span.start for span in spans.values() if span is not None and span.start <= limit]
        newest = max([*starts, *([] if newest is None else [newest])], default=None)
        last = max(starts, default=None)
        ahead = [
            folder
            for folder, span in spans.items()
            if (span is None or span.start == last) and not _is_known(place, folder, time)
        ]
    return newest


def _inside(files: FileSystem, place: Place, folder: str) -> Sequence[str]:
    """Return the folders in one that may hold partitions."""
    path = f"{place.root.rstrip('/')}/{folder}".rstrip("/") or "/"
    names = [name for name in files.folders(path) if not is_hidden(name)]
    below = [f"{folder}/{name}" if folder else name for name in names]
    depth = 0 if place.glob is None else place.glob.depth
    return [
        inner
        for inner in below
        if (place.glob is None or place.glob.may_match(inner)) and values_in(inner.split("/")[depth:]) is not None
    ]


def _values(place: Place, folder: str) -> Mapping[str, str]:
    depth = 0 if place.glob is None else place.glob.depth
    return {name.lower(): value for name, value in (values_in(folder.split("/")[depth:]) or {}).items()}


def _is_known(place: Place, folder: str, time: PartitionTime) -> bool:
    return {name.lower() for name in time.columns} <= _values(place, folder).keys()
