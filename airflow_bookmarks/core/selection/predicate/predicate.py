"""A predicate: its text, its columns, and what it comes to for the values of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.selection.predicate.parser import PredicateParser

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.predicate.condition import Condition
    from airflow_bookmarks.core.selection.predicate.value import Cells, Truth


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition on partition columns.

    Example:
        >>> late = Predicate.parse("year = 2013 and month >= 9")
        >>> late.outcome({"year": values_of("year", "2012", "int")}).name
        'FALSE'
        >>> late.outcome({"year": values_of("year", "2013", "int")}).name
        'ANY'
        >>> late.columns
        ('year', 'month')
    """

    text: str
    columns: tuple[str, ...]
    _node: Condition

    @classmethod
    def parse(cls, text: str) -> Predicate:
        """Read a predicate.

        Raises:
            OptionError: it is none, or more than this grammar knows.
        """
        parser = PredicateParser(text)
        node = parser.whole()
        return cls(text, tuple(dict.fromkeys(parser.columns)), node)

    def outcome(self, cells: Cells) -> Truth:
        """Return all values that the predicate may have.

        Raises:
            OptionError: a value can't be compared with what the predicate compares it with.
        """
        return self._node.outcome(cells)
