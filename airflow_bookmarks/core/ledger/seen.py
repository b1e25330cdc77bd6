"""Track which numbers or days of a source were ever listed, and so which are missing between the first and the last.

They are kept as ranges, so a sequence without gaps is one range however long it is, and a file that is removed after it
was seen leaves no gap. Beyond `MAX_RANGES` the lowest ranges are merged: what is missing between them stays counted
(`lost`), but it is no longer known which numbers they are, or whether they came after all. Lower values join the merged
range, so that everything above it stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.gap import TO, gaps_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

Unit: TypeAlias = Literal["number", "day"]
Range: TypeAlias = tuple[int, int]

MAX_RANGES = 128
SHOWN_RANGES = 20


@dataclass(frozen=True, slots=True)
class SeenRanges:
    """The numbers that were ever seen: ranges, ascending, each two with something missing between them.

    A day is kept as its number since the year 1. `of` names the rule of a sequence, or a partition column.

    Example:
        >>> seen = Seen("number", "part-(?P<seq>...)").add(np.array([1, 2, 3, 7, 9, 10]))
        >>> seen.in_words()
        '4 of 1 to 10 are missing: 4 to 6, 8'
    """

    unit: Unit
    of: str
    ranges: tuple[Range, ...] = ()
    lost: int = 0

    def add(self, numbers: npt.NDArray[np.int64], *, most: int = MAX_RANGES) -> SeenRanges:
        """Return it with `numbers` added, in at most so many ranges."""
        if not len(numbers):
            return self
        new = np.unique(numbers)
        first = np.flatnonzero(np.concatenate([[True], np.diff(new) > 1]))
        last = np.concatenate([first[1:], [len(new)]]) - 1
        known = np.array(self.ranges, np.int64).reshape(-1, 2)
        starts, ends = np.concatenate([known[:, 0], new[first]]), np.concatenate([known[:, 1], new[last]])
        return self._of(_joined(starts, ends), most)

    def _of(self, ranges: Sequence[Range], most: int) -> SeenRanges:
        cut = max(len(ranges) - most, self._lowest_in(ranges))
        folded = ranges[: cut + 1]
        one = (folded[0][0], folded[-1][1])
        lost = self.lost + sum(count for _, _, count in _between(folded))
        return replace(self, ranges=(one, *ranges[cut + 1 :]), lost=lost)

    def _lowest_in(self, ranges: Sequence[Range]) -> int:
        """Return which of `ranges` holds those that were taken together before; the first, where none were."""
        if not self.lost:
            return 0
        return next(row for row, (_, last) in enumerate(ranges) if last >= self.ranges[0][1])

    @property
    def missing(self) -> int:
        """How many are missing between the first and the last."""
        return self.lost + sum(count for _, _, count in _between(self.ranges))

    @property
    def gaps(self) -> list[str]:
        """What is known to be missing, ascending: `4..6` or `8`."""
        return [self._range_text((first, last)) for first, last, _ in _between(self.ranges)]

    def in_words(self) -> str:
        """Say how many are missing, and which."""
        if not self.missing:
            return "nothing is missing"
        return gaps_in_words(self.stats())

    # ---- as plain values

    def stats(self) -> dict[str, Any]:
        """Return it as plain values, for the record of a run: with what was seen, from which it goes on."""
        gaps = self.gaps
        first, last = (self.ranges[0][0], self.ranges[-1][1]) if self.ranges else (0, 0)
        return {
            "unit": self.unit,
            "of": self.of,
            "missing": self.missing,
            "first": self._text(first),
            "last": self._text(last),
            "ranges": gaps[-SHOWN_RANGES:],
            "more_ranges": max(len(gaps) - SHOWN_RANGES, 0),
            "lost": self.lost,
            "seen": ",".join(map(self._range_text, self.ranges)),
        }

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> SeenRanges:
        """Return what `stats` recorded.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            seen = cls(stats["unit"], stats["of"], lost=stats["lost"])
            return replace(seen, ranges=tuple(map(seen._range_of, stats["seen"].split(","))))
        except (KeyError, ValueError) as error:
            raise StateCorruptError(
                f"what was seen of a sequence, or of days, can't be read ({error}). Nothing was read or changed. "
                "Restore the table from a backup, or read with gaps=False for a run, which records it anew."
            ) from error

    def _text(self, number: int) -> str:
        return date.fromordinal(number).isoformat() if self.unit == "day" else str(number)

    def _number(self, text: str) -> int:
        return date.fromisoformat(text).toordinal() if self.unit == "day" else int(text)

    def _range_text(self, one: Range) -> str:
        first, last = one
        return self._text(first) if first == last else f"{self._text(first)}{TO}{self._text(last)}"

    def _range_of(self, text: str) -> Range:
        first, _, last = text.partition(TO)
        return self._number(first), self._number(last or first)


def _joined(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> list[Range]:
    """Return ranges ascending, those that touch or overlap as one."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.concatenate([[True], starts[1:] > reach[:-1] + 1]))
    last = np.concatenate([first[1:], [len(starts)]]) - 1
    return list(zip(starts[first].tolist(), reach[last].tolist(), strict=True))


def _between(ranges: Sequence[Range]) -> list[tuple[int, int, int]]:
    """Return what lies between the ranges: first, last, how many."""
    return [(before[1] + 1, after[0] - 1, after[0] - before[1] - 1) for before, after in pairwise(ranges)]


def days(dates: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return ISO dates as the numbers that `SeenRanges` keeps."""
    return np.array([date.fromisoformat(text).toordinal() for text in dates], np.int64)
