"""The planner of tables: what a run reads of one, from the position of its context to where no row can come."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from airflow_bookmarks.core.database.key import KeyType, moment_of
from airflow_bookmarks.core.database.open_transaction import earliest
from airflow_bookmarks.core.database.windows.cut import cut_of
from airflow_bookmarks.core.database.windows.trail import Trail
from airflow_bookmarks.core.database.windows.window import (
    NEVER,
    KeyWindow,
    Mark,
    TableKeys,
    after,
    has_keys,
    has_no_key,
    joined,
    selected,
)
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.reason import BEFORE_START, NO_KEY, NOT_COMPARED, OVER_BOUND, SETTLING
from airflow_bookmarks.sources.jdbc.catalogue import (
    check_same,
    describe,
    server_identity,
    shard_condition,
    warn_of_keys,
)
from airflow_bookmarks.sources.jdbc.lookback import Behind, Lookback, check_lookback
from airflow_bookmarks.sources.jdbc.position import EarlierEnd, TablePlan, TablePosition, kept_seen, newest_seen
from airflow_bookmarks.sources.jdbc.queries import texts
from airflow_bookmarks.sources.jdbc.settling import Settling, check_seen, now, wait_until_ended, watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.dialect import Dialect
    from airflow_bookmarks.core.database.key import KeyColumn
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.sources.jdbc.catalogue import Description
    from airflow_bookmarks.sources.jdbc.options import TableOptions
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries
    from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
    from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
    from airflow_bookmarks.sources.source import PlanInput

log = logging.getLogger(__name__)

MOST_COUNTED = 100_000  # rows; a count of more would take longer than to read them
MOST_TIES = 10_000  # rows with one and the same keys, each of which the position names
_SEEN_TIES = 100
_ON_ANOTHER_SERVER = (
    "Its rows may have other keys. If it is a whole copy, set the context to its last value (airflow-bookmarks set); "
    "else reset it."
)
_INSTANT = timedelta(microseconds=1)
_BETWEEN = timedelta(seconds=1)  # the most that a server takes from a statement's time to its place among the open ones


@dataclass(frozen=True, slots=True)
class TablePlanner:
    """Plans one read of a relation, in one session of its database.

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

    def plan(self, found: PlanInput) -> TablePlan:
        """Fix what a run reads.

        Raises:
            SourceError: the table is not what it was, or the database is out of reach. Nothing was changed.
            OptionError: an option does not fit the table.
        """
        before = None if found.position is None else TablePosition.decode(found.position)
        known = None if before is None else before.identity
        identity = server_identity(
            self.label, self.queries, self.dialect, self.recipe.address, known, _ON_ANOTHER_SERVER
        )
        described = describe(self.queries, self.dialect, self.relation, self.options)
        table = described.table
        if before is not None:
            check_same(before.table, table)
            if self.relation.parts is None:  # text of a query was compared by its own collation once
                described = described.ordered_as(before.table)
        elif self.settlings is None or self.settlings.is_first(self.relation):
            warn_of_keys(self.label, described, self.options)
        self._check_zone(table)
        return self._of_part(described)._begun(found, before, described, identity)

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

    @property
    def _whole(self) -> str:
        return self.relation.sql(self.dialect)

    @property
    def _source(self) -> str:
        # A database takes such a query apart, and uses the index of the keys.
        return self._whole if self.part is None else f"(SELECT * FROM {self._whole} WHERE {self.part}) source_part"

    def _leads_to(self, start: TablePosition, end: Mark | None, seen: EarlierEnd | None) -> TablePosition:
        """Return the position behind a window that ends there, without a trail."""
        mark = end or start.mark
        kept = kept_seen(start.seen if seen is None else (*start.seen, seen), mark)
        return replace(start, mark=mark, seen=kept, trail=None)

    # ---- where the window ends

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
            return newest_seen(start, moment - options.settle + _INSTANT, seen), seen
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
        return (self._last(start, began) if is_time else newest_seen(start, began, None)), seen

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
            return newest_seen(start, before, None), seen
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
        """Return the last row behind the position, before a time and up to a mark; None where there is none."""
        table = start.table
        conditions = [*self._new(start.mark, table), *self._has_keys(table)]
        if until is not None:
            conditions.append(KeyWindow(None, until).condition(self.dialect, table))
        if before is not None:
            conditions.append(self._until_cut(table, before))
        row = self._one(table, conditions, is_backwards=True)
        return None if row is None else joined(start.mark, Mark(row, self._ties(row, table)))

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
        if last is None or len(last.ties) > _SEEN_TIES:
            return None
        return EarlierEnd.of(now(self.queries, self.dialect), last)

    # ---- bounds

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
        moment = None if row is None or not key.type.is_time else moment_of(row[0])
        if moment is None:
            raise OptionError(
                f"{self.label}: window={window!r} needs a first key that is a time; {key.name} is "
                f"{key.type.value if row is None else row[0]!r}. Nothing was read or changed. Use max_rows."
            )
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        over = epoch + ((moment - epoch) // window + 1) * window
        text = over.date().isoformat() if key.type is KeyType.DATE else over.isoformat(" ", "microseconds")
        if key.type is KeyType.LOCAL_TIME:
            text = over.replace(tzinfo=None).isoformat(" ", "microseconds")
        before = self.dialect.beyond((key,), (text,), "<")
        last = self._one(table, [inside, before, *self._has_keys(table)], is_backwards=True)
        return end if last is None else joined(start.mark, Mark(last, self._ties(last, table)))

    # ---- where the table has to be what it was

    def _check_not_gone_back(self, start: TablePosition, end: Mark | None) -> None:
        """Make sure that the last row is none before the position.

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
                f"{self.label}: {count:,} rows have no value of {names}, or one without a place among others "
                "(infinity, NaN, a zero date), and would never be read. Nothing was read or changed. Give "
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

    def _count(self, condition: str, most: int = MOST_COUNTED) -> int:
        query = self.dialect.capped_count(self._source, condition or "1 = 1", most + 1)
        return int(self.queries.rows(query)[0][0])

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
            last = self._last(begin, start.time)
            # A row from before the start is none of this job's, however late it comes.
            begin = replace(begin, trail=Trail(cut_of(start.time, key, self.options.zone), {}, (), ""))
        else:
            last, _ = self._settled_end(begin)
            self._check_begins_now(last, table)
        if last is not None:
            skipped[BEFORE_START] = self._count(KeyWindow(None, last).condition(self.dialect, table))
        return replace(begin, mark=last)

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
