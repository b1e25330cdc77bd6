"""The interface of a planner to a database: whatever runs a query for it, a driver of Python or Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager


class Queries(Protocol):
    """Runs queries in a database, each by itself: what was committed before it, it sees."""

    @property
    def holds_session(self) -> bool:
        """Whether all queries run in one session, so that a transaction may stay open from one to the next."""
        ...

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """Return the rows of a query, whose values are all written out in it.

        Raises:
            DatabaseError: the database is out of reach, or refuses it.
        """
        ...


if TYPE_CHECKING:
    Connect = Callable[[], AbstractContextManager[Queries]]


def texts(row: Sequence[Any]) -> tuple[str, ...]:
    """Return the values of a row, each of them text."""
    return tuple(map(str, row))
