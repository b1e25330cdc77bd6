"""Upserts: rows of a stage table replace those of the target that have the same key, by dialect.

Of several rows for a key in the stage table the one with the greatest `order_by` counts, as the database itself
compares: NULL is lower than any value. Without `order_by` a key may come once.

A delete set lies in the same stage table, so that it is staged, sealed, burned and swept with the rows. Its rows have
keys and `order_by` alone, and 1 in the column `_bm_deleted`:

    id  name  version  _bm_deleted
     1  ann         3            0
     1              4            1      the greatest of key 1: its row in the target is deleted
     2              7            1
     2  bob         8            0      the greatest of key 2: it is brought
     3  cid         9            0
     3              9            1      a tie: the row counts, because it is there
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


DELETED = "_bm_deleted"  # the column of a stage table that tells the delete set from the rows
_RANK = "_bm_rank"


@dataclass(frozen=True, slots=True)
class Upsert:
    """The columns by which rows are the same, and those by which the newest of several is found.

    `has_deletes`: the stage table holds a delete set as well.
    """

    keys: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    has_deletes: bool = False

    def null_keys(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of rows in which a key is NULL: no row equals them, so they would pile up."""
        condition = " OR ".join(f"{quoted(dialect, key)} IS NULL" for key in self.keys)
        return f"SELECT count(*) FROM {stage.sql(dialect)} WHERE {condition}"

    def repeated_keys(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of keys of which it is not certain what becomes of them.

        A key that is brought more than once, and one that is brought and deleted. By its bytes: a key that has changed
        its case is deleted and brought, and MySQL may take the two for one.
        """
        names = names_of(dialect, self.keys)
        if not self.has_deletes:
            return f"SELECT count(*) FROM {_groups(stage.sql(dialect), names, 'count(*) > 1')} repeated"
        exact = [f"CAST({quoted(dialect, key)} AS BINARY)" for key in self.keys] if is_mysql(dialect) else [names]
        flag = quoted(dialect, DELETED)
        brought = _groups(stage.sql(dialect), names, f"count(*) - sum({flag}) > 1")
        both = _groups(stage.sql(dialect), ", ".join(exact), f"min({flag}) = 0 AND max({flag}) = 1")
        return f"SELECT (SELECT count(*) FROM {brought} brought) + (SELECT count(*) FROM {both} both_ways)"

    def chosen_count(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of rows that count, which also tells whether the database can order them."""
        return f"SELECT count(*) FROM {self._chosen(dialect, stage, self.keys)} counted"

    def delete_count(self, dialect: DialectName, stage: SinkTable) -> str:
        """Return the query for the number of rows of the delete set."""
        return f"SELECT count(*) FROM {stage.sql(dialect)} WHERE {quoted(dialect, DELETED)} = 1"

    def columns_of(self, staged: Sequence[str]) -> list[str]:
        """Return those columns of a stage table that go to the target."""
        return [column for column in staged if not (self.has_deletes and column == DELETED)]

    def is_served_by(self, keys: Iterable[frozenset[str]]) -> bool:
        """Whether one of the unique keys of the target is that of this upsert."""
        return frozenset(self.keys) in set(keys)

    def statements(
        self,
        dialect: DialectName,
        target: SinkTable,
        stage: SinkTable,
        columns: Sequence[str],
        *,
        rehearses: bool = False,
    ) -> Sequence[str]:
        """Return the statements that bring the rows of the stage table into the target, in one transaction.

        What is deleted goes first: a row that is brought may have the value of another unique key of it. To rehearse,
        MySQL is told that it finds no row: else it may read the target, and wait for whoever has locked a row there.

        MySQL has no conflict with one certain key: ON DUPLICATE KEY would also replace a row that shares another one.
        So rows that are there are updated, and the rest inserted, which fails where another writer was faster.
        """
        nothing = " AND 1 = 0" if rehearses else ""
        deletes = [self._delete(dialect, target, stage) + nothing] if self.has_deletes else []
        if is_mysql(dialect):
            return [*deletes, *self._update_then_insert(dialect, target, stage, columns, nothing)]
        names = names_of(dialect, columns)
        others = [column for column in columns if column not in self.keys]
        sets = ", ".join(f"{quoted(dialect, c)} = excluded.{quoted(dialect, c)}" for c in others)
        then = f"DO UPDATE SET {sets}" if sets else "DO NOTHING"
        # SQLite takes ON after a SELECT for that of a join unless there is a WHERE.
        return [
            *deletes,
            f"INSERT INTO {target.sql(dialect)} ({names}) SELECT {names} FROM "
            f"{self._chosen(dialect, stage, columns)} chosen WHERE 1 = 1 "
            f"ON CONFLICT ({names_of(dialect, self.keys)}) {then}",
        ]

    def _delete(self, dialect: DialectName, target: SinkTable, stage: SinkTable) -> str:
        """Return the statement that deletes the rows whose keys are to be deleted, and not brought again."""
        gone, same = self._chosen(dialect, stage, self.keys, is_deleted=True), self._same(dialect, "gone")
        if is_mysql(dialect):
            return f"DELETE old FROM {target.sql(dialect)} old JOIN {gone} gone ON {same}"
        return f"DELETE FROM {target.sql(dialect)} AS old WHERE EXISTS (SELECT 1 FROM {gone} gone WHERE {same})"

    def _same(self, dialect: DialectName, other: str) -> str:
        """Return the condition that a row of the target, `old`, has the key of another one."""
        return " AND ".join(f"old.{quoted(dialect, key)} = {other}.{quoted(dialect, key)}" for key in self.keys)

    def _update_then_insert(
        self, dialect: DialectName, target: SinkTable, stage: SinkTable, columns: Sequence[str], nothing: str
    ) -> Sequence[str]:
        chosen = self._chosen(dialect, stage, columns)
        same = self._same(dialect, "new")
        others = [column for column in columns if column not in self.keys]
        # The keys as well: by the collation of the target they may be the same in another case.
        sets = ", ".join(f"old.{quoted(dialect, c)} = new.{quoted(dialect, c)}" for c in (*others, *self.keys))
        update = f"UPDATE {target.sql(dialect)} old JOIN {chosen} new ON {same}{nothing} SET {sets}"
        values = ", ".join(f"new.{quoted(dialect, column)}" for column in columns)
        absent = f"NOT EXISTS (SELECT 1 FROM {target.sql(dialect)} old WHERE {same})"
        into = f"{target.sql(dialect)} ({names_of(dialect, columns)})"
        insert = f"INSERT INTO {into} SELECT {values} FROM {chosen} new WHERE {absent}{nothing}"
        return [update, insert] if others else [insert]

    def _chosen(
        self, dialect: DialectName, stage: SinkTable, columns: Sequence[str], *, is_deleted: bool = False
    ) -> str:
        """Return the rows that count, or the keys that are to be deleted, as a table expression that takes an alias."""
        names = names_of(dialect, columns)
        of_kind = f"{quoted(dialect, DELETED)} = {int(is_deleted)}" if self.has_deletes else "1 = 1"
        if not self.order_by:
            return f"(SELECT {names} FROM {stage.sql(dialect)} WHERE {of_kind})"
        # PostgreSQL puts NULL first in a descending order, and the others last.
        last = " NULLS LAST" if dialect == "postgresql" else ""
        order = [f"{quoted(dialect, column)} DESC{last}" for column in self.order_by]
        kind = [quoted(dialect, DELETED)] if self.has_deletes else []
        order += kind  # of a tie the row that is brought counts: it is there
        by = f"PARTITION BY {names_of(dialect, self.keys)} ORDER BY {', '.join(order)}"
        inner = ", ".join([names, *kind, f"ROW_NUMBER() OVER ({by}) AS {_RANK}"])
        ranked = f"(SELECT {inner} FROM {stage.sql(dialect)}) ranked"
        return f"(SELECT {names} FROM {ranked} WHERE {_RANK} = 1 AND {of_kind})"


def _groups(table: str, keys: str, having: str) -> str:
    """Return the groups of rows with the same keys that meet a condition, as a table expression that takes an alias."""
    return f"(SELECT 1 AS one FROM {table} GROUP BY {keys} HAVING {having})"
