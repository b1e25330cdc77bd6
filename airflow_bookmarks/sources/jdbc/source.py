"""Tables and queries of a database as a source. What is new is found by key, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.databases.dialects import dialect_named, warn_if_untried
from airflow_bookmarks.sources.jdbc.partitions import PartPlanner
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.jdbc.position import TablePosition
from airflow_bookmarks.sources.source import Recheck

if TYPE_CHECKING:
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.jdbc.position import TablePlan
    from airflow_bookmarks.sources.jdbc.queries import Connect, Queries
    from airflow_bookmarks.sources.jdbc.recipe import Recipe
    from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.sources.source import PlanInput

KIND = "jdbc"


class TableSource:
    """What is new in one table or query. `connect` opens a session of its database.

    Args:
        settlings: what the virtual shards of a task have waited for once; None: each plan waits by itself.
        loop: the values of a column that are read one by one, if they are.
        execution: the name of the execution that reads.
    """

    kind = KIND
    format: str | None = None

    def __init__(
        self,
        connect: Connect,
        recipe: Recipe,
        label: str,
        settlings: SharedSettlings | None = None,
        loop: PartLoop | None = None,
        execution: str = "",
    ) -> None:
        self._connect, self.recipe, self._label, self._settlings = connect, recipe, label, settlings
        self._loop, self._execution = loop, execution
        self._found: TablePosition | None = None

    def ref(self) -> SourceRef:
        """Return database and table; see `Source.ref`. A virtual shard is another source than the whole."""
        shard = "" if self.recipe.shard is None else f" {self.recipe.shard}"
        return SourceRef(self.kind, f"{self.recipe.address} {self.recipe.relation.name}{shard}")

    def plan(self, found: PlanInput) -> TablePlan:
        """Fix the rows that a run reads; see `Source.plan`."""
        self._found = None if found.position is None else TablePosition.decode(found.position)
        with self._connect() as queries:
            return self._planner(queries).plan(found)

    def _planner(self, queries: Queries) -> TablePlanner:
        dialect, column = dialect_named(self.recipe.dialect), self.recipe.options.per
        warn_if_untried(dialect)
        common = (queries, dialect, self.recipe, self._label, self._connect)
        if column is None:
            return TablePlanner(*common, settlings=self._settlings)
        return PartPlanner(
            *common, settlings=self._settlings, column=column, loop=self._loop, execution=self._execution
        )

    def advance(self, plan: TablePlan) -> Position | None:
        """Return the position behind the window of a plan; see `Source.advance`."""
        return None if plan.leads_to == self._found else plan.leads_to.position()

    def passed_over(self, before: bytes | None, after: bytes | None) -> int:
        """Count the rows that count as read at one stored position, and do not at another.

        Raises:
            SourceError: they can't be counted within `LONGEST_COUNT`, or the table is not what it was.
            DatabaseError: the database is out of reach, or takes longer.
        """
        if after is None:
            return 0
        with self._connect() as queries:
            planner = self._planner(queries)
            start = None if before is None else TablePosition.decode(before)
            return planner.passed_over(start, TablePosition.decode(after))

    def recheck(self, plan: TablePlan) -> Recheck:
        """Find nothing: a row that is updated meanwhile is read as it is then; see `Source.recheck`."""
        return Recheck()

    # ---- see `BoundedSource`

    @property
    def bounds(self) -> frozenset[str]:
        """Rows, and windows of a first key that is a time; none where each value of a column is read whole."""
        return frozenset({"max_rows", "window"} if self.recipe.options.per is None else ())

    def bounded(self, bound: Bound) -> TableSource:
        """Return the same source that plans no more than `bound`."""
        return TableSource(self._connect, self.recipe.bounded(bound), self._label, self._settlings)
