"""The landing of the demo: real flights, one whole file per day."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from demo.landing import FLIGHTS_OF_2013, Flights, Landing

NEW_YEAR = date(2013, 1, 1)


@pytest.fixture(scope="module")
def flights() -> Flights:
    return Flights.of_2013()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


@pytest.mark.seldom
def test_every_flight_of_the_year_lands_in_the_file_of_its_day(flights: Flights, tmp_path: Path) -> None:
    landing = Landing(tmp_path / "raw", flights)

    days = landing.land(365)

    rows = {day: rows_of(landing.path(day)) for day in days}
    assert len(days) == len(list(landing.folder.iterdir())) == 365
    assert sum(len(found) for found in rows.values()) == FLIGHTS_OF_2013 == 336_776
    for day, found in rows.items():
        assert {(row["year"], row["month"], row["day"]) for row in found} == {("2013", str(day.month), str(day.day))}


def test_deliveries_go_on_where_the_last_one_ended(flights: Flights, tmp_path: Path) -> None:
    landing = Landing(tmp_path, flights)

    january, february = landing.land(31), landing.land(28)

    assert (january[0], january[-1]) == (date(2013, 1, 1), date(2013, 1, 31))
    assert (february[0], february[-1]) == (date(2013, 2, 1), date(2013, 2, 28))


def test_delivery_leaves_nothing_unfinished_behind(flights: Flights, tmp_path: Path) -> None:
    landing = Landing(tmp_path, flights)

    landing.land(2)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["flights_2013-01-01.csv", "flights_2013-01-02.csv"]


def test_file_carries_the_time_of_its_delivery(flights: Flights, tmp_path: Path) -> None:
    landing = Landing(tmp_path, flights)
    christmas = datetime(2012, 12, 24, tzinfo=UTC)

    first, second = landing.land(2, {date(2013, 1, 2): christmas})

    assert modified_at(landing.path(first)) == datetime(2013, 1, 2, 4, tzinfo=UTC)
    assert modified_at(landing.path(second)) == christmas


def test_corrected_file_has_one_flight_less_and_one_other_delay(flights: Flights, tmp_path: Path) -> None:
    landing = Landing(tmp_path, flights)
    landing.land(1)
    before = rows_of(landing.path(NEW_YEAR))

    landing.correct(NEW_YEAR, datetime(2013, 3, 1, tzinfo=UTC))

    after = rows_of(landing.path(NEW_YEAR))
    assert after[1:] == before[1:-1]
    assert after[0] == {**before[0], "arr_delay": str(int(before[0]["arr_delay"]) + 1)}
