"""Look again at the last rows that were read, for those that came late among them.

Where the database can't tell who may still write, no waiting helps. So the bookmark names each row in a trailing window
of the table. The next run asks for the rows that are in that window now, and reads those that it does not know.

A row may turn up after that question, and before the run reads. So the run reads these rows, and those of its own
window that are in the next trailing window, by their names alone: what turns up later is the next run's.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.key import KeyType
from airflow_bookmarks.core.database.windows.trail import (
    SeenNumber,
    Trail,
    back_from,
    earlier,
    later,
    lies_since,
    seen_before,
    seen_with,
)
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys, has_keys, selected
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.reason import NOT_COMPARED
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sources.jdbc.queries import texts
from airflow_bookmarks.sources.jdbc.settling import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
    from airflow_bookmarks.core.database.key import KeyValues
    from airflow_bookmarks.sources.jdbc.catalog import Description
    from airflow_bookmarks.sources.jdbc.options import TableOptions
    from airflow_bookmarks.sources.jdbc.position import EarlierEnd, TablePosition
    from airflow_bookmarks.sources.jdbc.queries import Queries

log = logging.getLogger(__name__)

MOST_NAMED = 10_000  # rows of a trailing window, each of which the position names
_AT_FIRST = MOST_NAMED // 2  # where no earlier number is known, the rows behind the last one that may be joined
_DIGITS = 12  # of the hash that tells one set of columns from another


def check_lookback(label: str, described: Description, options: TableOptions, dialect: Dialect) -> None:
    """Make sure that a table can be looked at again.

    Raises:
        OptionError: its first key says nothing of time, or nothing tells its rows apart; or its database can't be asked
            for rows by their names.
    """
    if not dialect.looks_back:
        raise OptionError(
            f"{label}: lookback is for PostgreSQL, MySQL and MariaDB, and this is {dialect.name}. Nothing was read or "
            "changed. Give settle=timedelta(...), longer than from the time or number of a row to its commit."
        )
    table, first = described.table, described.table.keys[0]
    if not options.keys:
        raise OptionError(
            f"{label}: lookback needs keys=[...]. Without them the primary key may have no gap, and a row that comes "
            f"late fills one. Nothing was read or changed. Give keys=[{first.name!r}]."
        )
    if not first.type.is_time and first.type not in (KeyType.INTEGER, KeyType.DECIMAL):
        raise OptionError(
            f"{label}: lookback needs a first key that is a time or a number; {first.name} is {first.type.value}. "
            "Nothing was read or changed. Put such a column first in keys=[...]."
        )
    if not table.is_unique and not table.ties:
        raise OptionError(
            f"{label}: lookback needs a table whose rows a primary key or a unique index tells apart; those of a query "
            "or a view are not told apart by any. Nothing was read or changed. Read the table itself; give it a "
            "primary key, or put the columns of a unique index into keys=[...]."
        )


@dataclass(frozen=True, slots=True)
class Behind:
    """What is behind the mark of a position at a time.

    `since` is from where it was looked at, and `rows` what was there. Of these, `late` were not read and are now, and
    `left` are for the next run. Of `not_compared` it can't be told whether they were updated since they were read: the
    table had other columns then.
    """

    at: datetime
    since: str | None
    rows: Mapping[KeyValues, str]
    late: tuple[KeyValues, ...] = ()
    left: tuple[KeyValues, ...] = ()
    not_compared: tuple[KeyValues, ...] = ()


@dataclass(frozen=True, slots=True)
class Lookback:
    """Looks for late rows of one relation, for one plan.

    Args:
        label: what messages begin with.
        source: the relation, as SQL.
        columns: those by whose content a row counts as changed.
        zone: that of a first key without one.
    """

    queries: Queries
    dialect: Dialect
    label: str
    source: str
    table: TableKeys
    columns: tuple[TableColumn, ...]
    lookback: timedelta
    zone: str | None

    def behind(self, start: TablePosition, max_rows: int | None) -> Behind:
        """Find what came late behind a position. One that has no trail yet has read all that is there.

        Args:
            max_rows: the most that one run reads.

        Raises:
            SourceError: there are too many rows to name.
        """
        at = now(self.queries, self.dialect)  # before the rows are asked for: what comes later is the next run's
        if start.mark is None:
            return Behind(at, None if start.trail is None else start.trail.since, {})
        since = self._since_before(start, start.mark)
        window = KeyWindow(None, start.mark)
        rows = self._rows(window, since, 2 * MOST_NAMED)
        late, not_compared = ([], ()) if start.trail is None else self._changed(start.trail, rows, window, since)
        if len(late) > MOST_NAMED:
            raise self._too_many()
        most = len(late) if max_rows is None else max_rows
        return Behind(at, since, rows, tuple(late[:most]), tuple(late[most:]), not_compared)

    def _changed(
        self, trail: Trail, rows: Mapping[KeyValues, str], window: KeyWindow, since: str | None
    ) -> tuple[list[KeyValues], tuple[KeyValues, ...]]:
        """Return which rows were not read as they are now, and of which others that can't be told.

        A hash is of all columns. So after a change of columns it is made anew of those that there were, as long as each
        of them is there. Where it is the same, a row is as it was; but a value of a column that was added since may be
        due to an update. Where it is another one, and a column has another type, it may be due to the type alone.
        """
        if not trail.rows or trail.shape == self.shape:
            return [row for row, content in rows.items() if not trail.is_as_read(row, content)], ()
        then = self._columns_of(trail)
        contents = self._rows(window, since, 2 * MOST_NAMED, then) if then else {}
        changed = [row for row in rows if not trail.is_as_read(row, contents.get(row))]
        unsure = self._with_values(trail, window, since).difference(changed) if then else set()
        if trail.columns != _named(then):
            unsure |= {row for row in changed if row in trail.rows}
        not_compared = tuple(row for row in rows if row in unsure)
        if not_compared:
            log.warning(
                "%s: the columns of the table have changed since the last run, so that %s within the lookback can't be "
                "compared with what was read. An update meanwhile is not seen; counted as %s. To have a row read, "
                "update it again; or reset the context.",
                self.label,
                counted(len(not_compared), "row"),
                NOT_COMPARED,
            )
        return [row for row in changed if row not in unsure], not_compared

    def _with_values(self, trail: Trail, window: KeyWindow, since: str | None) -> set[KeyValues]:
        """Return the rows that have a value in a column that was added since they were read."""
        known = {name for name, _ in trail.columns or ()}
        added = [each for each in self.columns if each.name not in known]
        if not added:
            return set()
        has_value = " OR ".join(f"NOT ({self.dialect.quote(each.name)} IS NULL)" for each in added)
        return set(self._rows(window, since, 2 * MOST_NAMED, tuple(added), f"({has_value})"))

    def _columns_of(self, trail: Trail) -> tuple[TableColumn, ...]:
        """Return the columns that rows were hashed by, as they are now; none if they are not known, or one has gone."""
        now_there = {each.name: each for each in self.columns}
        found = [now_there.get(name) for name, _ in trail.columns or ()]
        return tuple(each for each in found if each is not None) if None not in found else ()

    def window(
        self, window: KeyWindow, behind: Behind, start: TablePosition, seen: EarlierEnd | None
    ) -> tuple[KeyWindow, Trail | None]:
        """Return a window with what came late, and the trail behind it.

        Args:
            seen: the last row that could be seen.

        Raises:
            SourceError: there are too many rows to name.
        """
        mark, trail = window.until or start.mark, start.trail
        if mark is None:
            return replace(window, named=()), trail
        if window.until is None and not behind.late and trail is not None and trail.shape == self.shape:
            return replace(window, named=()), trail
        since = self._since_after(behind, start, mark)
        kept, new = self._kept(behind, since), self._new(window, since)
        if len(kept) + len(new) > MOST_NAMED:
            # Where the first run has begun is known, if nothing earlier is: what was behind it is let go.
            since = self._since_first_seen(behind, start, mark, since)
            kept, new = self._kept(behind, since), self._new(window, since)
        if len(kept) + len(new) > MOST_NAMED:
            raise self._too_many()
        named = (*behind.late, *new)
        return replace(window, since=since, named=named), Trail(
            since, {**kept, **new}, self._numbers_with(behind, trail, mark, seen), self.shape, _named(self.columns)
        )

    @property
    def shape(self) -> str:
        """A hash of the columns, by whose content a row counts as changed."""
        columns = json.dumps(_named(self.columns))
        return hashlib.sha256(columns.encode()).hexdigest()[:_DIGITS]

    # ---- the rows

    def _kept(self, behind: Behind, since: str | None) -> Mapping[KeyValues, str]:
        left = set(behind.left)
        return {
            row: content
            for row, content in behind.rows.items()
            if row not in left and lies_since(row[0], since, self.table)
        }

    def _new(self, window: KeyWindow, since: str | None) -> Mapping[KeyValues, str]:
        return {} if window.until is None else self._rows(window, since, MOST_NAMED)

    def _rows(
        self,
        window: KeyWindow,
        since: str | None,
        most: int,
        columns: tuple[TableColumn, ...] | None = None,
        condition: str | None = None,
    ) -> dict[KeyValues, str]:
        """Return the rows of a window from a value of the first key on, in their order, with hashes of their content.

        Args:
            columns: those that are hashed; None: all.
            condition: what else a row has to meet.

        Raises:
            SourceError: there are more than `most`, or two that nothing tells apart.
        """
        conditions = [window.condition(self.dialect, self.table), *has_keys(self.dialect, self.table)]
        if since is not None:
            conditions.append(self.dialect.beyond(self.table.keys[:1], (since,), f"{self.table.up}="))
        if condition is not None:
            conditions.append(condition)
        content = self.dialect.row_hash(self.columns if columns is None else columns) or "''"
        query = self.dialect.first(
            f"{selected(self.dialect, self.table.identity)}, {content} AS bookmark_content",
            self.source,
            " AND ".join(conditions),
            self.table.order(self.dialect),
            most + 1,
        )
        found = [texts(row) for row in self.queries.rows(query)]
        if len(found) > most:
            raise self._too_many()
        rows = {row[:-1]: row[-1] for row in found}
        if len(rows) < len(found):
            raise SourceError(
                f"{self.label}: several rows have the same keys, though an index should keep them apart: tables that "
                "inherit from this one have indexes of their own. Nothing was read or changed. Leave out lookback."
            )
        return rows

    def _too_many(self) -> SourceError:
        return SourceError(
            f"{self.label}: more than {MOST_NAMED:,} rows lie within lookback={self.lookback!r} of the last one, too "
            "many to name in the bookmark. Nothing was read or changed. Give a shorter lookback."
        )

    # ---- from where on they are looked at again

    @property
    def _is_by_time(self) -> bool:
        return self.table.keys[0].type.is_time

    def _back_from(self, mark: Mark) -> str | None:
        return back_from(mark.values[0], self.table.keys[0], self.zone, self.lookback)

    def _since_before(self, start: TablePosition, mark: Mark) -> str | None:
        """Return from where a trail is looked at: a lookback that is shorter now counts at once."""
        trail = start.trail
        if self._is_by_time:
            return later(None if trail is None else trail.since, self._back_from(mark), self.table)
        if trail is None:
            return self._at_first(mark)
        if not trail.seen:
            return trail.since
        counts = seen_before(trail.seen, trail.seen[-1].moment - self.lookback)
        return later(trail.since, None if counts is None else counts.value, self.table)

    def _since_after(self, behind: Behind, start: TablePosition, mark: Mark) -> str | None:
        """Return from where the next run has to look: nothing that may come late then lies before it."""
        if behind.left:
            return behind.since
        if self._is_by_time:
            return later(behind.since, self._back_from(mark), self.table)
        counts = seen_before(_seen_of(start), behind.at - self.lookback)
        if counts is not None:
            return later(behind.since, earlier(counts.value, mark.values[0], self.table), self.table)
        return self._at_first(mark) if start.mark is None else behind.since

    def _since_first_seen(self, behind: Behind, start: TablePosition, mark: Mark, since: str | None) -> str | None:
        seen = _seen_of(start)
        if self._is_by_time or behind.left or not seen:
            return since
        return later(since, earlier(seen[0].value, mark.values[0], self.table), self.table)

    def _at_first(self, mark: Mark) -> str | None:
        """Return the number of some row behind a mark; None if there are no more than so many."""
        row = self.queries.rows(
            self.dialect.first(
                self.table.select(self.dialect),
                self.source,
                " AND ".join(
                    [KeyWindow(None, mark).condition(self.dialect, self.table), *has_keys(self.dialect, self.table)]
                ),
                self.table.order(self.dialect, is_backwards=True),
                1,
                _AT_FIRST,
            )
        )
        return texts(row[0])[0] if row else None

    def _numbers_with(
        self, behind: Behind, trail: Trail | None, mark: Mark, seen: EarlierEnd | None
    ) -> tuple[SeenNumber, ...]:
        if self._is_by_time:
            return ()
        value = mark.values[0] if seen is None else seen.mark.values[0]
        return seen_with(() if trail is None else trail.seen, value, behind.at, self.lookback)


def _named(columns: Sequence[TableColumn]) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, each.declared) for each in columns)


def _seen_of(start: TablePosition) -> tuple[SeenNumber, ...]:
    return () if start.trail is None else start.trail.seen
