"""Upserts: rows of a stage table replace those of the target that have the same key, by dialect.

Of several rows for a key in the stage table the one with the greatest `order_by` counts, as the database itself
compares: NULL is lower than any value. Without `order_by` a key may come once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.quoting import is_mysql, quoted
from airflow_bookmarks.core.database.publish_sql import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.core.database.sink_table import SinkTable


_RANK = "_bm_rank"


@dataclass(frozen=True, slots=True)
class Upsert:
    """The columns by which rows are the same, and those by which the newest of several is found."""

    keys: tuple[str, ...]
    order_by: tuple[str, ...] = ()

    def null_keys(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of rows in which a key is NULL: no row equals them, so they would pile up."""
        condition = " OR ".join(f"{quoted(dialect, key)} IS NULL" for key in self.keys)
        return f"SELECT count(*) FROM {stage.sql(dialect)} WHERE {condition}"

    def repeated_keys(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of keys that come more than once."""
        keys = names_of(dialect, self.keys)
        groups = f"SELECT 1 AS one FROM {stage.sql(dialect)} GROUP BY {keys} HAVING count(*) > 1"
        return f"SELECT count(*) FROM ({groups}) repeated"

    def chosen_count(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of rows that count, which also tells whether the database can order them."""
        return f"SELECT count(*) FROM {self._chosen(dialect, stage, self.keys)} counted"

    def is_served_by(self, keys: Iterable[frozenset[str]]) -> bool:
        """Whether one of the unique keys of the target is that of this upsert."""
        return frozenset(self.keys) in set(keys)

    def statements(
        self, dialect: DialectName, target: SinkTable, stage: SinkTable, columns: Sequence[str]
    ) -> Sequence[str]:
        """Return the statements that bring the rows of the stage table into the target, in one transaction.

        MySQL has no conflict with one certain key: ON DUPLICATE KEY would also replace a row that shares another one.
        So rows that are there are updated, and the rest inserted, which fails where another writer was faster.
        """
        if is_mysql(dialect):
            return self._update_then_insert(dialect, target, stage, columns)
        names = names_of(dialect, columns)
        others = [column for column in columns if column not in self.keys]
        sets = ", ".join(f"{quoted(dialect, c)} = excluded.{quoted(dialect, c)}" for c in others)
        then = f"DO UPDATE SET {sets}" if sets else "DO NOTHING"
        # SQLite takes ON after a SELECT for that of a join unless there is a WHERE.
        return [
            f"INSERT INTO {target.sql(dialect)} ({names}) SELECT {names} FROM "
            f"{self._chosen(dialect, stage, columns)} chosen WHERE 1 = 1 "
            f"ON CONFLICT ({names_of(dialect, self.keys)}) {then}"
        ]

    def _update_then_insert(
        self, dialect: DialectName, target: SinkTable, stage: SinkTable, columns: Sequence[str]
    ) -> Sequence[str]:
        chosen = self._chosen(dialect, stage, columns)
        same = " AND ".join(f"old.{quoted(dialect, key)} = new.{quoted(dialect, key)}" for key in self.keys)
        others = [column for column in columns if column not in self.keys]
        sets = ", ".join(f"old.{quoted(dialect, c)} = new.{quoted(dialect, c)}" for c in others)
        update = f"UPDATE {target.sql(dialect)} old JOIN {chosen} new ON {same} SET {sets}"
        values = ", ".join(f"new.{quoted(dialect, column)}" for column in columns)
        absent = f"NOT EXISTS (SELECT 1 FROM {target.sql(dialect)} old WHERE {same})"
        into = f"{target.sql(dialect)} ({names_of(dialect, columns)})"
        insert = f"INSERT INTO {into} SELECT {values} FROM {chosen} new WHERE {absent}"
        return [update, insert] if others else [insert]

    def _chosen(self, dialect: DialectName, stage: SinkTable, columns: Sequence[str]) -> str:
        """Return the rows that count, as a table expression that takes an alias."""
        names = names_of(dialect, columns)
        if not self.order_by:
            return f"(SELECT {names} FROM {stage.sql(dialect)})"
        # PostgreSQL puts NULL first in a descending order, and the others last.
        last = " NULLS LAST" if dialect == "postgresql" else ""
        order = ", ".join(f"{quoted(dialect, column)} DESC{last}" for column in self.order_by)
        rank = f"ROW_NUMBER() OVER (PARTITION BY {names_of(dialect, self.keys)} ORDER BY {order}) AS {_RANK}"
        return f"(SELECT {names} FROM (SELECT {names}, {rank} FROM {stage.sql(dialect)}) ranked WHERE {_RANK} = 1)"
