"""Partition time: the span of time that a folder such as `year=2013/month=09` covers.

    year=2013                      2013-01-01 to 2014-01-01
    year=2013/month=9              2013-09-01 to 2013-10-01      numbers, not texts: month 9 is before 10
    dt=2013-09-01/hour=05          2013-09-01T05 to T06

A folder is passed over only when all of its span lies before some line; one without a time never is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

NEWEST_PARTITION = "newest_partition"  # of a plan's stats: the start of the partition up to which all is read

_UNITS = ("year", "month", "day", "hour", "minute")
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)
_DATE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2})(?:[-T ]?(\d{2})(?:[-:]?(\d{2}))?)?)?)?", re.ASCII)
_CLOCKS_DIFFER_BY = timedelta(days=1)  # partitions are named by some zone's time, and clocks may be wrong


@dataclass(frozen=True, slots=True)
class Span:
    """A time from `start` up to `end`, without a zone: that of the writer of the partitions."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """Which partition columns tell a time: year, month, day, hour and minute in this order, or as few of them.

    The first may be a date too (2013-01-31, 20130131, 2013-01, 2013-01-31-05); the following columns refine it.

    Example:
        >>> months = PartitionTime.parse("year,month")
        >>> months.span({"year": "2013", "month": "09"}).end.isoformat()
        '2013-10-01T00:00:00'
        >>> PartitionTime.parse("dt,hour").span({"dt": "2013-01-31", "hour": "7"}).start.isoformat()
        '2013-01-31T07:00:00'
    """

    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> PartitionTime:
        """Read the names of columns, with commas between them.

        Raises:
            OptionError: it names none, one twice, or more than five.
        """
        columns = tuple(name.strip() for name in text.split(",")) if isinstance(text, str) else ()
        if not all(columns) or not 1 <= len({name.lower() for name in columns}) == len(columns) <= len(_UNITS):
            raise OptionError(
                f"partition_time={text!r}: expected the names of the partition columns that tell the time, the longest "
                "unit first, such as 'year,month,day' or 'dt'. Nothing was read or changed."
            )
        return cls(columns)

    def span(self, values: Mapping[str, str]) -> Span | None:
        """Return the time that a folder covers; None if it tells none.

        Args:
            values: by name in lower case, what the folders so far say; deeper columns are not there yet.
        """
        numbers: list[int] = []
        for name in self.columns:
            text = values.get(name.lower())
            if text is None:
                break
            more = _numbers(text, is_first=not numbers)
            if more is None:
                return None
            numbers += more
        return _span(numbers) if numbers else None


def newest_allowed(now: datetime) -> datetime:
    """Return the latest start of a partition that may move the line: one dated further ahead has a wrong name."""
    return now.replace(tzinfo=None) + _CLOCKS_DIFFER_BY


def _numbers(text: str, *, is_first: bool) -> list[int] | None:
    if not is_first:
        return [int(text)] if _NUMBER.fullmatch(text) else None
    match = _DATE.fullmatch(text)
    return None if match is None else [int(part) for part in match.groups() if part is not None]


def _span(numbers: list[int]) -> Span | None:
    if len(numbers) > len(_UNITS):
        return None
    try:
        start = datetime(*[*numbers, 1, 1][: max(3, len(numbers))])  # type: ignore[arg-type]  # noqa: DTZ001 (no zone)
        return Span(start, _next(start, _UNITS[len(numbers) - 1]))
    except (ValueError, OverflowError):  # no such month, or the end of time
        return None


def _next(start: datetime, unit: str) -> datetime:
    if unit == "year":
        return start.replace(year=start.year + 1)
    if unit == "month":
        return (start.replace(day=1) + timedelta(days=32)).replace(day=1)
    return start + timedelta(**{f"{unit}s": 1})
