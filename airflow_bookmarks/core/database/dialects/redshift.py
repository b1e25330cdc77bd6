"""Redshift, as far as reading by key needs it. Untried: no server has run these queries yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.dialects.quoting import spelled_text as _text
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

# Not text: a database or a column may compare it without regard to case, and the catalog does not tell.
_TYPES = {
    **dict.fromkeys(("smallint", "integer", "bigint"), KeyType.INTEGER),
    "numeric": KeyType.DECIMAL,
    "date": KeyType.DATE,
    "timestamp without time zone": KeyType.LOCAL_TIME,
    "timestamp with time zone": KeyType.TIME,
}
_CASTS = {KeyType.DATE: "date", KeyType.LOCAL_TIME: "timestamp", KeyType.TIME: "timestamptz"}
_LENGTH = re.compile(r"\(\d+(?:,\d+)?\)")
_FORM = "'YYYY-MM-DD HH24:MI:SS.US'"


class Redshift(Dialect):
    """Redshift. Its unique keys are not enforced, so none of them counts."""

    name: ClassVar[str] = "redshift"
    driver: ClassVar[str] = "com.amazon.redshift.Driver"
    is_tried: ClassVar[bool] = False
    compares_rows: ClassVar[bool] = False  # that of its ancestor compared each column by itself

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`."""
        key = _TYPES.get(_LENGTH.sub("", column.declared.lower()).strip())
        return None if key is None else KeyColumn(column.name, key, column.is_nullable)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a typed literal; see `Dialect.literal`. A plain `numeric` would have no digits after the point."""
        if key.type is KeyType.INTEGER:
            return str(int(text))
        if key.type is KeyType.DECIMAL:
            return f"CAST({_text(text)} AS numeric(38, {len(text.partition('.')[2])}))"
        return f"CAST({_text(text)} AS {_CASTS[key.type]})"

    def as_text(self, key: KeyColumn) -> str:
        """Return the exact text; see `Dialect.as_text`."""
        name = self.quote(key.name)
        if key.type is KeyType.DATE:
            return f"TO_CHAR({name}, 'YYYY-MM-DD')"
        if key.type is KeyType.LOCAL_TIME:
            return f"TO_CHAR({name}, {_FORM})"
        if key.type is KeyType.TIME:
            return f"TO_CHAR({name} AT TIME ZONE 'UTC', {_FORM}) || '+00:00'"
        return f"CAST({name} AS varchar(41))"

    def part(self, expression: str, count: int) -> str:
        """Return the part by the first digits of a hash; see `Dialect.part`."""
        return f"MOD(STRTOL(SUBSTRING(MD5(CAST({expression} AS varchar)), 1, 8), 16), {count})"

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`.

        An IDENTITY does not count as generated: each slice counts by itself, so that a later row may have a lower one.
        """
        return f"""
            SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared,
                   CASE WHEN a.attnotnull THEN 0 ELSE 1 END AS nullable, '' AS collated, 0 AS is_generated, 1 AS cached
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE {_of_table(parts)} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return f"SELECT TO_CHAR(CAST(SYSDATE AS timestamptz) AT TIME ZONE 'UTC', {_FORM}) AS now_utc"

    def open_queries(self) -> tuple[str, ...]:
        """Return the query for open transactions; see `Dialect.open_queries`.

        It lists those of all databases: the functions of the leader node can't stand beside a system view.
        """
        return (
            f"""
            SELECT 'transaction ' || CAST(xid AS varchar) AS id, CAST(pid AS varchar) AS owner, 0 AS stage,
                   TO_CHAR(MIN(txn_start), {_FORM}) AS since,
                   'pid ' || CAST(pid AS varchar) || ', ' || TRIM(txn_owner) AS who
            FROM svv_transactions WHERE pid <> PG_BACKEND_PID() GROUP BY xid, pid, txn_owner""",
        )

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for whether this user sees transactions of others, and for views; see `Dialect`."""
        table = "1 = 0" if parts is None else _of_table(parts)
        return f"""
            SELECT 'this user sees no transactions but its own: have a superuser read' AS why
            FROM pg_user WHERE usename = CURRENT_USER AND NOT usesuper
            UNION ALL
            SELECT c.relname || ' is a view, of whose tables nothing is known here: read them'
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {table} AND c.relkind <> 'r'"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the cluster and the database; see `Dialect.identity_query`."""
        return "SELECT CURRENT_NAMESPACE || '/' || CURRENT_DATABASE() AS server"


def _of_table(parts: Sequence[str]) -> str:
    schema = _text(parts[-2]) if len(parts) > 1 else "CURRENT_SCHEMA()"
    return f"n.nspname = {schema} AND c.relname = {_text(parts[-1])}"
