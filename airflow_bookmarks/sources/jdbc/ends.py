"""The ends of windows: the last row behind which none can come, and the last one within a bound."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_bookmarks.core.database.key import KeyType, moment_of
from airflow_bookmarks.core.database.open_transaction import earliest
from airflow_bookmarks.core.database.windows.cut import cut_of
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys, after, has_keys, joined, selected
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.sources.jdbc.position import EarlierEnd, TablePosition, newest_seen
from airflow_bookmarks.sources.jdbc.queries import texts
from airflow_bookmarks.sources.jdbc.settling import Settling, check_seen, now, wait_until_ended, watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.core.database.key import KeyColumn
    from airflow_bookmarks.sources.jdbc.lookback import Behind
    from airflow_bookmarks.sources.jdbc.options import TableOptions
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries
    from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
    from airflow_bookmarks.sources.jdbc.settling import SharedSettlings

MOST_COUNTED = 100_000  # rows; a count of more would take longer than to read them
MOST_TIES = 10_000  # rows with one and the same keys, each of which the position names
_SEEN_TIES = 100  # rows that an earlier end names; a position keeps several of those
_INSTANT = timedelta(microseconds=1)
_BETWEEN = timedelta(seconds=1)  # the most that a server takes from a statement's time to its place among the open ones


@dataclass(frozen=True, slots=True)
class TableEnds:
    """Finds where windows of a relation end, in one session of its database.

    Args:
        label: what messages begin with.
        connect: opens another session.
        recipe: how the source is made again without the script.
        settlings: what the virtual shards of a task have waited for once.
        part: the condition for the rows that are read; None: all are.
    """

    queries: Queries
    dialect: Dialect
    recipe: Recipe
    label: str
    connect: Connect
    pause: Callable[[float], None] = time.sleep
    settlings: SharedSettlings | None = None
    part: str | None = None

    @property
    def relation(self) -> Relation:
        """What is read."""
        return self.recipe.relation

    @property
    def options(self) -> TableOptions:
        """How it is read."""
        return self.recipe.options

    @property
    def _whole(self) -> str:
        return self.relation.sql(self.dialect)

    @property
    def _source(self) -> str:
        # A database takes such a query apart, and uses the index of the keys.
        return self._whole if self.part is None else f"(SELECT * FROM {self._whole} WHERE {self.part}) source_part"

    # ---- where nothing can come any more

    def _settled_end(self, start: TablePosition) -> tuple[Mark | None, EarlierEnd | None]:
        """Return the last new row behind which none can come, and the last one to be seen now; None where none is new.

        The end is taken first, and then who may still write before it is waited for.
        """
        table, options = start.table, self.options
        is_time = table.keys[0].type.is_time
        at = now(self.queries, self.dialect)
        if isinstance(options.settle, timedelta):
            if is_time:
                return self._last(start, at - options.settle), None
            seen = self._seen(self._last(start, None))
            moment = now(self.queries, self.dialect) if seen is None else seen.moment
            return self._earlier_end(start, moment - options.settle + _INSTANT, seen), seen
        check_seen(self.label, self.queries, self.dialect, self.relation.parts)
        if self.settlings is not None:
            return self._shared_end(start, at, self.settlings)
        last = self._last(start, at if is_time else None)
        seen = None if is_time else self._seen(last)
        if last is None:
            return None, None
        with watch(self.label, self.queries, self.dialect, self.connect, self.pause) as watched:
            if is_time:
                self._let_begin(last.values[0], table.keys[0], at)
            left = wait_until_ended(watched, options.settle_for)
        if not left:
            return self._as_of_now(last, table), seen
        began = earliest(left, self.dialect.head_start if is_time else _BETWEEN)
        if began is None:
            return None, seen
        return (self._last(start, began) if is_time else self._earlier_end(start, began)), seen

    def _shared_end(
        self, start: TablePosition, at: datetime, settlings: SharedSettlings
    ) -> tuple[Mark | None, EarlierEnd | None]:
        """Return the same for one of several virtual shards, which wait once for all of them.

        What could not come any more behind the wait can't come later either. So each shard ends where the whole table
        ended before it.
        """
        table = start.table
        is_time = table.keys[0].type.is_time
        last = self._last(start, at if is_time else None)
        seen = None if is_time else self._seen(last)
        if last is None:
            return None, None
        key = (self.recipe.address, self.relation, table, self.options)
        settled = settlings.at(key, lambda: replace(self, part=None)._settled_once(table))
        before: datetime | None = settled.before
        if settled.left:
            began = earliest(settled.left, self.dialect.head_start if is_time else _BETWEEN)
            before = None if began is None else min(began, settled.before)
        if before is None or settled.last is None:
            return None, seen
        if is_time:
            return self._last(start, before), None
        if settled.left:
            return self._earlier_end(start, before), seen
        return self._last(start, None, Mark(settled.last)), seen

    def _settled_once(self, table: TableKeys) -> Settling:
        """Wait until nobody is left who may write behind the present end of the table."""
        at, is_time = now(self.queries, self.dialect), table.keys[0].type.is_time
        last = self._one(
            table, [*self._has_keys(table), *([self._until_cut(table, at)] if is_time else [])], is_backwards=True
        )
        with watch(self.label, self.queries, self.dialect, self.connect, self.pause) as watched:
            has_paused = is_time and last is not None and self._let_begin(last[0], table.keys[0], at)
            left = wait_until_ended(watched, self.options.settle_for)
        return Settling(at if has_paused else at - _BETWEEN, last, left)

    def _let_begin(self, last: str, key: KeyColumn, at: datetime) -> bool:
        """Wait a moment if the last row is young: one with an earlier time may not be in the list of who is open yet.

        A database reads its clock for a statement first, and then makes a transaction of it.
        """
        moment = moment_of(last)
        if moment is not None and key.type is KeyType.LOCAL_TIME:
            moment = moment.replace(tzinfo=ZoneInfo(self.options.zone or "UTC"))
        if key.type is KeyType.DATE or moment is None or at - moment < _BETWEEN:
            self.pause(_BETWEEN.total_seconds())
            return True
        return False

    def _as_of_now(self, mark: Mark, table: TableKeys) -> Mark:
        """Return a mark with the rows that have joined it while others were waited for."""
        return joined(mark, Mark(mark.values, self._ties(mark.values, table)))

    def _last(self, start: TablePosition, before: datetime | None, until: Mark | None = None) -> Mark | None:
        """Return the last row behind the position, before a time and up to a mark; None where there is none.

        Where rows share the keys of `until`, those that it names count as read; if it names none, all that are there.
        """
        table = start.table
        conditions = [*self._new(start.mark, table), *self._has_keys(table)]
        if until is not None:
            conditions.append(KeyWindow(None, until).condition(self.dialect, table))
        if before is not None:
            conditions.append(self._until_cut(table, before))
        row = self._one(table, conditions, is_backwards=True)
        if row is None:
            return None
        if until is not None and until.ties and until.values == row:
            return joined(start.mark, until)
        return joined(start.mark, Mark(row, self._ties(row, table)))

    def _until_cut(self, table: TableKeys, moment: datetime) -> str:
        key = table.keys[0]
        return self.dialect.beyond((key,), (cut_of(moment, key, self.options.zone),), "<")

    def _new(self, mark: Mark | None, table: TableKeys) -> list[str]:
        return [] if mark is None else [after(mark, self.dialect, table)]

    def _has_keys(self, table: TableKeys) -> list[str]:
        ending = self.dialect.ending(table.keys[0])
        return [*has_keys(self.dialect, table), *([] if ending is None else [ending])]

    def _one(
        self, table: TableKeys, conditions: Sequence[str], *, is_backwards: bool = False, skip: int = 0
    ) -> tuple[str, ...] | None:
        """Return the keys of the first row that meets all conditions, or of the last one."""
        query = self.dialect.first(
            table.select(self.dialect),
            self._source,
            " AND ".join(conditions) or "1 = 1",
            table.order(self.dialect, is_backwards=is_backwards),
            1,
            skip,
        )
        rows = self.queries.rows(query)
        return texts(rows[0]) if rows else None

    def _ties(self, values: tuple[str, ...], table: TableKeys) -> tuple[tuple[str, ...], ...]:
        """Return which rows have these keys, where several may.

        Raises:
            SourceError: there are several, and nothing tells them apart, or too many.
        """
        where = self.dialect.equal(table.keys, values)
        if not table.ties:
            if table.is_unique or self._count(where, 1) <= 1:
                return ()
            raise SourceError(
                f"{self.label}: several rows have the keys {', '.join(values)}, and there is no primary key to tell "
                "them apart: one that is committed later could not be told from those that were read. Nothing was read "
                "or changed. Add a column to keys=[...] that makes them unique."
            )
        select = selected(self.dialect, table.ties)
        rows = self.queries.rows(self.dialect.some(select, self._source, where, MOST_TIES + 1))
        if len(rows) > MOST_TIES:
            raise SourceError(
                f"{self.label}: more than {MOST_TIES:,} rows have the keys {', '.join(values)}, too many to name in "
                "the bookmark. Nothing was read or changed. Add a unique column to keys=[...], such as the primary key."
            )
        return tuple(sorted(map(texts, rows)))

    def _seen(self, last: Mark | None) -> EarlierEnd | None:
        """Return an end with a time at which it was there to be seen: whoever begins later gets a later key."""
        if last is None:
            return None
        mark = last if len(last.ties) <= _SEEN_TIES else Mark(last.values)
        return EarlierEnd.of(now(self.queries, self.dialect), mark)

    def _earlier_end(self, start: TablePosition, cut: datetime, seen: EarlierEnd | None = None) -> Mark | None:
        """Return the last new row up to the newest end that was seen before a time; None where none is new.

        A run that ended elsewhere may have read beyond that end. So the database is asked, whose order it is.
        """
        until = newest_seen(start.seen if seen is None else (*start.seen, seen), cut)
        return None if until is None else self._last(start, None, until)

    def _ends_beyond(self, mark: Mark | None, seen: Sequence[EarlierEnd], table: TableKeys) -> Sequence[EarlierEnd]:
        """Return the ends up to which rows lie beyond a mark: none lies before an earlier one."""

        def is_beyond(end: EarlierEnd) -> bool:
            inside = KeyWindow(mark, end.mark).condition(self.dialect, table)
            return end.mark != mark and self._one(table, [inside, *self._has_keys(table)]) is not None

        return seen if mark is None else seen[bisect_left(seen, True, key=is_beyond) :]

    # ---- within a bound

    def _bounded(self, start: TablePosition, end: Mark | None, behind: Behind | None) -> tuple[Mark | None, int]:
        """Return where the window ends within the bound, and how many rows that leaves, as far as they are counted.

        Rows that came late count as rows of the run.
        """
        bound, whole = self.options.bound, end
        late, left = (0, 0) if behind is None else (len(behind.late), len(behind.left))
        if end is None or not bound.is_given:
            return end, left
        if bound.max_rows is not None and late >= bound.max_rows:
            return None, left + self._count(KeyWindow(start.mark, end).condition(self.dialect, start.table))
        if bound.window is not None:
            end = self._first_span(start, end, bound.window)
        if bound.max_rows is not None:
            inside = KeyWindow(start.mark, end).condition(self.dialect, start.table)
            row = self._one(start.table, [inside, *self._has_keys(start.table)], skip=bound.max_rows - late - 1)
            if row is not None and row != end.values:
                end = joined(start.mark, Mark(row, self._ties(row, start.table)))
        if end == whole or whole is None:
            return end, 0
        rest = KeyWindow(end, whole).condition(self.dialect, start.table)
        return end, self._count(rest)

    def _first_span(self, start: TablePosition, end: Mark, window: timedelta) -> Mark:
        """Return the last row of the oldest window of this length, aligned to the clock, that has anything new."""
        key, table = start.table.keys[0], start.table
        inside = KeyWindow(start.mark, end).condition(self.dialect, table)
        row = self._one(table, [inside, *self._has_keys(table)])
        if row is None:  # all were deleted meanwhile
            return end
        moment = moment_of(row[0]) if key.type.is_time else None
        if moment is None:
            raise OptionError(
                f"{self.label}: window={window!r} needs a first key that is a time; {key.name} is {row[0]!r}. Nothing "
                "was read or changed. Use max_rows."
            )
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        over = epoch + ((moment - epoch) // window + 1) * window
        before = self.dialect.beyond((key,), (_first_value_from(over, key),), "<")
        last = self._one(table, [inside, before, *self._has_keys(table)], is_backwards=True)
        if last is None:  # the rows of this window were deleted meanwhile
            return self._first_span(start, end, window)
        return joined(start.mark, Mark(last, self._ties(last, table)))

    # ---- rows

    def _count(self, condition: str, most: int = MOST_COUNTED) -> int:
        query = self.dialect.capped_count(self._source, condition or "1 = 1", most + 1)
        return int(self.queries.rows(query)[0][0])


def _first_value_from(moment: datetime, key: KeyColumn) -> str:
    """Return the first value of a time key that is no earlier than a moment in UTC, as its text."""
    if key.type is KeyType.DATE:  # a day is at its beginning, so one within which the moment lies is earlier
        return (moment + timedelta(days=1) - _INSTANT).date().isoformat()
    return moment.replace(tzinfo=moment.tzinfo if key.type is KeyType.TIME else None).isoformat(" ", "microseconds")
