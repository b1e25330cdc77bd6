"""The kind of source that reads tables and queries of a database by key."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.advice.tables import KeyedRead
from airflow_bookmarks.core.amount import ROWS, Amount
from airflow_bookmarks.core.database.key import KeyType, checked_value, watermark_of
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.databases.access import login_at
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.sources.jdbc.options import SETTLE_FOR, TableOptions
from airflow_bookmarks.sources.jdbc.position import TablePlan, TablePosition
from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
from airflow_bookmarks.sources.jdbc.source import KIND, TableSource
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.passed_over import PassedOver
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class TableKind(SourceKind[TablePlan]):
    """Tables: progress is the keys of the last row that was read."""

    name: ClassVar[str] = KIND
    is_totally_ordered = True

    def decode(self, body: bytes) -> TablePlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return TablePlan.decode(body)

    def advance(self, plan: TablePlan, found: PlanInput) -> Position | None:
        """Return the position behind the window of a stored plan; see `SourceKind.advance`."""
        before = None if found.position is None else TablePosition.decode(found.position)
        return None if plan.leads_to == before else plan.leads_to.position()

    def knows(self, found: PlanInput, plan: TablePlan) -> bool:
        """Whether the position is behind where the window of a plan begins; see `SourceKind.knows`."""
        before = None if found.position is None else TablePosition.decode(found.position)
        if before is None or plan.is_empty:
            return False
        left, mark = before.parts, before.mark
        if plan.part is not None and left is not None and left.column == plan.part.column:
            mark = left.marks.get(plan.part.value, mark)
        if mark is None:
            return False
        if (
            before.trail is not None
            and plan.window.named
            and not before.trail.rows.keys().isdisjoint(plan.window.named)
        ):
            return True
        # Where keys have no order here: a rewind that is refused harms less than one that leaves rows to nobody.
        return plan.window.after is None or _is_beyond(mark, plan.window.after, plan) is not False

    def union(self, plans: Sequence[TablePlan]) -> TablePlan:
        """Return one plan over windows that follow each other; see `SourceKind.union`.

        Raises:
            OptionError: between the runs the position was set.
        """
        if not plans:
            return _NOTHING
        if len(plans) > 1 and any(plan.part is not None for plan in plans):
            return _union_of_parts(plans)
        for before, plan in itertools.pairwise(plans):
            if before.leads_to.mark != plan.window.after:
                raise _was_set()
        whole = plans[0]
        for plan in plans[1:]:
            whole = plan.covering(whole)
        return whole

    def why_not_again(self, plan: TablePlan) -> str | None:
        """Return why a window in times can't be read again: an updated row has left it; see `SourceKind`."""
        first = plan.leads_to.table.keys[0]
        if not first.type.is_time or plan.is_empty:
            return None
        return (
            f"rows of a table by {first.name} can't be read a second time: one that was updated since has another "
            f"{first.name}, and would be missing"
        )

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> TableSource:
        """Return the source of the recorded table; see `SourceKind.source_of`."""
        plan = self.decode(store.blobs.get(entry.body))
        login = login_at(store.databases, DatabaseAddress.parse(plan.recipe.address))
        return TableSource(lambda: open_database(login), plan.recipe, f"job {job!r}")

    def part_of(self, plan: TablePlan) -> PlanPart | None:
        """Return the value whose rows a plan reads; see `SourceKind.part_of`."""
        return plan.part

    def reached(self, stats: Mapping[str, Any]) -> str | None:
        """Return the values of the last row's keys; see `SourceKind.reached`."""
        until = stats.get("until")
        return None if until is None else ", ".join(map(str, until))

    def parts_left(self, position: bytes, execution: str) -> Sequence[PlanPart]:
        """Return the values that an execution has left; see `SourceKind.parts_left`."""
        left = TablePosition.decode(position).parts
        if left is None or left.looked_by != execution:
            return ()
        return [PlanPart(left.column, value) for value in left.marks]

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the first key of the last row; see `SourceKind.watermark`."""
        return TablePosition.decode(position).position().watermark

    def keyed(self, plan: TablePlan) -> KeyedRead:
        """Return the keys, and the rows that a lookback names; see `SourceKind.keyed`."""
        table, trail = plan.leads_to.table, plan.leads_to.trail
        columns = tuple(key.name for key in table.keys)
        is_query = plan.recipe.relation.parts is None  # of which no database tells whether a column may be NULL
        ties = tuple(range(len(columns), len(columns) + len(table.ties)))
        return KeyedRead(
            columns=columns,
            nullable=() if is_query else tuple(key.name for key in table.keys if key.is_nullable),
            named=None if plan.window.named is None else frozenset(plan.window.named),
            trail=frozenset() if trail is None else frozenset(trail.rows),
            told_by=ties or tuple(at for at, name in enumerate(columns) if name in plan.told_by),
        )

    def locations(self, plan: TablePlan, source: SourceRef) -> Sequence[str]:
        """Return database and table; see `SourceKind.locations`."""
        return (f"{plan.recipe.address} {plan.recipe.relation.name}",)

    def seek(self, store: BookmarkStore, found: PlanInput, plan: TablePlan, value: str) -> Position:
        """Return the position at the last row that is there now, or behind all rows with a value; see `SourceKind`.

        Raises:
            OptionError: the value is none of the first key.
        """
        if value == "now":
            return self._now(store, found, plan)
        table = plan.leads_to.table
        literal = checked_value(value, table.keys[0])
        before = plan.leads_to if found.position is None else TablePosition.decode(found.position)
        mark = Mark((literal,))
        return replace(before, table=table, mark=mark, seen=(), trail=None, parts=None, is_set=True).position()

    def passed_over(
        self, store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
    ) -> PassedOver:
        """Return the rows between two positions, as the database counts them; see `SourceKind.passed_over`."""
        count = self.source_of(store, job, entry).passed_over(before.position, after.position)
        return PassedOver(Amount(ROWS, count, rows=count))

    def _now(self, store: BookmarkStore, found: PlanInput, plan: TablePlan) -> Position:
        # A look does not wait for open transactions; whoever sets a position does.
        recipe = replace(plan.recipe, options=replace(plan.recipe.options, settle_for=SETTLE_FOR))
        login = login_at(store.databases, DatabaseAddress.parse(recipe.address))
        source = TableSource(lambda: open_database(login), recipe, recipe.relation.name)
        return source.plan(PlanInput(start=Start(is_now=True))).leads_to.position()


def _union_of_parts(plans: Sequence[TablePlan]) -> TablePlan:
    """Return one plan over runs of which each has read the rows of one value, or of all: side by side in one query."""
    read: dict[PlanPart | None, TablePlan] = {}
    some = [plan for plan in plans if not plan.is_empty]
    for plan in some:
        before, after = read.get(plan.part) or read.get(None), plan.window.after
        mark = None if before is None else before.leads_to.mark
        if mark is not None and after != mark:
            is_beyond = after is None or _is_beyond(mark, after, plan)
            if is_beyond is None:
                raise _has_no_order(plan)
            if is_beyond:
                raise _was_set()
        read[plan.part] = plan
    whole, dialect = plans[-1], dialect_named(plans[-1].recipe.dialect)
    parts = [
        f"SELECT * FROM {plan.source} WHERE {plan.window.condition(dialect, plan.leads_to.table)}" for plan in some
    ]
    if not parts:
        return whole
    counts = [plan.count for plan in plans]
    count = None if None in counts else sum(each or 0 for each in counts)
    with_nulls = any(plan.window.with_nulls for plan in some)
    window = KeyWindow(None, whole.leads_to.mark, with_nulls=with_nulls)  # behind all of them
    source = f"({' UNION ALL '.join(parts)}) source_parts"
    return replace(whole, source=source, window=window, count=count, skipped={}, part=None)


def _was_set() -> OptionError:
    return OptionError(
        "between these runs the position was set, so that no one window covers what they have read. Nothing was read "
        "or changed. Name runs between which it was not."
    )


def _has_no_order(plan: TablePlan) -> OptionError:
    names = ", ".join(key.name for key in plan.leads_to.table.keys)
    return OptionError(
        f"whether these runs follow each other can't be told from values of {names}, whose order is the database's "
        "own. Nothing was read or changed. Name one run."
    )


def _is_beyond(mark: Mark, other: Mark, plan: TablePlan) -> bool | None:
    """Whether a mark counts as read a row behind another one; None where their keys have no order here."""
    table = plan.leads_to.table
    for key, one, two in zip(table.keys, mark.values, other.values, strict=False):
        compared = 0 if one == two else _compared(key.type, one, two, plan.recipe.dialect)
        if compared is None:
            return None
        if compared:
            return (compared > 0) is table.is_ascending
    return len(mark.values) < len(other.values) or not set(mark.ties) <= set(other.ties)


def _compared(key: KeyType, one: str, two: str, dialect: str) -> int | None:
    """Compare two values as the database does; None where that is not known here, as for infinity."""
    if key is KeyType.UUID and dialect != _PLAIN_UUIDS:
        return None
    left, right = watermark_of(key, one), watermark_of(key, two)
    return None if left is None or right is None else key.order.compare(left, right)


_PLAIN_UUIDS = "postgresql"  # puts them in the order of their text; MariaDB by their parts

_NOTHING = TablePlan(Recipe("", "", Relation(()), TableOptions()), "", KeyWindow(), TablePosition(TableKeys(())))
