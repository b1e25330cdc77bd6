"""Amounts: how much a plan holds, in the unit of its kind of source. An unknown amount is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FILES = "files"
ROWS = "rows"
UNIT, COUNT = "unit", "count"  # among the stats of a plan whose unit is not files
_PLURALS = frozenset({FILES, ROWS, "versions", "snapshots"})


@dataclass(frozen=True, slots=True)
class Amount:
    """So many of a unit ("files", "keys", "records"), with bytes and rows where these are known; None: not known."""

    unit: str
    count: int | None
    bytes: int | None = None
    rows: int | None = None

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Amount:
        """Read it from the stats that were stored with a plan, or measured by its run; without a unit it is of files.

        Example:
            >>> Amount.of_stats({"files": 3, "bytes": 120})
            Amount(unit='files', count=3, bytes=120, rows=None)
            >>> Amount.of_stats({"unit": "keys", "count": 2})
            Amount(unit='keys', count=2, bytes=None, rows=None)
        """
        unit = stats.get(UNIT, FILES)
        return cls(unit, stats.get(FILES if unit == FILES else COUNT), stats.get("bytes"), stats.get("rows"))

    def stats(self) -> dict[str, Any]:
        """Return it as it stands among the stats of a plan; `of_stats` reads it. What is not known is left out.

        Example:
            >>> Amount("keys", 2).stats()
            {'unit': 'keys', 'count': 2}
        """
        unit = {FILES: self.count} if self.unit == FILES else {UNIT: self.unit, COUNT: self.count}
        return {name: value for name, value in {**unit, "bytes": self.bytes}.items() if value is not None}

    def in_words(self) -> str:
        """Say how much it is.

        Example:
            >>> Amount("keys", 2).in_words(), Amount("keys", None).in_words()
            ('2 keys', 'not known how many keys')
            >>> Amount("rows", 1).in_words(), Amount("rows", 2000).in_words()
            ('1 row', '2,000 rows')
        """
        if self.count is None:
            return f"not known how many {self.unit}"
        # A unit of a user's own need not be a plural with an s.
        unit = self.unit[:-1] if self.count == 1 and self.unit in _PLURALS else self.unit
        return f"{self.count:,} {unit}"


def in_other_units(figures: Iterable[Mapping[str, Any]]) -> dict[str, int | None]:
    """Return by unit how much contexts hold that are not counted in files; None where one of them does not know it.

    Example:
        >>> in_other_units([{"files": 3}, {"unit": "keys", "count": 2}, {"unit": "keys", "count": 1}])
        {'keys': 3}
    """
    sums: dict[str, int | None] = {}
    for amount in map(Amount.of_stats, figures):
        if amount.unit != FILES:
            before = sums.get(amount.unit, 0)
            sums[amount.unit] = None if before is None or amount.count is None else before + amount.count
    return sums


def is_as_much(read: object, amount: Amount) -> bool:
    """Whether something is an amount that equals another one, as far as both are known.

    Example:
        >>> is_as_much(Amount("keys", 2, rows=2), Amount("keys", 2)), is_as_much(Amount("keys", 2), Amount("files", 2))
        (True, False)
    """
    if not isinstance(read, Amount) or read.unit != amount.unit:
        return False
    pairs = ((read.count, amount.count), (read.bytes, amount.bytes), (read.rows, amount.rows))
    return all(one == other for one, other in pairs if None not in (one, other))
