"""What the last runs of a job have read of one source of files, and how its partitions are ordered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.selection.partition import NULL_VALUE
from airflow_bookmarks.core.selection.partition_time import PartitionTime

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.partition_time import Span

Folder: TypeAlias = tuple[tuple[str, str], ...]  # names and values of its partition columns, the outermost first

_NAMES_OF_UNITS = (
    {"year", "yyyy", "yr"},
    {"month", "mon", "mm"},
    {"day", "dd", "dayofmonth"},
    {"hour", "hh", "hr"},
    {"minute", "min"},
)
_SMALLER_UNITS = (_NAMES_OF_UNITS[3], _NAMES_OF_UNITS[4])
_WITH_DASHES = re.compile(r"\d{4}-\d{2}(-\d{2}(-\d{2})?)?", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)
_DIGITS = re.compile(r"\d{8}(\d{2})?", re.ASCII)
_NAMES_OF_DATES = {"dt", "ds", "date", "day", "dateint", "datehour", "event_date", "partition_date"}


@dataclass(frozen=True, slots=True)
class FilesOfRun:
    """What one run has read.

    `folders` counts its files by partition, without those that were read before. What the listing saw is None where
    that is not recorded, or where an earlier batch of its loop had listed. `goes_on`: there was a position before it;
    without one, all that is listed is new. `plan_s` is how long its planning took, of all its `contexts`, and `whole_s`
    the run.
    """

    number: int
    files: int
    bytes: int | None
    folders: Mapping[Folder, int]
    goes_on: bool = True
    listed: int | None = None
    known: int | None = None
    folders_listed: int | None = None
    folders_without_new: int | None = None
    bytes_again: int = 0
    plan_s: float | None = None
    whole_s: float | None = None
    contexts: int = 1


@dataclass(frozen=True)
class FileReads:
    """The last runs that read a source of files, oldest first, and how they chose their files.

    `usual` is the usual time between commits of the job (None: not known). `is_narrowed`: patterns in the paths of the
    source leave folders out. `keeps_files`: what was read stays where it is.
    """

    ctx: str
    runs: Sequence[FilesOfRun]
    types: Mapping[str, str] = field(default_factory=dict)
    usual: timedelta | None = None
    partition_filter: str | None = None
    partition_time: PartitionTime | None = None
    is_narrowed: bool = False
    keeps_files: bool = True

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The partition columns, the outermost first; those of the newest run that has read any."""
        for run in reversed(self.runs):
            if run.folders:
                return tuple(name for name, _ in max(run.folders, key=len))
        return ()

    @cached_property
    def time(self) -> PartitionTime | None:
        """Which columns tell a time: those that the script named, else those whose names and values say so."""
        if self.partition_time is not None:
            return self.partition_time
        by_name = _by_units(self.columns) or self._by_values()
        return PartitionTime(by_name) if by_name else None

    def span(self, folder: Folder) -> Span | None:
        """Return the time that a partition covers; None where it tells none."""
        return None if self.time is None else self.time.span({name.lower(): value for name, value in folder})

    def place(self, folder: Folder) -> tuple[Any, ...] | None:
        """Return what puts a partition into an order: its time, else its values by their types; None: it has none."""
        if self.time is not None:
            span = self.span(folder)
            return None if span is None else (span.start,)
        if not folder or any(value == NULL_VALUE for _, value in folder):
            return None
        return tuple(self._place_of(name, value) for name, value in folder)

    def _place_of(self, name: str, value: str) -> tuple[int, str]:
        is_number = self.types.get(name) in ("int", "bigint") and _NUMBER.fullmatch(value) is not None
        return (int(value), "") if is_number else (0, value)

    def _by_values(self) -> tuple[str, ...]:
        for at, name in enumerate(self.columns):
            if self._tells_dates(name):
                following = zip(self.columns[at + 1 :], _SMALLER_UNITS, strict=False)
                return (name, *_leading(following))
        return ()

    def _tells_dates(self, name: str) -> bool:
        values = {value for run in self.runs for folder in run.folders for each, value in folder if each == name}
        values -= {NULL_VALUE}
        pattern = _DIGITS if name.lower() in _NAMES_OF_DATES else _WITH_DASHES
        column = PartitionTime((name,))
        return bool(values) and all(
            (pattern.fullmatch(value) or _WITH_DASHES.fullmatch(value))
            and column.span({name.lower(): value}) is not None
            for value in values
        )


def _by_units(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that are named year, month and so on, from the first year on."""
    for at, name in enumerate(columns):
        if name.lower() in _NAMES_OF_UNITS[0]:
            return tuple(_leading(zip(columns[at:], _NAMES_OF_UNITS, strict=False)))
    return ()


def _leading(pairs: Any) -> list[str]:
    found: list[str] = []
    for name, names in pairs:
        if name.lower() not in names:
            break
        found.append(name)
    return found
