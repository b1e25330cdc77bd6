"""Find the end of a window behind which no row can come any more: after whom to wait, and where to stop otherwise.

A row may be committed after one with a higher key was read: its transaction was open when the end was taken. So the end
is taken first, then all transactions that are open are waited for. Those that begin later get later keys: a sequence
and a clock go forward.

No waiting helps where a key is given out before the transaction that writes it, or by another clock: by a sequence with
CACHE above 1, an application that takes numbers ahead (in MariaDB also NEXTVAL in a statement of its own), a clock that
is put back, or the clock of a client.
"""

from __future__ import annotations

import itertools
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.key import moment_of
from airflow_bookmarks.core.database.open_transaction import OpenTransaction, still_open
from airflow_bookmarks.core.errors import DatabaseError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from airflow_bookmarks.core.database.dialect import Dialect, Witness
    from airflow_bookmarks.core.database.key import KeyValues
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries

log = logging.getLogger(__name__)

_POLL_S = 0.2
_LONGEST_POLL_S = 2.0
_ASK_S = 0.11  # MariaDB and MySQL make the list anew when nobody has asked for a tenth of a second
_LONGEST_ASK_S = 5.0  # readers that ask each second for one list could keep it from being made anew
_SAY_AFTER = timedelta(seconds=5)
_MOST_ASKED = 40  # times, for a list that is made anew: some three minutes


def now(queries: Queries, dialect: Dialect) -> datetime:
    """Return the present time by the clock of the database.

    Raises:
        SourceError: it does not tell.
    """
    moment = moment_of(str(queries.rows(dialect.now_query())[0][0]))
    if moment is None:
        raise SourceError(f"the clock of this {dialect.name} can't be read. Nothing was read or changed.")
    return moment


def check_seen(label: str, queries: Queries, dialect: Dialect, parts: Sequence[str] | None) -> None:
    """Make sure that whoever writes into a table can be seen in the session of its reader.

    Raises:
        OptionError: this kind of database does not tell, or others write than those that it tells of.
    """
    asked = dialect.unseen_query(parts)
    why = [str(row[0]) for row in queries.rows(asked)] if asked is not None else []
    if not dialect.open_queries():
        why = [f"{dialect.name} does not tell which transactions are open"]
    elif dialect.witness is not None and not queries.holds_session:
        why = [
            f"{dialect.name} may give an old list of open transactions, and Spark, which asks it because no client of "
            "Python is installed, can't hold the transaction that would show it"
        ]
    if why:
        raise OptionError(
            f"{label}: settle='auto' would lose rows: {why[0]}. Nothing was read or changed. Or give "
            "settle=timedelta(...): how long a row may take from its key until it can be read here."
        )


@dataclass(slots=True)
class Watch:
    """Lists who may still write. No list was made before it was asked for.

    Args:
        session: for the transaction that shows it, where the dialect needs one.
    """

    label: str
    queries: Queries
    dialect: Dialect
    session: Queries | None
    pause: Callable[[float], None]
    is_begun: bool = False  # the transaction in `session`

    def open(self) -> tuple[OpenTransaction, ...]:
        """Return who may still write.

        Raises:
            SourceError: this user may not see it, or the database gives an old list only.
        """
        *earlier, last = self.dialect.open_queries()
        found = [each for asked in earlier for each in self._listed(asked)]
        witness = self.dialect.witness
        if self.session is None or witness is None:
            return (*found, *self._listed(last))
        return (*found, *self._fresh(last, self.session, witness))

    def _fresh(self, asked: str, session: Queries, witness: Witness) -> tuple[OpenTransaction, ...]:
        """Return a list that shows what our own transaction has just done: begin, or end."""
        ((name,),) = session.rows(witness.owner)
        session.rows(witness.end if self.is_begun else witness.begin)
        self.is_begun = not self.is_begun
        for pause in _pauses(_MOST_ASKED, _ASK_S, _LONGEST_ASK_S):
            found = self._listed(asked)
            others = tuple(each for each in found if each.owner != str(name))
            if (len(others) < len(found)) is self.is_begun:
                return others
            self.pause(pause)
        raise SourceError(
            f"{self.label}: {self.dialect.name} does not renew its list of open transactions, which it keeps while "
            "anyone asks for it ten times a second. Nothing was read or changed. Let what watches it ask more rarely."
        )

    def close(self) -> None:
        """End the transaction of our own: a server may see that a connection is gone only after others have asked."""
        if self.session is not None and self.dialect.witness is not None and self.is_begun:
            self.session.rows(self.dialect.witness.end)
            self.is_begun = False

    def _listed(self, asked: str) -> tuple[OpenTransaction, ...]:
        try:
            rows = self.queries.rows(asked)
        except DatabaseError as error:
            if error.code != self.dialect.denied:
                raise
            raise SourceError(
                f"{self.label}: this user may not see which transactions are open, so rows could be lost ({error}). "
                f"Nothing was read or changed. Have an administrator run {self.dialect.grant}; or give "
                "settle=timedelta(...): how long a row may take from its key to its commit."
            ) from error
        return tuple(
            OpenTransaction(
                str(each),
                None if owner is None else str(owner),
                int(stage),
                None if since is None else moment_of(str(since)),
                str(who),
            )
            for each, owner, stage, since, who in rows
        )


