"""Plan a table value by value of one column: each value is a run of its own, and one that failed is read again alone.

One look fixes, for all values, where the table ends, and which values have new rows before that:

    position before          mark 100
    the look                 ends at 250; new rows of eu, us, asia
    after the run of eu      mark 250, left: us from 100, asia from 100
    after the run of asia    mark 250, left: us from 100              us has failed
    the retry of it          reads us after 100, up to 250, and no other value
    after the run of us      mark 250

So a position names only values whose rows have not been read up to its mark. One that is new begins with its first row:
all rows up to the mark belong to values that are read so far, or left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.windows.window import KeyWindow
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.selection.reason import SETTLING
from airflow_bookmarks.sources.jdbc.catalog import column_named
from airflow_bookmarks.sources.jdbc.ends import MOST_COUNTED
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.jdbc.position import TablePlan, TablePosition
from airflow_bookmarks.sources.part_loop import MOST_PARTS, PartsLeft, check_not_too_many, in_order

if TYPE_CHECKING:
    from airflow_bookmarks.core.database.dialect import TableColumn
    from airflow_bookmarks.core.database.windows.window import Mark
    from airflow_bookmarks.sources.jdbc.catalog import Description
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.sources.source import PlanInput


@dataclass(frozen=True, slots=True)
class PartPlanner(TablePlanner):
    """Plans the next value of a loop, or without a loop all that a loop would read, to be looked at and counted.

    Args:
        execution: the name of the execution, which goes on with its own look.
    """

    column: str = ""
    loop: PartLoop | None = None
    execution: str = ""

    def _begun(
        self, found: PlanInput, before: TablePosition | None, described: Description, identity: str | None
    ) -> TablePlan:
        column = column_named(self.queries, self.dialect, self.relation, described, self.column, "per")
        self._check_fits(column, before)
        table = described.table
        skipped, _ = self._nulls(table, is_first=before is None)
        start = before or self._started(found.start, table, identity, skipped)
        start = replace(start, table=table, identity=identity)
        if self.loop is None:
            return self._look(start, column, skipped)
        if start.parts is None or start.parts.looked_by != self.execution:
            start = self._looked(start, column, skipped)
        return self._next(start, column, skipped, self.loop)

    def _check_fits(self, column: TableColumn, before: TablePosition | None) -> None:
        if not self.dialect.has_values(column):
            raise OptionError(
                f"{self.label}: per={column.name!r} has the type {column.declared}, whose values are not told apart "
                "here. Nothing was read or changed. Integers, text, dates and UUIDs are: make a view with such a "
                "column."
            )
        if before is not None and before.parts is not None and before.parts.column != column.name:
            raise before.parts.refused(self.label, f"per={column.name!r}")

    def _look(self, start: TablePosition, column: TableColumn, skipped: dict[str, int]) -> TablePlan:
        """Return the plan of all that the runs of a loop would read."""
        plan = self._planned_whole(start, skipped)
        left = start.parts
        if left is None:
            return plan
        conditions = [self._condition(start, column, value, mark) for value, mark in left.marks.items()]
        more = self._count(" OR ".join(f"({each})" for each in conditions))
        count = None if plan.count is None or more > MOST_COUNTED else plan.count + more
        leads_to = replace(plan.leads_to, parts=None)
        window = plan.window if not plan.window.is_empty else KeyWindow(None, start.mark)
        return replace(plan, window=window, leads_to=leads_to, count=count)

    def _condition(self, start: TablePosition, column: TableColumn, value: str | None, mark: Mark | None) -> str:
        window = KeyWindow(mark, start.mark).condition(self.dialect, start.table)
        return f"{self.dialect.has_value(column, value)} AND {window}"

    def _looked(self, start: TablePosition, column: TableColumn, skipped: dict[str, int]) -> TablePosition:
        """Return the position with a new end, and with the values that have rows before it.

        Raises:
            SourceError: they are too many.
        """
        whole = self._planned_whole(start, skipped)
        end, marks = whole.leads_to, {} if start.parts is None else dict(start.parts.marks)
        if not whole.is_empty:
            inside = whole.window.condition(self.dialect, start.table)
            asked = self.dialect.values_query(column, self._source, inside, MOST_PARTS + 1)
            for (value,) in self.queries.rows(asked):
                marks.setdefault(None if value is None else str(value), start.mark)
        check_not_too_many(self.label, column.name, marks, "new rows")
        return replace(end, parts=PartsLeft(column.name, self.execution, marks) if marks else None)

    def _next(self, looked: TablePosition, column: TableColumn, skipped: dict[str, int], loop: PartLoop) -> TablePlan:
        """Return the plan of the first value that the loop has not taken on, and that has rows."""
        left = looked.parts
        marks = {} if left is None else dict(left.marks)
        for value in in_order(marks):
            part = PlanPart(column.name, value)
            if part in loop.taken:
                continue
            mark, of_value = marks.pop(value), replace(self, part=self._and(self.dialect.has_value(column, value)))
            window = KeyWindow(mark, looked.mark)
            count = of_value._count(window.condition(self.dialect, looked.table))
            if not count:
                continue  # its rows were deleted meanwhile
            leads_to = replace(looked, parts=left.without(marks) if left is not None else None)
            loop.take(part, is_last=all(PlanPart(column.name, each) in loop.taken for each in marks))
            counted = count if count <= MOST_COUNTED else None
            return TablePlan(self.recipe, of_value._source, window, leads_to, counted, skipped, part=part)
        loop.take(None, is_last=True)
        leads_to = replace(looked, parts=left.without(marks) if left is not None else None)
        return TablePlan(self.recipe, self._source, KeyWindow(looked.mark), leads_to, 0, skipped)

    def _and(self, condition: str) -> str:
        return condition if self.part is None else f"{self.part} AND {condition}"

    def _planned_whole(self, start: TablePosition, skipped: dict[str, int]) -> TablePlan:
        """Return the plan of all values, from the mark of the position to where the table is final."""
        end, seen = self._settled_end(start)
        self._check_not_gone_back(start, end)
        if young := self._count(
            " AND ".join([*self._new(end or start.mark, start.table), *self._has_keys(start.table)])
        ):
            skipped[SETTLING] = young
        window = KeyWindow(start.mark, end)
        count = 0 if window.is_empty else self._count(window.condition(self.dialect, start.table))
        counted = count if count <= MOST_COUNTED else None
        return TablePlan(self.recipe, self._source, window, self._leads_to(start, end, seen), counted, skipped)
