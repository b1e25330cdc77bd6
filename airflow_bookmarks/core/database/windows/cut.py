"""Where a window in times has to end so that no row which is written later falls into it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEP, _AHEAD = timedelta(minutes=15), timedelta(hours=4)  # no clock has ever been put back by more


def cut_of(moment: datetime, key: KeyColumn, zone: str | None) -> str:
    """Return the first value of a time key that a row written at `moment` or later may have.

    The clock of a column keeps so many digits of a second, and rows of that unit may still come; a date comes until its
    day is over. Where clocks are put back in `zone`, an hour comes twice: nothing of it is final before it is over for
    the second time.

    Args:
        moment: aware.
        zone: of a key without one.

    Example:
        >>> at = datetime(2013, 1, 31, 23, 59, 58, 123456, UTC)
        >>> cut_of(at, KeyColumn("at", KeyType.TIME, digits=3), None)
        '2013-01-31 23:59:58.123000+00:00'
        >>> cut_of(at, KeyColumn("day", KeyType.DATE), "Europe/Berlin")
        '2013-02-01'
        >>> cut_of(datetime(2013, 10, 27, 0, 59, tzinfo=UTC), KeyColumn("at", KeyType.LOCAL_TIME), "Europe/Berlin")
        '2013-10-27 02:00:00.000000'
    """
    if key.type is KeyType.TIME:
        return _cut(moment.astimezone(UTC), key.digits).isoformat(" ", "microseconds")
    local = min(_local_times(moment, ZoneInfo(zone or "UTC")))
    if key.type is KeyType.DATE:
        return local.date().isoformat()
    return _cut(local, key.digits).isoformat(" ", "microseconds")


def _local_times(moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield what the clock in a zone shows at a moment, and where it is put back within the next hours, then."""
    shown = moment.astimezone(zone)
    yield shown.replace(tzinfo=None)
    # On whole quarters of an hour, where clocks are put back.
    quarter = moment.astimezone(UTC).replace(minute=moment.minute - moment.minute % 15, second=0, microsecond=0)
    for count in range(1, _AHEAD // _STEP + 1):
        later = (quarter + count * _STEP).astimezone(zone)
        if later.utcoffset() != shown.utcoffset():
            yield later.replace(tzinfo=None)


def _cut(moment: datetime, digits: int) -> datetime:
    unit = 10 ** (6 - digits)
    return moment.replace(microsecond=moment.microsecond // unit * unit)
