"""A dialect of one's own, for SQLite: what docs/contributing/dialects.md explains."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.dialects.quoting import plain_text
from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.databases.dialects import register
from airflow_bookmarks.spark import BookmarkedJob


class SQLite(Dialect):
    """SQLite, read by integers and by text."""

    name = "sqlite"
    driver = "org.sqlite.JDBC"

    def columns_query(self, parts: Sequence[str]) -> str:
        return (
            "SELECT name, type, \"notnull\" = 0 AS is_nullable, '' AS collated, "
            "pk = 1 AND upper(type) = 'INTEGER' AS is_generated, 1 AS cached "
            f"FROM pragma_table_info({plain_text(parts[-1])}) ORDER BY cid"
        )

    def now_query(self) -> str:
        return "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now') AS now_utc"

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        if column.declared.upper() == "INTEGER":
            return KeyColumn(column.name, KeyType.INTEGER, column.is_nullable)
        if column.declared.upper() == "TEXT":
            return KeyColumn(column.name, KeyType.TEXT, column.is_nullable, collation="BINARY")
        return None

    def literal(self, text: str, key: KeyColumn) -> str:
        return str(int(text)) if key.type is KeyType.INTEGER else plain_text(text)

    def as_text(self, key: KeyColumn) -> str:
        return f"CAST({self.quote(key.name)} AS text)"

    # SQLite keeps a value of any type in any column, and calls these two types as KeyType does.

    def endless(self, key: KeyColumn) -> str:
        return f"typeof({self.quote(key.name)}) <> '{key.type.value}'"

    def ending(self, key: KeyColumn) -> str:
        return f"typeof({self.quote(key.name)}) = '{key.type.value}'"


def read_orders(job: BookmarkedJob, url: str, **how: Any) -> DataFrame:
    register(SQLite())
    return job.read("orders").jdbc(url, "orders", keys=["id"], **how)
