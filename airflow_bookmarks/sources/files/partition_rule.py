"""Decide which partitions are listed: by a predicate on their columns, and by the time that they cover."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.partition import NULL_VALUE, is_partition, narrowest, unescaped
from airflow_bookmarks.core.selection.predicate.value import Truth, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from airflow_bookmarks.core.selection.partition_time import PartitionTime
    from airflow_bookmarks.core.selection.predicate.predicate import Predicate


@dataclass(frozen=True, slots=True)
class PartitionCutoff:
    """Partitions wholly before the start of the newest one that was read, minus `late_after`, are not listed."""

    time: PartitionTime
    newest: datetime
    late_after: timedelta

    @property
    def before(self) -> datetime:
        """The line itself; the beginning of time, where `late_after` reaches back beyond it."""
        try:
            return self.newest - self.late_after
        except OverflowError:
            return datetime.min  # noqa: DTZ901 (partitions have no zone)

    def is_before(self, values: Mapping[str, str]) -> bool:
        """Whether a partition with these values lies wholly before the line."""
        span = self.time.span(_lower(values))
        return span is not None and span.end <= self.before

    def is_passed(self, path: str, base: str, modified: datetime) -> bool:
        """Whether a file lies before the line, and was written when its partition did so by the clock already."""
        values = values_in(path[len(base) :].strip("/").split("/")[:-1]) or {}
        span = self.time.span(_lower(values))
        if span is None or not self.is_before(values):
            return False
        return modified.replace(tzinfo=None) >= span.end + self.late_after


@dataclass(slots=True)
class PartitionRule:
    """Decides folder by folder, by their names from the root of the partitions down: ("year=2013", "month=09").

    Args:
        predicate: which partitions are read; None: all.
        line: which are too old to be listed; None: none.
        types: by column in lower case, the Spark type of those whose type is known.
        known: the partition columns that earlier runs found.
        asked: the columns that have to be there.

    `seen` holds the column values of the folders that it was asked about: those of pruned folders count for types too.
    """

    predicate: Predicate | None
    line: PartitionCutoff | None
    types: Mapping[str, str]
    known: Sequence[str] = ()
    asked: Sequence[str] = ()
    seen: dict[str, set[str]] = field(default_factory=dict)

    def enters(self, names: Sequence[str]) -> bool:
        """Whether a folder may hold what is to be listed."""
        values = values_in(names)
        if values is None:
            return True  # not a partition: the listing counts what is in it
        self.see(names)
        if self.line is not None and self.line.is_before(values):
            return False
        return self.predicate is None or bool(self._outcome(values, self.types) & Truth.TRUE)

    def see(self, names: Sequence[str]) -> None:
        """Take note of what folders say."""
        for name, value in (values_in(names) or {}).items():
            self.seen.setdefault(name, set()).add(value)

    def is_whole(self, names: Sequence[str]) -> bool:
        """Whether everything below an entered folder is entered too."""
        values = values_in(names)
        if values is None:
            return True
        span = None if self.line is None else self.line.time.span(_lower(values))
        if self.line is not None and (span is None or span.start < self.line.before):
            return False
        return self.predicate is None or self._outcome(values, self.types) == Truth.TRUE

    def takes(self, names: Sequence[str], types: Mapping[str, str]) -> bool:
        """Whether the files of a folder are read, with the types that are `settled` once all folders were seen."""
        values = values_in(names) or {}
        if self.line is not None and self.line.is_before(values):
            return False
        # Where a column is missing anything is possible, and `check` refuses it.
        return self._outcome(values, types) in (Truth.TRUE, Truth.ANY)

    def settled(self) -> dict[str, str]:
        """Return the type of each column that was seen: the known one, else one that holds all of its values."""
        return {
            name.lower(): self.types.get(name.lower()) or narrowest(values - {NULL_VALUE})
            for name, values in self.seen.items()
        }

    def check(self, files: int) -> None:
        """Make sure that the columns asked for are there, once all folders were seen.

        Args:
            files: how many files were listed: with none, deeper columns may not have come to light.

        Raises:
            OptionError: one is no partition column.
        """
        columns = list(self.seen) or list(self.known)
        there = {name.lower() for name in (*columns, *self.known)}
        unknown = [name for name in self.asked if name.lower() not in there]
        if unknown and (files or self.known):
            said = f"the partition columns are {columns}" if columns else "these folders have no partition columns"
            raise OptionError(
                f"{unknown[0]!r} is no partition column, and partition_filter and partition_time know no others: "
                f"{said}. Nothing was read or changed. Filter the frame by other columns: .where(...)."
            )

    def _outcome(self, values: Mapping[str, str], types: Mapping[str, str]) -> Truth:
        if self.predicate is None:
            return Truth.TRUE
        asked = {name.lower() for name in self.predicate.columns}
        cells = {
            name.lower(): values_of(name, value, types.get(name.lower()))
            for name, value in values.items()
            if name.lower() in asked
        }
        return self.predicate.outcome(cells)


def values_in(names: Sequence[str]) -> dict[str, str] | None:
    """Return what folders say of partition columns, decoded; None where one of them is no partition."""
    if not all(map(is_partition, names)):
        return None
    return {unescaped(name): unescaped(value) for name, _, value in (folder.partition("=") for folder in names)}


def values_above(folder: str) -> dict[str, str]:
    """Return what a folder and those above it say of partition columns, up to the first that is no partition."""
    names = folder.rstrip("/").split("/")
    first = next((at for at in range(len(names), 0, -1) if not is_partition(names[at - 1])), 0)
    return values_in(names[first:]) or {}


def _lower(values: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in values.items()}
