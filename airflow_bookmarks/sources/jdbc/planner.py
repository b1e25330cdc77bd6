"""The planner of tables: what a run reads of one, from the position of its context to where no row can come."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.core.database.windows.cut import cut_of
from airflow_bookmarks.core.database.windows.trail import Trail
from airflow_bookmarks.core.database.windows.window import (
    NEVER,
    KeyWindow,
    Mark,
    TableKeys,
    has_no_key,
)
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.reason import BEFORE_START, NO_KEY, NOT_COMPARED, OVER_BOUND, SETTLING
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sources.jdbc.catalog import (
    check_same,
    column_named,
    describe,
    server_identity,
    shard_condition,
    warn_of_keys,
)
from airflow_bookmarks.sources.jdbc.ends import MOST_COUNTED, TableEnds
from airflow_bookmarks.sources.jdbc.lookback import Lookback, check_lookback
from airflow_bookmarks.sources.jdbc.position import EarlierEnd, TablePlan, TablePosition, kept_seen

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.sources.jdbc.catalog import Description
    from airflow_bookmarks.sources.source import PlanInput

log = logging.getLogger(__name__)

LONGEST_COUNT = timedelta(seconds=10)  # that a database counts for the preview of a set, where somebody waits

_ON_ANOTHER_SERVER = (
    "Its rows may have other keys. If it is a whole copy, set the context to its last value (airflow-bookmarks set); "
    "else reset it."
)


@dataclass(frozen=True, slots=True)
class TablePlanner(TableEnds):
    """Plans one read of a relation, in one session of its database; see `TableEnds` for what it takes."""

    def plan(self, found: PlanInput) -> TablePlan:
        """Fix what a run reads.

        Raises:
            SourceError: the table is not what it was, or the database is out of reach. Nothing was changed.
            OptionError: an option does not fit the table.
        """
        before = None if found.position is None else TablePosition.decode(found.position)
        described, identity = self._described(before)
        if before is None and (self.settlings is None or self.settlings.is_first(self.relation)):
            warn_of_keys(self.label, described, self.options)
        self._check_zone(described.table)
        return self._of_part(described)._begun(found, before, described, identity)

    def _described(self, before: TablePosition | None) -> tuple[Description, str | None]:
        """Return by which columns the table is read, as its position has it, and the identity of its server.

        Raises:
            SourceError: a position is of another server, or of other keys.
        """
        known = None if before is None else before.identity
        identity = server_identity(
            self.label, self.queries, self.dialect, self.recipe.address, known, _ON_ANOTHER_SERVER
        )
        described = describe(self.queries, self.dialect, self.relation, self.options)
        if before is not None:
            check_same(before.table, described.table)
            if self.relation.parts is None:  # text of a query was compared by its own collation once
                described = described.ordered_as(before.table)
        return described, identity

    def _of_part(self, described: Description) -> TablePlanner:
        """Return the planner of the rows that belong to the virtual shard, or itself."""
        shard = self.recipe.shard
        if shard is None:
            return self
        part = shard_condition(self.queries, self.dialect, self.relation, described, shard)
        return replace(self, part=part)

    def _begun(
        self, found: PlanInput, before: TablePosition | None, described: Description, identity: str | None
    ) -> TablePlan:
        table = described.table
        if before is not None and before.parts is not None:
            raise before.parts.refused(self.label, "no per=...")
        skipped, with_nulls = self._nulls(table, is_first=before is None)
        start = before or self._started(found.start, table, identity, skipped)
        return self._planned(described, replace(start, table=table, identity=identity), skipped, with_nulls=with_nulls)

    def _planned(
        self, described: Description, start: TablePosition, skipped: dict[str, int], *, with_nulls: bool
    ) -> TablePlan:
        end, seen = self._settled_end(start)
        self._check_not_gone_back(start, end)
        if young := self._count(
            " AND ".join([*self._new(end or start.mark, start.table), *self._has_keys(start.table)])
        ):
            skipped[SETTLING] = young
        lookback = self._lookback(described, start)
        behind = None if lookback is None else lookback.behind(start, self.options.bound.max_rows)
        if behind is not None and behind.not_compared:
            skipped[NOT_COMPARED] = len(behind.not_compared)
        end, left = self._bounded(start, end, behind)
        if left:
            skipped[OVER_BOUND] = left
        window, trail = KeyWindow(start.mark, end, with_nulls=with_nulls), None
        if lookback is not None and behind is not None:
            window, trail = lookback.window(window, behind, start, seen)
        count = self._count_of(window, start.table)
        if described.is_gapless_wanted and end is not None:
            self._check_gapless(window, start.table)
        leads_to = replace(self._leads_to(start, end, seen), has_nulls=start.has_nulls or with_nulls, trail=trail)
        return TablePlan(
            self.recipe,
            self._source,
            window,
            leads_to,
            count if count is None or count <= MOST_COUNTED else None,
            skipped,
            late=0 if behind is None else len(behind.late),
            told_by=described.told_by,
        )

    def _lookback(self, described: Description, start: TablePosition) -> Lookback | None:
        """Return what looks for rows that came late, if the options want it."""
        if self.options.lookback is None:
            if start.trail is not None:
                log.warning(
                    "%s: the bookmark was made with a lookback, and this run has none. Rows that came late before it "
                    "are not read, also if the lookback is given again.",
                    self.label,
                )
            return None
        check_lookback(self.label, described, self.options, self.dialect)
        return Lookback(
            self.queries,
            self.dialect,
            self.label,
            self._source,
            described.table,
            described.columns,
            self.options.lookback,
            self.options.zone,
        )

    def _leads_to(self, start: TablePosition, end: Mark | None, seen: EarlierEnd | None) -> TablePosition:
        """Return the position behind a window that ends there, without a trail."""
        mark = end or start.mark
        ends = start.seen if seen is None else (*start.seen, seen)
        kept = kept_seen(self._ends_beyond(mark, ends, start.table))
        return replace(start, mark=mark, seen=kept, trail=None, is_set=start.is_set and end is None)

    # ---- between two positions

    def passed_over(self, before: TablePosition | None, after: TablePosition) -> int:
        """Count the rows that count as read at one position, and do not at another.

        Raises:
            SourceError: the database takes no limit of time for a query, and there are more than `MOST_COUNTED`.
            DatabaseError: it takes longer than `LONGEST_COUNT`, or is out of reach.
        """
        limit = self.dialect.time_limit(LONGEST_COUNT)
        if limit is not None:
            self.queries.rows(limit)
        described, _ = self._described(before)
        if after.mark is None:
            return 0
        part = self._of_part(described)
        read = KeyWindow(None, after.mark).condition(self.dialect, described.table)
        where = " AND ".join([read, *part._unread(before, described)])
        if limit is not None:
            return int(self.queries.rows(f"SELECT count(*) AS counted_rows FROM {part._source} WHERE {where}")[0][0])
        count = part._count(where)
        if count > MOST_COUNTED:
            raise SourceError(
                f"there are more than {MOST_COUNTED:,} rows, and a count of all of them by {self.dialect.name} could "
                "be given no limit of time. Nothing was read or changed."
            )
        return count

    def _unread(self, before: TablePosition | None, described: Description) -> list[str]:
        """Return the condition that a row does not count as read at a position, as a list; none: no row does."""
        if before is None or before.mark is None:
            return []
        table = described.table
        conditions = self._new(before.mark, table)
        if before.parts is not None:
            column = column_named(self.queries, self.dialect, self.relation, described, before.parts.column, "per")
            for value, mark in before.parts.marks.items():
                conditions.append(" AND ".join([self.dialect.has_value(column, value), *self._new(mark, table)]))
        lookback = self._lookback(described, before) if self.options.lookback is not None else None
        if lookback is not None:
            behind = lookback.behind(before, None)
            if behind.late:
                conditions.append(KeyWindow(named=behind.late).condition(self.dialect, table))
        return [f"({' OR '.join(f'({each})' for each in conditions)})"]

    # ---- where the table has to be what it was

    def _check_not_gone_back(self, start: TablePosition, end: Mark | None) -> None:
        """Make sure that the last row is none before the position, unless a person has set it there.

        Raises:
            SourceError: it is: the table was restored, or its sequence begins anew.
        """
        table = start.table
        if end is not None or start.mark is None:
            return
        whole = replace(self, part=None)  # in a part of it the last row may be deleted
        at = [self.dialect.beyond(table.keys, start.mark.values, f"{table.up}=")]
        if whole._one(table, [*at, *self._has_keys(table)]) is not None:
            return
        last = whole._one(table, self._has_keys(table), is_backwards=True)
        if last is None:  # all was deleted, or moved elsewhere: what comes will be new
            return
        if start.is_set:
            log.info(
                "%s: the context was set to %s, and the last row is %s: rows up to there count as read, and runs read "
                "what comes beyond.",
                self.label,
                ", ".join(start.mark.values),
                ", ".join(last),
            )
            return
        raise SourceError(
            f"{self.label}: rows were read up to {', '.join(start.mark.values)}, and the last one is "
            f"{', '.join(last)} now: the newest rows were deleted, the table was restored, or its keys begin anew. New "
            "rows may lie below the bookmark. Nothing was read or changed. Set the context to where it is to go on "
            "(airflow-bookmarks set), or reset it."
        )

    def _check_gapless(self, window: KeyWindow, table: TableKeys) -> None:
        """Make sure that a primary key that stands for keys has no gap, as Glue does.

        Raises:
            SourceError: it has one.
        """
        name = self.dialect.quote(table.keys[0].name)
        condition = window.condition(self.dialect, table)
        ends = f"count(*) AS counted, min({name}) AS low, max({name}) AS high"
        query = f"SELECT {ends} FROM {self._whole} WHERE {condition}"  # parts have gaps
        count, low, high = map(int, self.queries.rows(query)[0])
        first = low if window.after is None else int(window.after.values[0]) + 1
        if high - first + 1 != count:
            raise SourceError(
                f"{self.label}: no keys are given, and the primary key {table.keys[0].name} has gaps: {count:,} rows "
                f"from {first:,} to {high:,}. Glue refuses such a key as well. Nothing was read or changed. Give "
                f"keys=[{table.keys[0].name!r}]: gaps do no harm then."
            )

    def _check_zone(self, table: TableKeys) -> None:
        key = table.keys[0]
        if key.type in (KeyType.LOCAL_TIME, KeyType.DATE) and self.options.zone is None:
            raise OptionError(
                f"{self.label}: key {key.name} has no time zone, so it can't be compared with the clock. Nothing was "
                "read or changed. Give the one in which it is written: zone='UTC', or zone='Europe/Berlin'."
            )
        if key.type.is_time and not table.is_ascending:
            raise OptionError(
                f"{self.label}: order='desc' with {key.name}, a time: new rows have later times. Nothing was read or "
                "changed. Leave order out."
            )

    def _nulls(self, table: TableKeys, *, is_first: bool) -> tuple[dict[str, int], bool]:
        """Return how many rows without a key are left out, and whether this run reads them.

        Raises:
            SourceError: there are some, and `on_null` is "error".
        """
        without = has_no_key(self.dialect, table)
        count = 0 if without == NEVER else self._count(without)
        if not count:
            return {}, False
        if self.options.on_null == "error":
            names = " or ".join(key.name for key in table.keys)
            raise SourceError(
                f"{self.label}: {counted(count, 'row')} without a value of {names}, or with one without a place among "
                "others (infinity, NaN, a zero date), would never be read. Nothing was read or changed. Give "
                "on_null='skip', which counts them, or on_null='include_once', which reads them in the first run."
            )
        if self.options.on_null == "include_once" and is_first:
            return {}, True
        return {NO_KEY: count}, False

    def _count_of(self, window: KeyWindow, table: TableKeys) -> int:
        if window.is_empty:
            return 0
        if window.named is None or window.with_nulls:
            return self._count(window.condition(self.dialect, table))
        as_range = window.range_condition(self.dialect, table)
        return len(window.named) + (0 if as_range == NEVER else self._count(as_range))

    # ---- where a job begins

    def _started(self, start: Start, table: TableKeys, identity: str | None, skipped: dict[str, int]) -> TablePosition:
        """Return the position of a job without a bookmark; what lies before it counts as read."""
        begin = TablePosition(table, identity=identity)
        if start.is_beginning:
            return begin
        key = table.keys[0]
        if start.time is not None and key.type is not KeyType.TIME and not (key.type.is_time and self.options.zone):
            raise OptionError(
                f"{self.label}: start={start.text!r}: {key.name} is no time. Nothing was read or changed."
            )
        if start.time is not None:
            # A row from before the start is none of this job's, however late it comes.
            trail = Trail(self._first_from(start.time, key), {}, (), "")
            last = self._last(begin, start.time)
            begin = replace(begin, trail=trail)
        else:
            last, _ = self._settled_end(begin)
            self._check_begins_now(last, table)
        if last is not None:
            skipped[BEFORE_START] = self._count(KeyWindow(None, last).condition(self.dialect, table))
        return replace(begin, mark=last)

    def _first_from(self, time: datetime, key: KeyColumn) -> str:
        """Return the first value of a time key that a row from the start on may have.

        Raises:
            OptionError: the clock of the zone shows no such time.
        """
        try:
            return cut_of(time, key, self.options.zone)
        except OverflowError as error:
            raise OptionError(
                f"{self.label}: start={time.isoformat()!r} is not in the years 1 to 9999 in the zone "
                f"{self.options.zone}. Nothing was read or changed. Give a later or earlier start, or 'beginning' or "
                "'now'."
            ) from error

    def _check_begins_now(self, last: Mark | None, table: TableKeys) -> None:
        """Make sure that a job that begins now has a row to begin behind, if there is any.

        Raises:
            SourceError: it has none, because transactions are open.
        """
        if last is None and self._one(table, self._has_keys(table)) is not None:
            raise SourceError(
                f"{self.label}: where the table ends now is not known while transactions are open, or its rows are "
                "young: all of them would be read. Nothing was read or changed. Try again; or begin at a value."
            )