def _pauses(count: int | None, first: float, longest: float) -> Iterator[float]:
    """Yield longer and longer pauses in seconds, without end if `count` is None."""
    pause = first
    for _ in itertools.count() if count is None else range(count):
        yield pause
        pause = min(pause * 1.5, longest)


@contextmanager
def watch(
    label: str, queries: Queries, dialect: Dialect, connect: Connect, pause: Callable[[float], None] = time.sleep
) -> Iterator[Watch]:
    """Open what lists who may still write."""
    if dialect.witness is None:
        yield Watch(label, queries, dialect, None, pause)
        return
    with connect() as session:
        watched = Watch(label, queries, dialect, session, pause)
        yield watched
        watched.close()


def wait_until_ended(
    watched: Watch, limit: timedelta, clock: Callable[[], float] = time.monotonic
) -> tuple[OpenTransaction, ...]:
    """Wait until all transactions that are open now have ended; return those that have not after `limit`.

    The log says who is waited for.
    """
    left = watched.open()
    began, is_said, pauses = clock(), False, _pauses(None, _POLL_S, _LONGEST_POLL_S)
    while left and clock() - began < limit.total_seconds():
        if not is_said and clock() - began > _SAY_AFTER.total_seconds():
            is_said = True
            log.info("%s: waiting for open transactions of the database: %s.", watched.label, _named(left))
        watched.pause(min(next(pauses), max(0.0, began + limit.total_seconds() - clock())))
        left = still_open(left, watched.open())
    if left:
        log.warning(
            "%s: %s may still write rows of this window, after %s s. The window ends before those rows; what is behind "
            "is the next run's.",
            watched.label,
            _named(left),
            int(limit.total_seconds()),
        )
    return left


@dataclass(frozen=True, slots=True)
class Settling:
    """What was waited for once, of a whole table: whoever asks later may go by it, because what is final stays so.

    Args:
        before: the time before which no row can be written any more, but by those who are `left`.
        last: the last keys that the table had before the wait; None: it had no row.
        left: who was still there when the limit was over.
    """

    before: datetime
    last: KeyValues | None
    left: tuple[OpenTransaction, ...]


class SharedSettlings:
    """The waiting of one task: its virtual shards read one table, and wait once for those who write into it."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Settling] = {}
        self._known: set[Hashable] = set()

    def is_first(self, key: Hashable) -> bool:
        """Whether this is the first time that it is asked for `key`: of what is said once for all shards."""
        is_first = key not in self._known
        self._known.add(key)
        return is_first

    def at(self, key: Hashable, settle: Callable[[], Settling]) -> Settling:
        """Return what was waited for under `key`; `settle` waits the first time."""
        if key not in self._kept:
            self._kept[key] = settle()
        return self._kept[key]


_NAMED = 5


def _named(transactions: Iterable[OpenTransaction]) -> str:
    each = list(map(str, transactions))
    more = f" and {len(each) - _NAMED} more" if len(each) > _NAMED else ""
    return f"{'; '.join(each[:_NAMED])}{more}"
