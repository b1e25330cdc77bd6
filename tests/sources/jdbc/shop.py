"""A database with a table, and who reads and writes it: what the tests of reading tables share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow_bookmarks.core.database.dialect import Dialect
from airflow_bookmarks.core.database.windows.window import KeyWindow
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sources.jdbc.options import TableOptions
from airflow_bookmarks.sources.jdbc.position import TablePlan
from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.source import PlanInput

AT_ONCE = timedelta(0)
# A server may list a connection for a while after its client has the answer and has closed it. This is longer.
_ENDS_BY_ITSELF = timedelta(minutes=5)


@dataclass
class Shop:
    """One database, read by key.

    A read waits for open transactions by `settle_for`; not at all while a test holds one open by `transaction`.
    """

    login: DatabaseLogin
    position: bytes | None = None
    plans: list[TablePlan] = field(default_factory=list)
    settle_for: timedelta = _ENDS_BY_ITSELF
    held_open: int = 0  # transactions

    @property
    def dialect(self) -> Dialect:
        """The SQL of the database."""
        return dialect_named(self.login.dialect)

    def run(self, sql: str) -> int:
        with open_database(self.login) as database:
            return database.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with open_database(self.login) as database:
            return database.rows(sql)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Leave a transaction open within the block, in a session of its own; roll it back if it raises."""
        with open_database(self.login) as database, database.transaction():
            self.held_open += 1
            try:
                yield database
            finally:
                self.held_open -= 1

    def source(self, table: str = "orders", keys: Sequence[str] = ("id",), **how: Any) -> TableSource:
        query = how.pop("query", None)
        relation = Relation(query=query) if query else Relation(tuple(table.split(".")))
        settle_for = AT_ONCE if self.held_open else self.settle_for
        options = TableOptions(keys=tuple(keys), **{"settle_for": settle_for, **how})
        recipe = Recipe("conn:shop", self.login.dialect, relation, options)
        return TableSource(lambda: open_database(self.login), recipe, "job 'copy', context 'orders'")

    def read(self, source: TableSource | None = None, *, start: Start = BEGINNING, **how: Any) -> list[tuple[Any, ...]]:
        """Make one run: plan, read the keys of its window, and commit."""
        source = source or self.source(**how)
        plan = source.plan(PlanInput(self.position, start=start))
        position = source.advance(plan)
        self.plans.append(plan)
        found = self.held(plan)
        if position is not None:
            self.position = position.body
        assert TablePlan.decode(plan.encode()).encode() == plan.encode()
        return found

    def held(self, plan: TablePlan, window: KeyWindow | None = None) -> list[tuple[Any, ...]]:
        """Return the keys of the rows in a window, in their order."""
        dialect, table = dialect_named(self.login.dialect), plan.leads_to.table
        condition = (window or plan.window).condition(dialect, table)
        select = ", ".join(dialect.quote(key.name) for key in table.keys)
        order = table.order(dialect)
        return self.rows(f"SELECT {select} FROM {plan.source} WHERE {condition} ORDER BY {order}")
