"""The watermark of a column: the greatest value that any run has read, as exact text.

type of the column             watermark
timestamp                      2013-01-31T23:59:58.123456Z   in UTC, always with microseconds
timestamp without a zone       2013-01-31T23:59:58.123456    as it is
date                           2013-01-31
integer, decimal               42, 0.0000001                 never in powers of ten
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import ContextState

Mark: TypeAlias = int | Decimal | datetime  # what a watermark compares as

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS = 1000  # Python refuses to read a number of more than 4300
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Greatest:
    """The greatest value of `column` among the rows that a run has read; None: there was none, or it is not known."""

    column: str
    value: str | None = None


def mark_of(watermark: str) -> Mark | None:
    """Return a watermark as the value to compare: a number or a time; None if it is neither.

    Example:
        >>> mark_of("42"), mark_of("0.50"), mark_of("2013-01-31"), mark_of("part-00042")
        (42, Decimal('0.50'), datetime.datetime(2013, 1, 31, 0, 0), None)
    """
    if _NUMBER.fullmatch(watermark) and len(watermark) <= _MOST_DIGITS:
        return Decimal(watermark) if "." in watermark else int(watermark)
    try:
        return datetime.fromisoformat(watermark)
    except ValueError:
        return None


def are_comparable(a: Mark | None, b: Mark | None) -> bool:
    """Whether two can be compared: numbers with numbers, times with times if both or neither have a zone."""
    if isinstance(a, datetime) and isinstance(b, datetime):
        return (a.tzinfo is None) == (b.tzinfo is None)
    return isinstance(a, int | Decimal) and isinstance(b, int | Decimal)


def later(before: str | None, found: str | None) -> str | None:
    """Return the higher of two watermarks; what is `found` where they can't be compared (the column's type changed).

    Example:
        >>> later("9", "10"), later("2013-01-31", None), later("2013-01-31", "7")
        ('10', '2013-01-31', '7')
    """
    if before is None or found is None:
        return before if found is None else found
    was, now = mark_of(before), mark_of(found)
    if was is None or now is None or not are_comparable(was, now):
        return found
    return found if now > was else before  # type: ignore[operator]  # they are comparable


def state_after(
    state: ContextState, position: Position, before: ContextState | None, greatest: Greatest | None
) -> ContextState:
    """Return where a context stands after a run, with its watermark.

    Args:
        state: kind, source and run of the context.
        position: where the run has left it.
        before: where it stood, if the run went on from there; else None.
        greatest: what was read of the column whose values are the watermark; None: the source tells its watermark.

    A watermark of another column, or of no column, says nothing of this one: the first value of the column replaces it.
    Until then there is none: a sensor that waits for a value of the column must not be released by the time of a file.
    """
    if greatest is None:
        return replace(state, watermark=position.watermark)
    is_same = before is not None and before.watermark_column == greatest.column
    mark = later(before.watermark, greatest.value) if before is not None and is_same else greatest.value
    return replace(state, watermark=mark, watermark_column=greatest.column)


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
