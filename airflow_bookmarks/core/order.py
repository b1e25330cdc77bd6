"""Orders: how the watermarks of a context compare. A context stores the name of its order beside its watermark.

name         its watermarks                                                          of
number       42, 0.0000001                 never in powers of ten                    runs, keys, sequences, columns
time         2013-01-31T23:59:58.123456Z   in UTC, always with microseconds          files, columns
local_time   2013-01-31T23:59:58.123456    or a date: without a zone, as it is       sequences, columns
text         part-9a                       neither a number nor a time               sequences
path         2013/part-0042.csv            any text, digits alone too                sequences by path

Text compares by its characters. A context that was stored before orders were has none: its watermark compares as it
looks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from airflow_bookmarks.core.errors import OptionError

Value: TypeAlias = int | Decimal | datetime | str  # what a watermark compares as

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS = 1000  # Python refuses to read a number of more than 4300
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Order:
    """One way in which watermarks compare: `name` is stored and never changes, `description` says what a value is."""

    name: str
    description: str
    _read: Callable[[str], Value | None]

    def parse(self, text: str) -> Value | None:
        """Return the value that a text means; None if it is none of this order.

        Example:
            >>> NUMBER.parse("0.50"), LOCAL_TIME.parse("2013-01-31"), NUMBER.parse("2013-01-31")
            (Decimal('0.50'), datetime.datetime(2013, 1, 31, 0, 0), None)
        """
        return self._read(text)

    def compare(self, one: str, other: str) -> int | None:
        """Return 1 if `one` is the higher, -1 if `other` is, 0 if they are equal; None if one is not of this order.

        Example:
            >>> NUMBER.compare("10", "9"), PATH.compare("10", "9"), NUMBER.compare("10", "b")
            (1, -1, None)
        """
        a, b = self._read(one), self._read(other)
        if a is None or b is None:
            return None
        return (a > b) - (a < b)  # type: ignore[operator]  # values of one order compare


def _number(text: str) -> int | Decimal | None:
    if not _NUMBER.fullmatch(text) or len(text) > _MOST_DIGITS:
        return None
    return Decimal(text) if "." in text else int(text)


def _moment(text: str) -> datetime | None:
    if _number(text) is not None:
        return None  # 20130131 is a number, although ISO 8601 has dates without dashes
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _time(text: str) -> datetime | None:
    moment = _moment(text)
    return None if moment is None or moment.tzinfo is None else moment


def _local_time(text: str) -> datetime | None:
    moment = _moment(text)
    return None if moment is None or moment.tzinfo is not None else moment


def _text(text: str) -> str | None:
    return text if _number(text) is None and _moment(text) is None else None


NUMBER = Order("number", "a number, such as 42 or 0.5", _number)
TIME = Order("time", "a time with a zone, such as 2013-01-31T23:59:58Z", _time)
LOCAL_TIME = Order(
    "local_time", "a date or a time without a zone, such as 2013-01-31 or 2013-01-31T23:59:58", _local_time
)
TEXT = Order("text", "text that is neither a number nor a time", _text)
PATH = Order("path", "the path of a file below its root", str)

ORDERS = {order.name: order for order in (NUMBER, TIME, LOCAL_TIME, TEXT, PATH)}


def order_like(text: str) -> Order:
    """Return the order of which a text looks to be: of numbers, of times with or without a zone, else of text.

    Example:
        >>> [order_like(text).name for text in ("42", "2013-01-31", "2013-01-31T00:00:00Z", "part-9a")]
        ['number', 'local_time', 'time', 'text']
    """
    return next(order for order in (NUMBER, TIME, LOCAL_TIME, TEXT) if order.parse(text) is not None)


def order_of(name: str | None, watermark: str) -> Order:
    """Return the order of a watermark: the one stored with it by name, else the one of which it looks to be.

    Raises:
        OptionError: this version does not know the name.
    """
    return order_like(watermark) if name is None else order_named(name)


def order_named(name: str) -> Order:
    """Return the order of that name.

    Raises:
        OptionError: this version does not know it.
    """
    if name not in ORDERS:
        raise OptionError(
            f"a context has watermarks that compare by {name!r}, and this version knows {', '.join(ORDERS)}. Nothing "
            "was read or changed. Upgrade airflow-bookmarks here to the version of the job's driver."
        )
    return ORDERS[name]


def later(before: str | None, found: str | None, order: Order | None = None) -> str | None:
    """Return the higher of two watermarks; what is `found` where they can't be compared (the column's type changed).

    Args:
        before: the watermark so far.
        found: the one of this run.
        order: how `found` compares; None: as it looks.

    Example:
        >>> later("9", "10"), later("9", "10", PATH), later("2013-01-31", None), later("2013-01-31", "7")
        ('10', '9', '2013-01-31', '7')
    """
    if before is None or found is None:
        return before if found is None else found
    compared = (order or order_like(found)).compare(before, found)
    return before if compared is not None and compared >= 0 else found


# ---- values as text


def text_of_micros(micros: int) -> str | None:
    """Return a time in microseconds since 1970 UTC as text; None if it is not in the years 1 to 9999.

    Example:
        >>> text_of_micros(1_359_676_798_123_456)
        '2013-01-31T23:59:58.123456Z'
    """
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def text_of_time(text: str) -> str | None:
    """Return a time without a zone, or a date, in ISO 8601; None if it is not in the years 1 to 9999.

    Example:
        >>> text_of_time("2013-01-31 23:59:58.12"), text_of_time("2013-01-31"), text_of_time("+12013-01-31")
        ('2013-01-31T23:59:58.120000', '2013-01-31', None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.date().isoformat() if len(text) == len("2013-01-31") else moment.isoformat(timespec="microseconds")


def text_of_number(text: str) -> str:
    """Return a number without a power of ten.

    Example:
        >>> text_of_number("1E-7"), text_of_number("42"), text_of_number("1.50")
        ('0.0000001', '42', '1.50')
    """
    return format(Decimal(text), "f")
