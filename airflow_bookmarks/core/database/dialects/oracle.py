"""Oracle, as far as reading by key needs it. Untried: no server has run these queries yet."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.dialects.quoting import plain_text as _text
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = re.compile(r"NUMBER\((\*|\d+),(\*|-?\d+)\)")
_TIMESTAMP = re.compile(r"TIMESTAMP\((\d)\)( WITH (?:LOCAL )?TIME ZONE)?")
_MOST_DIGITS = 6
_FORM = "'YYYY-MM-DD HH24:MI:SS.FF9'"
_NOW = "SYS_EXTRACT_UTC(SYSTIMESTAMP)"
# Times of the server have no zone. They are taken for an hour earlier: its clock may have been put back since.
_BEGUN = "SYS_EXTRACT_UTC(FROM_TZ(CAST(t.start_date AS TIMESTAMP), TO_CHAR(SYSTIMESTAMP, 'TZH:TZM')))"


class Oracle(Dialect):
    """Oracle from version 12.2 on."""

    name: ClassVar[str] = "oracle"
    driver: ClassVar[str] = "oracle.jdbc.OracleDriver"
    is_tried: ClassVar[bool] = False
    compares_rows: ClassVar[bool] = False  # it compares rows for equality alone
    denied: ClassVar[str] = "942"
    grant: ClassVar[str] = "GRANT SELECT ANY DICTIONARY TO <user>"
    # A transaction begins with its first row, a statement long before: an INSERT ... SELECT that sorts, say.
    head_start: ClassVar[timedelta] = timedelta(days=1)

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`. A DATE is a time to the second.

        Text is no key: its session says how it is sorted.
        """
        declared, key, digits = column.declared.upper(), None, _MOST_DIGITS
        if number := _NUMBER.fullmatch(declared):
            key = KeyType.INTEGER if number[2].removeprefix("-").isdigit() and int(number[2]) <= 0 else KeyType.DECIMAL
        elif declared == "DATE":
            key, digits = KeyType.LOCAL_TIME, 0
        elif time := _TIMESTAMP.fullmatch(declared):
            key, digits = KeyType.TIME if time[2] else KeyType.LOCAL_TIME, min(int(time[1]), _MOST_DIGITS)
        return None if key is None else KeyColumn(column.name, key, column.is_nullable, digits)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a literal that means the same whatever NLS says; see `Dialect.literal`.

        To the second it is a DATE, which a column of either type is compared with by its index.
        """
        if key.type is KeyType.INTEGER:
            return str(int(text))
        if key.type is KeyType.DECIMAL:
            return f"{Decimal(text):f}"
        if key.type is KeyType.LOCAL_TIME and key.digits == 0:
            return f"TO_DATE({_text(text.partition('.')[0])}, 'YYYY-MM-DD HH24:MI:SS')"
        return f"TIMESTAMP {_text(text.replace('+', ' +'))}"

    def as_text(self, key: KeyColumn) -> str:
        """Return the exact text; see `Dialect.as_text`."""
        name = self.quote(key.name)
        if key.type is KeyType.TIME:
            return f"TO_CHAR({name} AT TIME ZONE 'UTC', {_FORM}) || '+00:00'"
        if key.type is KeyType.LOCAL_TIME:
            return f"TO_CHAR(CAST({name} AS TIMESTAMP(9)), {_FORM})"
        # TM9 leaves out the zero before a point.
        digits = f"TO_CHAR({name}, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"
        return digits if key.type is KeyType.INTEGER else rf"REGEXP_REPLACE({digits}, '^(-?)[.]', '\10.')"

    def part(self, expression: str, count: int) -> str:
        """Return the part by Oracle's own hash; see `Dialect.part`."""
        return f"ORA_HASH({expression}, {count - 1})"

    def first(self, select: str, source: str, where: str, order: str, count: int, skip: int = 0) -> str:
        """Return the query for some rows in an order; see `Dialect.first`."""
        offset = f"OFFSET {skip} ROWS " if skip else ""
        rows = f"{offset}FETCH {'NEXT' if skip else 'FIRST'} {count} ROWS ONLY"
        return f"SELECT {select} FROM {source} WHERE {where} ORDER BY {order} {rows}"

    def some(self, select: str, source: str, where: str, most: int) -> str:
        """Return the query for rows in no order; see `Dialect.some`."""
        return f"SELECT {select} FROM {source} WHERE {where} FETCH FIRST {most} ROWS ONLY"

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT column_name,
                   CASE WHEN data_type = 'NUMBER' THEN 'NUMBER(' || NVL(TO_CHAR(data_precision), '*') || ','
                             || NVL(TO_CHAR(data_scale), '*') || ')'
                        ELSE data_type END AS declared,
                   CASE nullable WHEN 'Y' THEN 1 ELSE 0 END AS is_nullable, CAST(NULL AS VARCHAR2(1)) AS collated,
                   CASE identity_column WHEN 'YES' THEN 1 ELSE 0 END AS is_generated, 1 AS cached
            FROM all_tab_columns WHERE {_of_table(parts)} ORDER BY column_id"""

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for unique indexes over whole columns; see `Dialect.unique_query`."""
        return f"""
            SELECT i.index_name, CASE WHEN k.constraint_name IS NULL THEN 0 ELSE 1 END AS is_primary, x.column_name,
                   0 AS is_deferred
            FROM all_indexes i
            JOIN all_ind_columns x ON x.index_owner = i.owner AND x.index_name = i.index_name
            LEFT JOIN all_constraints k ON k.owner = i.table_owner AND k.table_name = i.table_name
                                       AND k.index_name = i.index_name AND k.constraint_type = 'P'
            WHERE {_of_table(parts, "i.table_owner", "i.table_name")} AND i.uniqueness = 'UNIQUE'
              AND i.index_type = 'NORMAL' AND i.status <> 'UNUSABLE'
            ORDER BY i.index_name, x.column_position"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return f"SELECT TO_CHAR({_NOW}, 'YYYY-MM-DD HH24:MI:SS.FF6') AS now_utc FROM DUAL"

    def open_queries(self) -> tuple[str, ...]:
        """Return the queries for calls that run, and then for transactions; see `Dialect.open_queries`.

        A call may have a value of a sequence before its transaction begins with the first row that it writes.
        """
        return (
            f"""
            SELECT 'call ' || s.sid || ' ' || s.serial# || ' ' || NVL(s.sql_exec_id, 0) AS id,
                   s.sid || ',' || s.serial# AS owner, 0 AS stage,
                   TO_CHAR({_NOW} - NUMTODSINTERVAL(s.last_call_et + 1, 'SECOND'), {_FORM}) AS since,
                   'session ' || s.sid || ', ' || s.program || ', ' || s.username AS who
            FROM v$session s
            WHERE s.type = 'USER' AND s.status = 'ACTIVE' AND s.audsid <> SYS_CONTEXT('USERENV', 'SESSIONID')""",
            f"""
            SELECT 'transaction ' || t.xidusn || '.' || t.xidslot || '.' || t.xidsqn AS id,
                   CASE WHEN s.sid IS NULL THEN NULL ELSE s.sid || ',' || s.serial# END AS owner, 1 AS stage,
                   TO_CHAR({_BEGUN} - INTERVAL '1' HOUR, {_FORM}) AS since,
                   'session ' || s.sid || ', ' || s.program || ', ' || s.username AS who
            FROM v$transaction t LEFT JOIN v$session s ON s.saddr = t.ses_addr
            WHERE s.audsid IS NULL OR s.audsid <> SYS_CONTEXT('USERENV', 'SESSIONID')""",
        )

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for a standby, several instances, and what has its rows elsewhere; see `Dialect`."""
        table = "1 = 0" if parts is None else _of_table(parts, "o.owner", "o.object_name")
        return f"""
            SELECT 'this database is a standby: read from its primary' AS why FROM v$database
            WHERE database_role <> 'PRIMARY'
            UNION ALL
            SELECT 'several instances write into this database, and each hands out numbers of its own' FROM gv$instance
            HAVING COUNT(*) > 1
            UNION ALL
            SELECT o.object_name || ' is a ' || LOWER(o.object_type) || ', of whose tables nothing is known here: '
                   || 'read them'
            FROM all_objects o WHERE {table} AND o.object_type IN ('VIEW', 'MATERIALIZED VIEW')"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the database; see `Dialect.identity_query`."""
        return (
            "SELECT TO_CHAR(dbid) || '/' || TO_CHAR(resetlogs_change#) || '/' || SYS_CONTEXT('USERENV', 'CON_NAME') "
            "AS server FROM v$database"
        )


def _of_table(parts: Sequence[str], owner: str = "owner", name: str = "table_name") -> str:
    schema = _text(parts[-2]) if len(parts) > 1 else "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')"
    return f"{owner} = {schema} AND {name} = {_text(parts[-1])}"
