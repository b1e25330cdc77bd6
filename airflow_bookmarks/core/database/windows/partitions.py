"""Split a window into parts that are read side by side: conditions that no row meets twice, and each row meets once."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.database.dialect import Dialect

MOST_PARTS = 10_000
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOptions:
    """Into how many parts a window is split, and by what; one part where nothing is said.

    Args:
        partitions: how many parts.
        column: a column of integers, whose range is split evenly.
        hash_field: a column of any type.
        hash_expression: an expression of the database.

    Raises:
        OptionError: half of it is given, or more than one way.
    """

    partitions: int = 1
    column: str | None = None
    hash_field: str | None = None
    hash_expression: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.partitions, bool) or not isinstance(self.partitions, int):
            raise OptionError(f"partitions={self.partitions!r}: expected a number. Nothing was read or changed.")
        if not 1 <= self.partitions <= MOST_PARTS:
            raise OptionError(
                f"partitions={self.partitions}: expected a number from 1 to {MOST_PARTS:,}. Nothing was read or "
                "changed."
            )
        ways = {
            "partition_column": self.column,
            "hash_field": self.hash_field,
            "hash_expression": self.hash_expression,
        }
        given = [name for name, value in ways.items() if value is not None]
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)}: give one of them. Nothing was read or changed.")
        if given and self.partitions == 1:
            raise OptionError(f"{given[0]} without partitions=<more than 1>. Nothing was read or changed.")

    def splits_beside(self, keys: Collection[str]) -> str | None:
        """Return what rows are split by, if that can change while their keys stay; None: it can't.

        An expression whose words are all names of keys takes nothing else.

        Example:
            >>> PartitionOptions(partitions=8, hash_field="status").splits_beside(["id"])
            'status'
            >>> PartitionOptions(partitions=8, hash_expression="id % 5").splits_beside(["id"]) is None
            True
        """
        if self.hash_expression is not None:
            names = {key.lower() for key in keys}
            is_of_keys = all(word.lower() in names for word in _WORD.findall(self.hash_expression))
            return None if is_of_keys else self.hash_expression
        by = self.column or self.hash_field
        return None if by in keys else by


def hashed(dialect: Dialect, expression: str, count: int) -> list[str]:
    """Return a condition for each of `count` parts of any expression; NULL is in the first.

    Example:
        >>> from airflow_bookmarks.core.database.dialects.mysql import MySQL
        >>> hashed(MySQL(), "`id`", 2)[1]
        '(CRC32(CAST(`id` AS CHAR)) % 2) = 1'
    """
    part = dialect.part(expression, count)
    return [f"({part} = 0 OR {part} IS NULL)", *(f"{part} = {number}" for number in range(1, count))]


def ranges(column: str, low: int, high: int, count: int, *, is_nullable: bool) -> list[str]:
    """Return a condition for each part of the range of an integer column; without ends, so that no row is left out.

    Example:
        >>> ranges("id", 1, 100, 2, is_nullable=False)
        ['id < 51', 'id >= 51']
    """
    width, extra = divmod(high - low + 1, count)
    steps = [low + number * width + min(number, extra) for number in range(1, count)]
    steps = sorted({step for step in steps if low < step <= high})
    if not steps:
        return ["1 = 1"]
    between = [f"{column} >= {one} AND {column} < {other}" for one, other in itertools.pairwise(steps)]
    first = f"({column} < {steps[0]} OR {column} IS NULL)" if is_nullable else f"{column} < {steps[0]}"
    return [first, *between, f"{column} >= {steps[-1]}"]
