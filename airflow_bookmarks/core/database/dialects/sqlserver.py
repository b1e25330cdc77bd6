"""SQL Server, as far as reading by key needs it. Untried: no server has run these queries yet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.dialects.quoting import bracketed
from airflow_bookmarks.core.database.dialects.quoting import national_text as _text
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

# Not `smalldatetime`, which rounds to minutes, nor `uniqueidentifier`, whose order is not that of its text.
_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), KeyType.INTEGER),
    **dict.fromkeys(("decimal", "numeric"), KeyType.DECIMAL),
    "date": KeyType.DATE,
    **dict.fromkeys(("datetime", "datetime2"), KeyType.LOCAL_TIME),
    "datetimeoffset": KeyType.TIME,
    # Not `varchar`: it is sorted by the bytes of its code page, and compared with a literal by those of Unicode.
    **dict.fromkeys(("nchar", "nvarchar"), KeyType.TEXT),
}
_DECLARED = re.compile(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?")
_TICKS = 2  # digits of a second that `datetime` never rounds down: it counts in steps of 1/300 s
_MOST_DIGITS = 6
# A query with ORDER BY stands in another one, as Spark asks it, only with TOP.
_ALL = 100_000


class SQLServer(Dialect):
    """SQL Server from version 2016 on, and Azure SQL."""

    name: ClassVar[str] = "sqlserver"
    driver: ClassVar[str] = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
    is_tried: ClassVar[bool] = False
    compares_rows: ClassVar[bool] = False  # it has no comparison of rows
    denied: ClassVar[str] = "300"
    grant: ClassVar[str] = "GRANT VIEW SERVER STATE TO <login>"

    def quote(self, identifier: str) -> str:
        """Return a name in brackets; see `Dialect.quote`."""
        return bracketed(identifier)

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`. Text needs a collation that compares code points."""
        found = _DECLARED.fullmatch(column.declared.lower())
        key = None if found is None else _TYPES.get(found[1])
        if found is None or key is None:
            return None
        if key is KeyType.TEXT and not (column.collation or "").endswith("_BIN2"):
            return None
        digits = _MOST_DIGITS
        if key.is_time:
            digits = _TICKS if found[1] == "datetime" else min(int(found[2] or 0), _MOST_DIGITS)
        return KeyColumn(column.name, key, column.is_nullable, digits)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a typed literal; see `Dialect.literal`. The T keeps DATEFORMAT out of it."""
        if key.type is KeyType.INTEGER:
            return str(int(text))
        if key.type is KeyType.DECIMAL:
            return f"CAST({_text(text)} AS decimal(38, {len(text.partition('.')[2])}))"
        if key.type is KeyType.DATE:
            return f"CAST({_text(text)} AS date)"
        if key.type.is_time:
            kind = "datetimeoffset" if key.type is KeyType.TIME else "datetime2"
            return f"CAST({_text(text.replace(' ', 'T', 1))} AS {kind}(7))"
        return _text(text)

    def as_text(self, key: KeyColumn) -> str:
        """Return the exact text; see `Dialect.as_text`. A `datetime` becomes what it is compared as."""
        name = self.quote(key.name)
        if key.type in (KeyType.INTEGER, KeyType.DECIMAL):
            return f"CONVERT(varchar(41), {name})"
        if key.type is KeyType.DATE:
            return f"CONVERT(varchar(10), {name}, 23)"
        if key.type is KeyType.LOCAL_TIME:
            return f"CONVERT(varchar(27), CAST({name} AS datetime2(7)), 121)"
        if key.type is KeyType.TIME:
            return f"CONVERT(varchar(27), CAST(SWITCHOFFSET({name}, '+00:00') AS datetime2(7)), 121) + '+00:00'"
        return name

    def part(self, expression: str, count: int) -> str:
        """Return the part by a checksum; see `Dialect.part`."""
        return f"ABS(CHECKSUM({expression}) % {count})"

    def first(self, select: str, source: str, where: str, order: str, count: int, skip: int = 0) -> str:
        """Return the query for some rows in an order; see `Dialect.first`."""
        if not skip:
            return f"SELECT TOP ({count}) {select} FROM {source} WHERE {where} ORDER BY {order}"
        rest = f"OFFSET {skip} ROWS FETCH NEXT {count} ROWS ONLY"
        return f"SELECT {select} FROM {source} WHERE {where} ORDER BY {order} {rest}"

    def some(self, select: str, source: str, where: str, most: int) -> str:
        """Return the query for rows in no order; see `Dialect.some`."""
        return f"SELECT TOP ({most}) {select} FROM {source} WHERE {where}"

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT TOP ({_ALL}) c.name AS column_name,
                   CASE WHEN t.name IN ('decimal', 'numeric') THEN CONCAT(t.name, '(', c.precision, ',', c.scale, ')')
                        WHEN t.name IN ('datetime2', 'datetimeoffset') THEN CONCAT(t.name, '(', c.scale, ')')
                        ELSE t.name END AS declared,
                   CAST(c.is_nullable AS int) AS nullable, COALESCE(c.collation_name, '') AS collated,
                   CASE WHEN c.is_identity = 1 OR d.definition LIKE '%NEXT VALUE FOR%' THEN 1 ELSE 0 END
                   AS is_generated, 1 AS cached
            FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.system_type_id
            LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id
            WHERE c.object_id = {self._object(parts)} ORDER BY c.column_id"""

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for whole unique indexes; see `Dialect.unique_query`."""
        return f"""
            SELECT TOP ({_ALL}) i.index_id, CAST(i.is_primary_key AS int) AS is_primary, c.name AS column_name,
                   0 AS is_deferred
            FROM sys.indexes i
            JOIN sys.index_columns x ON x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0
            JOIN sys.columns c ON c.object_id = x.object_id AND c.column_id = x.column_id
            WHERE i.object_id = {self._object(parts)}
              AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
            ORDER BY i.index_id, x.key_ordinal"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return "SELECT CONVERT(varchar(26), SYSUTCDATETIME(), 121) AS now_utc"

    def open_queries(self) -> tuple[str, ...]:
        """Return the queries for requests that run, and then for transactions; see `Dialect.open_queries`.

        Each lists those of all databases of the server, as one may begin before it enters this one.
        """
        return (
            f"""
            SELECT CONCAT('request ', r.session_id, ' ', r.request_id, ' ', CONVERT(varchar(23), r.start_time, 121))
                   AS id, CONVERT(varchar(11), r.session_id) AS owner, 0 AS stage, {_in_utc("r.start_time")} AS since,
                   CONCAT('session ', r.session_id, ', ', s.program_name, ', ', s.login_name) AS who
            FROM sys.dm_exec_requests r JOIN sys.dm_exec_sessions s ON s.session_id = r.session_id
            WHERE s.is_user_process = 1 AND r.session_id <> @@SPID""",
            f"""
            SELECT CONCAT('transaction ', t.transaction_id, ' ', x.session_id) AS id,
                   CONVERT(varchar(11), x.session_id) AS owner, 1 AS stage,
                   {_in_utc("t.transaction_begin_time")} AS since,
                   CONCAT('session ', x.session_id, ', ', s.program_name, ', ', s.login_name) AS who
            FROM sys.dm_tran_active_transactions t
            LEFT JOIN sys.dm_tran_session_transactions x ON x.transaction_id = t.transaction_id
            LEFT JOIN sys.dm_exec_sessions s ON s.session_id = x.session_id
            WHERE (x.session_id <> @@SPID) OR (x.session_id IS NULL AND t.transaction_type = 4)""",
        )

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for a replica, and for what has its rows elsewhere; see `Dialect.unseen_query`."""
        table = "NULL" if parts is None else self._object(parts)
        return f"""
            SELECT 'this database is read-only here: read from its primary' AS why
            WHERE CONVERT(varchar(20), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')) <> 'READ_WRITE'
            UNION ALL
            SELECT CONCAT(o.name, ' is a view, of whose tables nothing is known here: read them') FROM sys.objects o
            WHERE o.object_id = {table} AND o.type = 'V'
            UNION ALL
            SELECT CONCAT(t.name, ' is an external table, whose transactions are open elsewhere: read it there')
            FROM sys.tables t WHERE t.object_id = {table} AND t.is_external = 1"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the database; see `Dialect.identity_query`."""
        return (
            "SELECT CONVERT(varchar(36), service_broker_guid) AS server FROM sys.databases WHERE database_id = DB_ID()"
        )

    def _object(self, parts: Sequence[str]) -> str:
        return f"OBJECT_ID({_text(self.table(parts))})"


def _in_utc(local: str) -> str:
    """Return a time of the server as one in UTC, an hour early: its clock may have been put back since."""
    minutes = "-60 - DATEPART(tzoffset, SYSDATETIMEOFFSET())"
    return f"CONVERT(varchar(26), DATEADD(minute, {minutes}, CAST({local} AS datetime2(6))), 121)"
