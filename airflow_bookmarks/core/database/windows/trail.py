"""The trail behind a position: which rows were read where rows are looked for again, and where that begins.

                 since                 mark
    ---------------|---------------------|-----------
     read as a     |  the trail: each    |  the next
     range         |  row by its name    |  window

A row that turns up between `since` and the mark, and is not in the trail, came late. `since` is a value of the first
key alone: a time, or a number. Of numbers runs note what was the last one at which time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from airflow_bookmarks.core.database.key import KeyColumn, KeyType, moment_of
from airflow_bookmarks.core.database.windows.cut import cut_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.database.key import KeyValues
    from airflow_bookmarks.core.database.windows.window import TableKeys

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = 16  # into which a lookback is divided: so much longer than asked for is looked back at most


@dataclass(frozen=True, slots=True)
class SeenNumber:
    """The first key of the last row that could be seen at a time by the clock of the database, in UTC.

    Raises:
        ValueError: `at` is no time.
    """

    at: str
    value: str

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.at)

    @property
    def moment(self) -> datetime:
        """The time, aware."""
        return datetime.fromisoformat(self.at)


@dataclass(frozen=True, slots=True)
class Trail:
    """Which rows were read whose first key is `since` or later, up to the mark of a position.

    `rows` has their keys and ties, each with the hash of its content, of `columns`, of which `shape` is the hash.
    `columns` are names with their declared types; None where an earlier version of this package has not kept them.
    `since` None: from the first row. `seen` are the last numbers that there were at earlier times, newest last.
    """

    since: str | None
    rows: Mapping[KeyValues, str]
    seen: tuple[SeenNumber, ...]
    shape: str
    columns: tuple[tuple[str, str], ...] | None = None

    def is_as_read(self, row: KeyValues, content: str | None) -> bool:
        """Whether a row was read and has the content of then; `content` None: what that is now is not known."""
        return content is not None and self.rows.get(row) == content

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "since": self.since,
            "rows": [[*row, content] for row, content in self.rows.items()],
            "seen": [[each.at, each.value] for each in self.seen],
            "shape": self.shape,
            **({} if self.columns is None else {"columns": [list(each) for each in self.columns]}),
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any] | None) -> Trail | None:
        """Return what `stored` returned; None for None."""
        if values is None:
            return None
        rows = {tuple(row): str(content) for *row, content in values["rows"]}
        seen, columns = tuple(SeenNumber(*each) for each in values["seen"]), values.get("columns")
        columns = None if columns is None else tuple((str(name), str(declared)) for name, declared in columns)
        return cls(values["since"], rows, seen, values["shape"], columns)


def place_of(value: str, table: TableKeys) -> Decimal | None:
    """Return a value of the first key as a number that grows the way the table is read; None if it has no such place.

    Example:
        >>> from airflow_bookmarks.core.database.windows.window import TableKeys
        >>> place_of("18446744073709551615", TableKeys((KeyColumn("id", KeyType.INTEGER),)))
        Decimal('18446744073709551615')
        >>> place_of("7", TableKeys((KeyColumn("id", KeyType.INTEGER),), is_ascending=False))
        Decimal('-7')
        >>> place_of("1970-01-01 00:00:01", TableKeys((KeyColumn("at", KeyType.LOCAL_TIME),)))
        Decimal('1000000')
    """
    if not table.keys[0].type.is_time:
        return Decimal(value) if table.is_ascending else Decimal(value).copy_negate()  # which rounds nothing
    moment = moment_of(value)
    return None if moment is None else Decimal((moment - _EPOCH) // timedelta(microseconds=1))


def lies_since(value: str, since: str | None, table: TableKeys) -> bool:
    """Whether a value of the first key is `since` or later; a value without a place is not."""
    if since is None:
        return True
    one, other = place_of(value, table), place_of(since, table)
    return one is not None and (other is None or one >= other)


def later(one: str | None, other: str | None, table: TableKeys) -> str | None:
    """Return the later of two values of the first key; None stands for the first row."""
    if one is None or other is None:
        return other if one is None else one
    return one if lies_since(one, other, table) else other


def earlier(one: str, other: str, table: TableKeys) -> str:
    """Return the earlier of two values of the first key."""
    return other if lies_since(one, other, table) else one


def back_from(last: str, key: KeyColumn, zone: str | None, lookback: timedelta) -> str | None:
    """Return the first value of a time key that a row may have which was written `lookback` before the last one.

    None: there is no such time in a calendar. Where clocks were put back, the earlier of two times counts.

    Example:
        >>> back_from("2013-01-31 12:00:00+00", KeyColumn("at", KeyType.TIME), None, timedelta(hours=1))
        '2013-01-31 11:00:00.000000+00:00'
        >>> back_from("2013-01-31", KeyColumn("day", KeyType.DATE), "UTC", timedelta(hours=1))
        '2013-01-30'
        >>> back_from("2013-10-27 03:30:00", KeyColumn("at", KeyType.LOCAL_TIME), "Europe/Berlin", timedelta(hours=2))
        '2013-10-27 02:00:00.000000'
        >>> back_from("0001-01-01 00:00:00", KeyColumn("at", KeyType.LOCAL_TIME), "UTC", timedelta(hours=2))
    """
    moment = moment_of(last)
    try:
        if moment is not None and key.type is not KeyType.TIME:
            moment = moment.replace(tzinfo=ZoneInfo(zone or "UTC"), fold=0).astimezone(UTC)
        return None if moment is None else cut_of(moment - lookback, key, zone)
    except OverflowError:
        return None


def seen_before(seen: tuple[SeenNumber, ...], moment: datetime) -> SeenNumber | None:
    """Return the newest that was seen at a time or before it."""
    return next((each for each in reversed(seen) if each.moment <= moment), None)


def seen_with(
    seen: tuple[SeenNumber, ...], value: str, moment: datetime, lookback: timedelta
) -> tuple[SeenNumber, ...]:
    """Return what was seen, with what is there now; without what is older than the newest that counts at that time."""
    counts = seen_before(seen, moment - lookback)
    kept = seen if counts is None else seen[seen.index(counts) :]
    if kept and moment - kept[-1].moment < lookback / _STEPS:
        return kept
    return (*kept, SeenNumber(moment.astimezone(UTC).isoformat(" ", "microseconds"), value))
