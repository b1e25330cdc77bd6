"""Where a window in times has to end, so that no later row falls into it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.database.key import KeyColumn, KeyType, checked_value, moment_of, watermark_of
from airflow_bookmarks.core.database.windows.cut import cut_of
from airflow_bookmarks.core.errors import OptionError

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
MOMENTS = st.integers(0, 365 * 86_400 * 1_000_000).map(
    lambda micros: datetime(2013, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


def written(moment: datetime, key: KeyColumn, zone: str) -> str:
    """Return what a column has of a row that is written at a moment."""
    local = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if key.type is KeyType.DATE:
        return local.date().isoformat()
    unit = 10 ** (6 - key.digits)
    return local.replace(microsecond=local.microsecond // unit * unit).isoformat(" ", "microseconds")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("digits", [0, 3, 6])
@given(moment=MOMENTS, later=st.timedeltas(timedelta(0), timedelta(days=2)))
def test_no_row_that_is_written_later_has_an_earlier_time(
    zone: str, digits: int, moment: datetime, later: timedelta
) -> None:
    key = KeyColumn("at", KeyType.LOCAL_TIME, digits=digits)
    assert written(moment + later, key, zone) >= cut_of(moment, key, zone)


@pytest.mark.parametrize("zone", ZONES)
@given(moment=MOMENTS, later=st.timedeltas(timedelta(0), timedelta(days=2)))
def test_no_row_that_is_written_later_has_an_earlier_date(zone: str, moment: datetime, later: timedelta) -> None:
    key = KeyColumn("day", KeyType.DATE)
    assert written(moment + later, key, zone) >= cut_of(moment, key, zone)


@pytest.mark.parametrize("zone", ZONES)
@given(moment=MOMENTS)
def test_cut_is_never_more_than_some_hours_back(zone: str, moment: datetime) -> None:
    key = KeyColumn("at", KeyType.LOCAL_TIME)
    shown = moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    assert shown - timedelta(hours=2) <= datetime.fromisoformat(cut_of(moment, key, zone)) <= shown


@pytest.mark.parametrize(
    ("moment", "cut"),
    [
        ("2013-10-26T22:00:00", "2013-10-27 00:00:00.000000"),
        ("2013-10-27T00:30:00", "2013-10-27 02:00:00.000000"),  # 02:30 for the first time
        ("2013-10-27T01:30:00", "2013-10-27 02:30:00.000000"),  # for the second time
        ("2013-03-31T00:59:59", "2013-03-31 01:59:59.000000"),
        ("2013-03-31T01:00:00", "2013-03-31 03:00:00.000000"),
    ],
)
def test_hour_that_comes_twice_is_final_after_the_second_time(moment: str, cut: str) -> None:
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert cut_of(at, KeyColumn("at", KeyType.LOCAL_TIME), "Europe/Berlin") == cut


@pytest.mark.parametrize("text", ["0001-01-01 00:00:00+14:00", "9999-12-31 23:59:59-14:00"])
def test_time_that_is_none_in_utc_is_no_value_of_a_key(text: str) -> None:
    key = KeyColumn("at", KeyType.TIME)
    assert moment_of(text) is None
    assert watermark_of(key.type, text) is None
    with pytest.raises(OptionError, match=r"is no value of at, a key of the type time\. Nothing was changed"):
        checked_value(text, key)
