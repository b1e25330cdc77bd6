"""Bounds: limit how much of what is new one run reads. The rest stays new, for the next run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.reason import OVER_BOUND, SETTLING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import Listing

_MILLISECOND = timedelta(milliseconds=1)

# Among a plan's stats: the oldest file that a bound has left to the next run, in ms since 1970 UTC. A file does not
# become late by waiting for its turn.
WAITING_FROM = "waiting_from_ms"

# Among a plan's stats, for readers that list no folder: what a plan has left to later runs, over a bound or settling,
# and when its files were listed, if that was not when its run began.
WAITING_BYTES = "waiting_bytes"
WAITING_OLDEST = "waiting_oldest_ms"
LOOKED_AT = "looked_at"
READ_LATER = (OVER_BOUND, SETTLING)  # the reasons for which a run leaves that out


@dataclass(frozen=True, slots=True)
class RunSize:
    """What one published run of an upstream job amounts to. `rows` is None where they were not counted.

    `committed_ms` is when it was committed, in milliseconds since 1970 UTC; None where that is not known.
    """

    files: int
    size_bytes: int
    rows: int | None = None
    committed_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much one run reads at most. If several are given, all of them hold; without any, the run reads everything
    new.

    Args:
        max_files: so many files (Glue's `boundedFiles`).
        max_bytes: so many bytes (Glue's `boundedSize`); a single larger file is still read, when it comes first.
        max_rows: so many rows, of an upstream, which knows them; files don't know theirs before they are read.
        window: what falls into one window of this length, aligned to the clock (UTC): the oldest that has anything new.

    Raises:
        OptionError: a bound that is no whole number from 1 on, or a window that is no positive time.

    Example:
        >>> Bound.of(max_files="500").stats()
        {'max_files': 500}
    """

    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    window: timedelta | None = None

    def __post_init__(self) -> None:
        for name in ("max_files", "max_bytes", "max_rows"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise _no_number(name, value)
        if self.window is not None and (not isinstance(self.window, timedelta) or self.window < _MILLISECOND):
            raise OptionError(f"window={self.window!r}: expected a positive timedelta. Nothing was read or changed.")

    @classmethod
    def of(
        cls,
        *,
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        max_rows: int | str | None = None,
        window: timedelta | None = None,
    ) -> Bound:
        """Return the bound that a script gives; numbers may be text, as Glue has them."""
        return cls(
            max_files=whole_number("max_files", max_files),
            max_bytes=whole_number("max_bytes", max_bytes),
            max_rows=whole_number("max_rows", max_rows),
            window=window,
        )

    @property
    def is_given(self) -> bool:
        """Whether it bounds anything."""
        return bool(self.given())

    def given(self) -> list[str]:
        """Return the names of the bounds that are given."""
        return [each.name for each in fields(self) if getattr(self, each.name) is not None]

    @property
    def window_ms(self) -> int | None:
        """`window` in milliseconds."""
        return None if self.window is None else self.window // _MILLISECOND

    def stats(self) -> dict[str, Any]:
        """Return as plain values what is given, for the record of a plan."""
        stats = {"max_files": self.max_files, "max_bytes": self.max_bytes, "max_rows": self.max_rows}
        stats["window_ms"] = self.window_ms
        return {name: value for name, value in stats.items() if value is not None}

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Bound:
        """Return the bound that `stats` recorded."""
        window_ms = stats.get("window_ms")
        return cls(
            max_files=stats.get("max_files"),
            max_bytes=stats.get("max_bytes"),
            max_rows=stats.get("max_rows"),
            window=None if window_ms is None else window_ms * _MILLISECOND,
        )

    # ---- files

    def takes(self, files: Listing, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Say which of some rows of `files` one run reads; `files` and `rows` are in the order of reading.

        At least one file is taken if there are any, so that each run makes progress.
        """
        is_taken = np.ones(len(rows), np.bool_)
        window_ms = self.window_ms
        if window_ms is not None and len(rows):
            windows = files.times_ms[rows] // window_ms
            is_taken = windows == windows.min()
        wanted = np.flatnonzero(is_taken)
        count = len(wanted) if self.max_files is None else min(len(wanted), self.max_files)
        if self.max_bytes is not None and count:
            total = np.cumsum(files.sizes[rows[wanted[:count]]])
            count = max(1, int(np.searchsorted(total, self.max_bytes, side="right")))
        is_taken[wanted[count:]] = False
        return is_taken

    def takes_whole(
        self,
        files: Listing,
        rows: npt.NDArray[np.intp],
        groups: npt.NDArray[np.int64],
        is_cause: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.bool_]:
        """Say which of some rows of `files` one run reads where groups of them are never split; see `takes`.

        A group that is larger than the bound is taken alone. It falls into the window of its oldest cause.

        Args:
            groups: the group of each of `rows`, those of one group next to each other.
            is_cause: which of `rows` are new or changed, and not read with the rest of their group; each has one.
        """
        if not len(rows):
            return np.ones(0, np.bool_)
        is_first = np.diff(groups, prepend=groups[0] - 1) != 0
        at, starts = np.cumsum(is_first) - 1, np.flatnonzero(is_first)
        is_wanted = np.ones(len(starts), np.bool_)
        if self.window_ms is not None:
            times = np.where(is_cause, files.times_ms[rows], np.iinfo(np.int64).max)
            windows = np.minimum.reduceat(times, starts) // self.window_ms
            is_wanted = windows == windows.min()
        wanted = np.flatnonzero(is_wanted)
        count = len(wanted)
        totals = (self.max_files, np.ones(len(rows), np.int64)), (self.max_bytes, files.sizes[rows])
        for most, each in totals:
            if most is not None:
                summed = np.cumsum(np.add.reduceat(each, starts)[wanted])
                count = min(count, max(1, int(np.searchsorted(summed, most, side="right"))))
        is_wanted[wanted[count:]] = False
        is_taken: npt.NDArray[np.bool_] = is_wanted[at]
        return is_taken

    # ---- runs of an upstream

    def fitting(self, amounts: Iterable[RunSize]) -> int:
        """Return how many of some published runs, from the first on, one run reads: whole runs, and as many as fit.

        At least those up to the first that has anything, so that each run gets on.

        Raises:
            OptionError: rows or commit time of a run are not known, and a bound asks for them.
        """
        taken, files, size_bytes, rows, window = 0, 0, 0, 0, None
        for amount in amounts:
            is_first, at = files == 0, self._window_of(amount)
            files, size_bytes = files + amount.files, size_bytes + amount.size_bytes
            rows += self._rows_of(amount)
            fits = not amount.files or self._holds(files, size_bytes, rows)
            if not is_first and not (fits and at == window):
                break
            taken, window = taken + 1, at
        return taken

    def _holds(self, files: int, size_bytes: int, rows: int) -> bool:
        totals = (files, self.max_files), (size_bytes, self.max_bytes), (rows, self.max_rows)
        return all(bound is None or total <= bound for total, bound in totals)

    def _rows_of(self, amount: RunSize) -> int:
        if self.max_rows is None or not amount.files:
            return 0
        if amount.rows is None:
            raise OptionError(
                f"max_rows={self.max_rows}: the upstream has not counted the rows of a run that is to be read "
                "(count_rows=False there). Nothing was read or changed. Use max_files, max_bytes or window."
            )
        return amount.rows

    def _window_of(self, amount: RunSize) -> int | None:
        if self.window_ms is None:
            return None
        if amount.committed_ms is None:
            raise OptionError(
                f"window={self.window!r}: it is not known when a run of the upstream that is to be read was committed. "
                "Nothing was read or changed. Use max_files, max_bytes or max_rows."
            )
        return amount.committed_ms // self.window_ms


UNBOUND = Bound()
BOUNDS = tuple(each.name for each in fields(Bound))


def beyond_band(
    listing: Listing, wanted: npt.NDArray[np.bool_], young_after_ms: int, most: int
) -> npt.NDArray[np.bool_]:
    """Return which wanted files are young and more than may be read of these: the oldest come first (Glue: `maxBand`).

    Args:
        listing: the files.
        wanted: which of them would be read.
        young_after_ms: files after this time are young, in ms since 1970 UTC.
        most: how many young files may be read (Glue: `maxFilesInBand`).
    """
    is_young: npt.NDArray[np.bool_] = wanted & (listing.times_ms > young_after_ms)
    rows = np.flatnonzero(is_young).tolist()
    is_young[sorted(rows, key=lambda row: (listing.times_ms[row], listing.paths[row]))[:most]] = False
    return is_young


def whole_number(name: str, value: int | str | None) -> int | None:
    """Return a bound that is a number, which may be given as text.

    Raises:
        OptionError: it is text, and no whole number.
    """
    if not isinstance(value, str):
        return value
    if not (value.isascii() and value.isdigit()):
        raise _no_number(name, value)
    return int(value)


def _no_number(name: str, value: object) -> OptionError:
    return OptionError(f"{name}={value!r}: expected a whole number from 1 on. Nothing was read or changed.")
