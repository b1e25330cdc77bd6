"""Counting without Spark and without bookmarks: what lies in the source files, what lies in the targets."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

# What tells one flight from any other, and one value that a correction changes.
_IDENTITY = ("carrier", "flight", "origin", "dest", "sched_dep_time", "arr_delay")

Row = tuple[Any, ...]


class Difference(Exception):
    """Raised when what was found is not what was expected."""

    def __init__(self, what: str, expected: object, found: object) -> None:
        super().__init__(f"{what}: expected {expected!r}, found {found!r}")
        self.what, self.expected, self.found = what, expected, found

    def at(self, where: str) -> Difference:
        """Return the same, with where it was found."""
        return Difference(f"{where}: {self.what}", self.expected, self.found)


def compare(what: str, expected: object, found: object) -> None:
    """Make sure that both are equal.

    Raises:
        Difference: they are not.
    """
    if expected != found:
        raise Difference(what, expected, found)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One delivered file: its flights, and when it says that it was changed last."""

    path: Path
    modified_at: datetime
    flights: Counter[Row]

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Count the rows of a file."""
        with path.open(newline="", encoding="ascii") as file:
            flights = Counter(tuple(_value(row, name) for name in _IDENTITY) for row in csv.DictReader(file))
        return cls(path, datetime.fromtimestamp(path.stat().st_mtime, UTC), flights)

    @property
    def rows(self) -> int:
        return self.flights.total()

    def delays(self) -> Counter[Row]:
        """Return what the delays of this day are: per carrier the flights, the arrivals, and the largest delay."""
        flights: Counter[str] = Counter()
        arrivals: dict[str, list[int]] = {}
        for (carrier, *_, delay), times in self.flights.items():
            flights[carrier] += times
            arrivals.setdefault(carrier, []).extend([] if delay is None else [delay] * times)
        return Counter((c, flights[c], len(arrivals[c]), max(arrivals[c], default=None)) for c in flights)


def _value(row: Mapping[str, str], name: str) -> str | int | None:
    text = row[name]
    if name in ("flight", "sched_dep_time", "arr_delay"):
        return None if text == "NA" else int(text)
    return text


def count_sources(folder: Path) -> dict[date, SourceFile]:
    """Read each delivered file of a folder."""
    paths = sorted(folder.glob("flights_*.csv"))
    return {date.fromisoformat(path.stem.removeprefix("flights_")): SourceFile.read(path) for path in paths}


def count_flights(folder: Path) -> dict[date, Counter[Row]]:
    """Count the clean flights per day."""
    return _count(folder, _IDENTITY)


def count_delays(folder: Path) -> dict[date, Counter[Row]]:
    """Count the delays per day."""
    return _count(folder, ("carrier", "flights", "arrived", "max_arr_delay"))


def count_journal(folder: Path) -> Counter[tuple[date, int]]:
    """Count the rows of the journal: days, with the flights that each had when it was read."""
    rows: Counter[tuple[date, int]] = Counter()
    for path in _visible_files(folder):
        table = parquet.ParquetFile(path).read(columns=["month", "day", "flights"])
        rows.update((date(2013, row["month"], row["day"]), row["flights"]) for row in table.to_pylist())
    return rows


def _count(folder: Path, columns: tuple[str, ...]) -> dict[date, Counter[Row]]:
    days: dict[date, Counter[Row]] = {}
    for path in _visible_files(folder):
        table = parquet.ParquetFile(path).read(columns=list(columns))
        rows = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
        days.setdefault(day_of(path), Counter()).update(rows)
    return days


def _visible_files(folder: Path) -> Iterator[Path]:
    """Yield what any reader sees: no name that begins with `_` or `.`, on any level."""
    for path in sorted(folder.rglob("*.parquet")):
        parts = path.relative_to(folder).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            yield path


def day_of(path: Path) -> date:
    """Return the day that a file of a target is about: `.../month=1/day=31/...`."""
    values = dict(part.split("=", 1) for part in path.parent.parts if "=" in part)
    return date(2013, int(values["month"]), int(values["day"]))


def staged_files(folder: Path) -> list[Path]:
    """Return what lies staged in a target and is not published."""
    return [path for path in folder.glob("_bookmarks/**/*") if path.is_file()]
