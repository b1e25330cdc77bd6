"""Find the end of a window behind which no row can come any more: after whom to wait, and where to stop otherwise.

A row may be committed after one with a higher key was read: its transaction was open when the end was taken. So the end
is taken first, then all transactions that are open are waited for. Those that begin later get later keys: a sequence
and a clock go forward.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.key import moment_of
from airflow_bookmarks.core.errors import OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries

log = logging.getLogger(__name__)

_POLL = timedelta(milliseconds=200)
_SAY_AFTER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction, or a statement, that may still write. `since` None: it is not known when it began."""

    id: str
    since: datetime | None
    who: str

    def __str__(self) -> str:
        return f"{self.who} (since {'not known when' if self.since is None else self.since.isoformat(' ', 'seconds')})"


def now(queries: Queries, dialect: Dialect) -> datetime:
    """Return the present time by the clock of the database.

    Raises:
        SourceError: it does not tell.
    """
    asked = dialect.now_query()
    moment = None if asked is None else moment_of(str(queries.rows(asked)[0][0]))
    if moment is None:
        raise SourceError(f"the clock of this {dialect.name} can't be read. Nothing was read or changed.")
    return moment


def open_transactions(queries: Queries, dialect: Dialect) -> tuple[OpenTransaction, ...]:
    """Return who may still write.

    Raises:
        OptionError: this kind of database does not tell.
    """
    asked = dialect.transactions_query()
    if asked is None:
        raise OptionError(
            f"settle='auto': {dialect.name} does not tell which transactions are open. Nothing was read or changed. "
            "Give settle=timedelta(...): how long a row may take from its key to its commit."
        )
    return tuple(
        OpenTransaction(str(each), None if since is None else moment_of(str(since)), str(who))
        for each, since, who in queries.rows(asked)
    )


def open_after_now(queries: Queries, dialect: Dialect, connect: Connect) -> tuple[OpenTransaction, ...]:
    """Return who may still write, by a list that is made after this call began.

    Raises:
        OptionError: this kind of database does not tell.
    """
    witness = dialect.witness
    if witness is None:
        return open_transactions(queries, dialect)
    with connect() as other:
        other.rows(witness.begin)
        ((name,),) = other.rows(witness.who)
        while True:
            found = open_transactions(queries, dialect)
            others = tuple(each for each in found if each.who != str(name))
            if len(others) < len(found):
                return others
            time.sleep(_POLL.total_seconds())  # the list is made anew when nobody has asked for it a while


def wait_until_ended(
    label: str,
    queries: Queries,
    dialect: Dialect,
    connect: Connect,
    limit: timedelta,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[OpenTransaction, ...]:
    """Wait until all transactions that are open now have ended; return those that have not after `limit`.

    The log says who is waited for.
    """
    left = open_after_now(queries, dialect, connect)
    began, is_said = clock(), False
    while left and clock() - began < limit.total_seconds():
        if not is_said and clock() - began > _SAY_AFTER.total_seconds():
            is_said = True
            log.info("%s: waiting for open transactions of the database: %s.", label, _named(left))
        pause(_POLL.total_seconds())
        still = {each.id for each in open_transactions(queries, dialect)}
        left = tuple(each for each in left if each.id in still)
    if left:
        log.warning(
            "%s: %s may still write rows of this window, after %s s. The window ends before those rows; what is behind "
            "is the next run's.",
            label,
            _named(left),
            int(limit.total_seconds()),
        )
    return left


_NAMED = 5


def _named(transactions: Iterable[OpenTransaction]) -> str:
    each = list(map(str, transactions))
    more = f" and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    return f"{'; '.join(each[:_NAMED])}{more}"


def oldest(transactions: Iterable[OpenTransaction]) -> datetime | None:
    """Return when the oldest of them began; None where it is not known of one of them."""
    times = [each.since for each in transactions]
    known = [each for each in times if each is not None]
    return min(known) if len(known) == len(times) else None
