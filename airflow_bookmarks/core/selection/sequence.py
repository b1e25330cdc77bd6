"""Sequences: the order in the names of files, and how far a context has read along it.

A rule takes a value from the path of a file below its root. Values of only digits are numbers, and come in numerical
order, before any other; all others are text, and come in the order of text:

    2 < 9 < 10 < 0011 < "-3" < "10a" < "9a"

Of a sequence by path all values are text, those of digits alone too.
This order never depends on what else is there, so a value that stood above another always does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.order import PATH, order_like
from airflow_bookmarks.core.selection.expression import Expression, ExpressionError
from airflow_bookmarks.core.selection.partition import placed, roots_above

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.selection.listing import Listing

BY_PATH = "path"  # the rule that takes the whole path below the root, as text

Rank: TypeAlias = tuple[int, int, str]  # (0, number, "") or (1, 0, text)

_MOST_DIGITS = 18  # more don't fit 64 bits: they are text
_NUMBER = re.compile(r"0*[0-9]{1,18}", re.ASCII)
_MARK_LENGTH = 256  # characters of a watermark: the head of a job has 4 KB for everything


@dataclass(frozen=True, slots=True)
class SequenceRule:
    """How the place of a file in a sequence follows from its path: `text` is a regular expression with one named group,
    searched in the path below the root; or "path", for that path itself.
    """

    text: str
    _expression: Expression | None = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> SequenceRule:
        r"""Return the rule that `text` means.

        Raises:
            OptionError: it is neither "path" nor a regular expression with exactly one named group, or that may take
                too long to match.

        Example:
            >>> SequenceRule.of(r"part-(?P<seq>\d+)").value_of("/lake/raw/part-0042.csv", ["/lake/raw"])
            '0042'
        """
        if text == BY_PATH:
            return cls(text, None)
        try:
            return cls(text, Expression.of(text))
        except ExpressionError as error:
            raise _refused(text, str(error)) from error

    @property
    def is_by_path(self) -> bool:
        """Whether the path itself is the order."""
        return self._expression is None

    def value_of(self, path: str, roots: Sequence[str]) -> str | None:
        """Return the value of the file `path`; None if its name does not match."""
        return self._value(_below(path, placed(roots)))

    def values_of(self, paths: Sequence[str], roots: Sequence[str]) -> list[str | None]:
        """Return the value of each path; None if its name does not match."""
        value, place_of = self._value, placed(roots)
        if len(roots) != 1:
            return [value(_below(path, place_of)) for path in paths]
        folder = roots[0].rstrip("/") + "/"
        start = len(folder)  # of nearly all sources, and a million files, one root is all there is
        return [value(path[start:] if path.startswith(folder) else _below(path, place_of)) for path in paths]

    def _value(self, below: str) -> str | None:
        return below if self._expression is None else self._expression.value_of(below)

    def numbers_of(self, paths: Sequence[str], roots: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers among the values of `paths`; of a sequence by path there are none."""
        return np.empty(0, np.int64) if self.is_by_path else numbers_among(self.values_of(paths, roots))


def _refused(text: object, why: str) -> OptionError:
    return OptionError(
        f"sequence={text!r}: expected 'path', or a regular expression with one named group, such as "
        rf"r'part-(?P<seq>\d+)'; {why}. Nothing was read or changed."
    )


def _below(path: str, place_of: Mapping[str, int]) -> str:
    """Return the path of a file below the first root that it lies under; the name, where the root is the file."""
    for root in roots_above(path, place_of):
        if root != path:
            return path[len(root) :].lstrip("/")
    return path.rpartition("/")[2]


# ---- the order


def number_of(value: str) -> int | None:
    """Return a value as a number; None if it is text.

    Example:
        >>> number_of("0042"), number_of("4a")
        (42, None)
    """
    if value.isdecimal() and value.isascii() and len(value) <= _MOST_DIGITS:
        return int(value)  # nearly all are such, and there may be a million
    return int(value.lstrip("0") or "0") if _NUMBER.fullmatch(value) else None


def rank_of(value: str) -> Rank:
    """Return what a value of a sequence that is not by path is ordered by.

    Example:
        >>> sorted(["10", "9", "9a", "10a"], key=rank_of)
        ['9', '10', '10a', '9a']
    """
    number = number_of(value)
    return (1, 0, value) if number is None else (0, number, "")


def numbers_among(values: Iterable[str | None]) -> npt.NDArray[np.int64]:
    """Return the values that are numbers."""
    numbers = (None if value is None else number_of(value) for value in values)
    return np.fromiter((number for number in numbers if number is not None), np.int64)


def dense_ranks(values: Sequence[str | None], *, is_text: bool = False) -> npt.NDArray[np.int64]:
    """Return for each value its place among them all, equal ones the same; what is None comes last.

    Args:
        is_text: whether digits are text as well, as in paths.
    """
    numbers = [None if value is None or is_text else number_of(value) for value in values]
    is_number = np.array([number is not None for number in numbers], np.bool_)
    sorted_numbers, places = np.unique([n for n in numbers if n is not None], return_inverse=True)
    texts = sorted({v for v, n in zip(values, numbers, strict=True) if n is None and v is not None})
    place = {text: len(sorted_numbers) + at for at, text in enumerate(texts)}
    ranks = np.full(len(values), len(sorted_numbers) + len(texts), np.int64)
    ranks[is_number] = places
    for row in np.flatnonzero(~is_number).tolist() if texts else ():
        if (value := values[row]) is not None:
            ranks[row] = place[value]
    return ranks


# ---- the watermark


@dataclass(frozen=True, slots=True)
class SequenceStart:
    """By which rule a plan goes, and the watermark that it starts from: None, where nothing with a value was read."""

    rule: str
    before: str | None = None

    def after(self, roots: Sequence[str], *read: Listing) -> str | None:
        """Return the watermark once the files of `read` are read: the highest, which never goes down."""
        rule = SequenceRule.of(self.rule)
        values = (value for files in read for value in rule.values_of(files.paths, roots))
        return highest([self.before, *values], is_text=rule.is_by_path)


def order_by(rule: str, watermark: str | None) -> Order | None:
    """Return how the watermark of a sequence compares; None where it has none yet.

    Numbers compare as numbers, and dates as dates: whoever waits for one has to write one.
    """
    if rule == BY_PATH:
        return PATH
    return None if watermark is None else order_like(watermark)


def highest(values: Iterable[str | None], *, is_text: bool = False) -> str | None:
    """Return the highest value as a watermark: numbers without leading zeros, text of up to 256 characters.

    Args:
        is_text: whether digits are text as well, as in paths.

    Example:
        >>> highest(["0009", None, "0010"]), highest(["0009", None, "0010"], is_text=True)
        ('10', '0010')
    """
    numbers: list[int] = []
    texts: list[str] = []
    for value in values:
        number = None if value is None or is_text else number_of(value)
        if number is not None:
            numbers.append(number)
        elif value is not None:
            texts.append(value)
    if texts:
        return max(texts)[:_MARK_LENGTH]
    return str(max(numbers)) if numbers else None
