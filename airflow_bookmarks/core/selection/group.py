"""Groups: files that are read together, because their output is replaced together.

A group is a partition of the source, or what a regular expression takes from the path. Both depend only on the path
below the root, so a file never changes its group, and worker and driver agree on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import OptionError, UnmatchedError
from airflow_bookmarks.core.selection.expression import Expression, ExpressionError
from airflow_bookmarks.core.selection.partition import partition_values

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import Listing

BY_PARTITION = "partition"

_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{0,30})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class GroupRule:
    """By what files belong together: `text` is "partition", for the values of all partition columns; or a regular
    expression with one named group, searched in the path below the root.
    """

    text: str
    _expression: Expression | None = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> GroupRule:
        r"""Return the rule that `text` means.

        Raises:
            OptionError: it is neither "partition" nor a regular expression with exactly one named group, or that may
                take too long to match.

        Example:
            >>> GroupRule.of(r"(?P<month>\d{4}-\d\d)").key_of("/lake/raw/2013-01-31.csv", "/lake/raw")
            '2013-01'
        """
        if text == BY_PARTITION:
            return cls(text, None)
        try:
            return cls(text, Expression.of(text))
        except ExpressionError as error:
            raise _refused(text, str(error)) from error

    @property
    def is_by_partition(self) -> bool:
        """Whether the partition columns tell the group."""
        return self._expression is None

    def key_of(self, path: str, root: str) -> Hashable:
        """Return what tells the group of a file from others; None where the file belongs to none."""
        if self._expression is None:
            return partition_key(partition_values(path, root).items()) or None
        value = self._expression.value_of(path[len(root) :].lstrip("/") or path.rpartition("/")[2])
        return None if value is None else same_value(value)

    def numbers(self, listing: Listing, root_of: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return for each file the number of its group; equal numbers are one group.

        Args:
            root_of: the root below which each file was found.

        Raises:
            OptionError: a file lies in no partition. UnmatchedError: the expression does not match a path.
        """
        known: dict[Hashable, int] = {}
        numbers = np.empty(len(listing), np.int64)
        if self.is_by_partition:
            folders = listing.in_folders()
            of_folder = np.full(len(folders.names), -1, np.int64)
            for row in folders.first_files():  # all files of a folder have the same partition
                of_folder[folders.numbers[row]] = self._number(known, listing.paths[row], root_of[row])
            numbers[:] = of_folder[folders.numbers]
        else:
            numbers[:] = [self._number(known, *both) for both in zip(listing.paths, root_of, strict=True)]
        return numbers

    def _number(self, known: dict[Hashable, int], path: str, root: str) -> int:
        key = self.key_of(path, root)
        if key is None and self.is_by_partition:
            raise OptionError(
                f"reread='partition', and {path!r} lies in no partition (name=value) below {root!r}. Nothing was read "
                "or changed. Load a folder with partitions, or give reread= a regular expression with one named "
                "group that takes the group from the path."
            )
        if key is None:
            raise UnmatchedError(
                f"{path!r} does not match reread={self.text!r}, so nobody can tell what it belongs to. Nothing was "
                "read or changed. Make the expression fit it, or leave it out by exclusions=[...]."
            )
        return known.setdefault(key, len(known))


def partition_key(values: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return what partitions have in common that one folder of a target may hold: names in any case, values as numbers.

    Example:
        >>> partition_key([("Month", "01"), ("year", "2013")]) == partition_key([("year", "2013"), ("month", "1")])
        True
    """
    return tuple(sorted((name.lower(), same_value(value)) for name, value in values))


def same_value(value: str) -> str:
    """Return a value in the one spelling that all numbers which are equal have: more in a group is never too much.

    Example:
        >>> same_value("01"), same_value("1.0"), same_value("2013-01")
        ('1', '1', '2013-01')
    """
    if not _NUMBER.fullmatch(value):
        return value
    number = Decimal(value)
    return str(int(number)) if number == int(number) else str(number.normalize())


def _refused(text: object, why: str) -> OptionError:
    if callable(text):
        why = "a function can't be stored with the plan, and the worker could not tell what is pending"
    return OptionError(
        f"reread={text!r}: expected 'partition', or a regular expression with one named group, such as "
        rf"r'(?P<month>\d{{4}}-\d\d)'; {why}. Nothing was read or changed."
    )
