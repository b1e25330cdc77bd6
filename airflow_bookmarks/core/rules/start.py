"""Start: where a job without a bookmark begins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.instant import in_utc

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.head import Head

_BEGINNING, _NOW = "beginning", "now"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a job without a bookmark begins: at the beginning (neither field is set), now, or at a time.

    What is older than the time counts as read; a file of exactly that time is read. A context that is `set` to a time
    goes by the same rule.

    Example:
        >>> Start.of("2013-01-31T01:00:00+01:00").text
        '2013-01-31T00:00:00+00:00'
    """

    is_now: bool = False
    time: datetime | None = None

    @classmethod
    def of(cls, value: str | datetime) -> Start:
        """Return the start for "beginning", "now", an aware time, or the ISO 8601 text of one.

        Raises:
            OptionError: it is none of these.
        """
        if value in (_BEGINNING, _NOW):
            return cls(is_now=value == _NOW)
        time = in_utc(value)
        if time is None:
            raise OptionError(
                f"start={value!r}: expected 'beginning', 'now', or a time with a zone such as 2013-01-31T00:00:00Z. "
                "Nothing was read or changed."
            )
        return cls(time=time)

    @property
    def text(self) -> str:
        """The start as the setting `spark.bookmarks.start` has it."""
        if self.time is not None:
            return self.time.isoformat()
        return _NOW if self.is_now else _BEGINNING

    @property
    def is_beginning(self) -> bool:
        """Whether everything is read."""
        return not self.is_now and self.time is None

    def before(self, times_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Say for each time (ms since 1970 UTC) of what is there whether it lies before the start."""
        if self.time is None:
            return np.full(len(times_ms), self.is_now)
        # In whole microseconds: as a fraction of seconds a time may come out a little later than it is.
        is_before: npt.NDArray[np.bool_] = times_ms * 1000 < (self.time - _EPOCH) // _MICROSECOND
        return is_before


BEGINNING = Start()


def is_first_run(head: Head) -> bool:
    """Whether a job has no bookmark yet: it never committed, and was never reset, rewound or set.

    Only then does its `start` count. A context that comes later, and a job that was reset, begin at the beginning.
    """
    return head.epoch == 1 and head.run_number == 0 and not head.contexts


def stands_before_its_first_run(head: Head) -> bool:
    """Whether the next run of a job reads from the start: it never committed, or was reset or deleted since.

    A bookmark from elsewhere may be given to such a job: it has no position that would be lost.
    """
    return is_first_run(head) or (head.epoch > 1 and not head.contexts)
