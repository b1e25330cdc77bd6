"""Key columns of a table: their types, and the exact text of their values.

A value of a key is text, as the database itself writes it. It becomes neither a float nor a datetime on its way into
state and back into a query, so microseconds, unsigned integers, 38 digits and `infinity` stay what they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TypeAlias

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.order import LOCAL_TIME, NUMBER, PATH, TIME, Order

KeyValues: TypeAlias = tuple[str, ...]  # one text for each key, or for the first of them


class KeyType(Enum):
    """What the values of a key are, whatever a database calls the type. The value is stored and never changes."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DATE = "date"
    LOCAL_TIME = "local_time"  # without a zone
    TIME = "time"  # an instant
    UUID = "uuid"
    TEXT = "text"

    @property
    def is_time(self) -> bool:
        """Whether a database's clock can be compared with it."""
        return self in (KeyType.DATE, KeyType.LOCAL_TIME, KeyType.TIME)

    @property
    def order(self) -> Order:
        """How watermarks of it compare."""
        return _ORDERS[self]


_ORDERS = {
    KeyType.INTEGER: NUMBER,
    KeyType.DECIMAL: NUMBER,
    KeyType.DATE: LOCAL_TIME,
    KeyType.LOCAL_TIME: LOCAL_TIME,
    KeyType.TIME: TIME,
    KeyType.UUID: PATH,  # any text
    KeyType.TEXT: PATH,
}


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column by which rows are told apart, or put into an order.

    `digits` is how many digits of a second its times keep. `collation` is the one to compare it by; None: its own,
    which compares bytes, or it is no text.
    """

    name: str
    type: KeyType
    is_nullable: bool = True
    digits: int = 6
    collation: str | None = None


def watermark_of(key: KeyType, text: str) -> str | None:
    """Return the value of a key as a watermark; None where its order has no such value (`infinity`, `NaN`, BC).

    Example:
        >>> watermark_of(KeyType.TIME, "2013-01-31 23:59:58.5+00"), watermark_of(KeyType.DECIMAL, "NaN")
        ('2013-01-31T23:59:58.500000Z', None)
        >>> watermark_of(KeyType.INTEGER, "18446744073709551615")
        '18446744073709551615'
    """
    if key in (KeyType.TIME, KeyType.LOCAL_TIME):
        moment = moment_of(text)
        if moment is None:
            return None
        text = moment.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds")
        text = f"{text}Z" if key is KeyType.TIME else text
    return text if key.order.parse(text) is not None else None


def moment_of(text: str) -> datetime | None:
    """Return the time that the text of a database means, in UTC where it names no zone; None where it means none.

    A time that in UTC is not in the years 1 to 9999 is none.

    Example:
        >>> moment_of("2013-01-31 23:59:58+00"), moment_of("infinity"), moment_of("0000-00-00 00:00:00")
        (datetime.datetime(2013, 1, 31, 23, 59, 58, tzinfo=datetime.timezone.utc), None, None)
        >>> moment_of("0001-01-01 00:00:00+14")
    """
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_FORMS = {
    KeyType.INTEGER: re.compile(r"-?[0-9]{1,38}", re.ASCII),
    KeyType.DECIMAL: re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,65})?", re.ASCII),
    KeyType.DATE: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII),
    KeyType.UUID: re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII),
}
_EXAMPLES = {
    KeyType.INTEGER: "42",
    KeyType.DECIMAL: "0.5",
    KeyType.DATE: "2013-01-31",
    KeyType.LOCAL_TIME: "2013-01-31T23:59:58, without a zone",
    KeyType.TIME: "2013-01-31T23:59:58Z, with a zone",
    KeyType.UUID: "550e8400-e29b-41d4-a716-446655440000",
}


def checked_value(text: str, key: KeyColumn) -> str:
    """Return what a person has named as the value of a key, as it is stored.

    Raises:
        OptionError: it is no value of its type.

    Example:
        >>> checked_value("2013-01-31T01:00:00+01:00", KeyColumn("at", KeyType.TIME))
        '2013-01-31 00:00:00.000000+00:00'
    """
    if key.type is KeyType.TEXT:
        return text
    if key.type in (KeyType.TIME, KeyType.LOCAL_TIME):
        value = _time_of(text, has_zone=key.type is KeyType.TIME)
    else:
        value = text if _FORMS[key.type].fullmatch(text) and (key.type is not KeyType.DATE or moment_of(text)) else None
    if value is None:
        raise OptionError(
            f"{text!r} is no value of {key.name}, a key of the type {key.type.value}. Nothing was changed. Give one "
            f"such as {_EXAMPLES[key.type]}; or now."
        )
    return value


def _time_of(text: str, *, has_zone: bool) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        if (moment.tzinfo is not None) is not has_zone:
            return None
        return (moment.astimezone(UTC) if has_zone else moment).isoformat(" ", "microseconds")
    except (ValueError, OverflowError):  # no time, or in UTC not in the years 1 to 9999
        return None
