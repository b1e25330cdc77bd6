"""PostgreSQL, as far as reading by key needs it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, SharedSnapshot, TableColumn
from airflow_bookmarks.core.database.dialects.quoting import escaped_text as _text
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.key import KeyValues

_BYTEWISE = frozenset({"", "C", "POSIX", "ucs_basic"})
_TYPES = {
    "smallint": KeyType.INTEGER,
    "integer": KeyType.INTEGER,
    "bigint": KeyType.INTEGER,
    "numeric": KeyType.DECIMAL,
    "date": KeyType.DATE,
    "timestamp without time zone": KeyType.LOCAL_TIME,
    "timestamp with time zone": KeyType.TIME,
    "uuid": KeyType.UUID,
    "text": KeyType.TEXT,
    "character varying": KeyType.TEXT,
}
_CASTS = {
    KeyType.DECIMAL: "numeric",
    KeyType.DATE: "date",
    KeyType.LOCAL_TIME: "timestamp",
    KeyType.TIME: "timestamptz",
    KeyType.UUID: "uuid",
    KeyType.TEXT: "text",
}
_HUGE = "CAST('1e131071' AS numeric)"  # `infinity` is no numeric before PostgreSQL 14
_MILLISECOND = timedelta(milliseconds=1)
_LENGTH = re.compile(r"\((\d+)(?:,\d+)?\)")


class PostgreSQL(Dialect):
    """PostgreSQL from version 12 on."""

    name: ClassVar[str] = "postgresql"
    driver: ClassVar[str] = "org.postgresql.Driver"
    looks_back: ClassVar[bool] = True
    denied: ClassVar[str] = "42501"
    grant: ClassVar[str] = "GRANT pg_monitor TO <user>"

    def time_limit(self, limit: timedelta) -> str:
        """Return the setting for it, in milliseconds; see `Dialect.time_limit`."""
        return f"SET statement_timeout = {limit // _MILLISECOND}"

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`. Text is compared by its bytes, whatever its collation."""
        length = _LENGTH.search(column.declared)
        key = _TYPES.get(" ".join(_LENGTH.sub("", column.declared).split()))
        if key is None:
            return None
        digits = int(length[1]) if length is not None and key.is_time else 6
        collation = "C" if key is KeyType.TEXT and column.collation not in _BYTEWISE else None
        return KeyColumn(column.name, key, column.is_nullable, digits, collation)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a typed literal; see `Dialect.literal`. An integer stays bare, or no index would serve it."""
        if key.type is KeyType.INTEGER:
            return str(int(text))
        return f"CAST({_text(text)} AS {_CASTS[key.type]})"

    def as_text(self, key: KeyColumn) -> str:
        """Return the cast to text: exact under the settings of a session of this package; see `Dialect.as_text`."""
        return f"CAST({self.quote(key.name)} AS text)"

    def endless(self, key: KeyColumn) -> str | None:
        """Return the condition for `NaN` and infinity; see `Dialect.endless`. A finite `numeric` is below 1e131072."""
        name = self.quote(key.name)
        if key.type is KeyType.DECIMAL:
            return f"{name} >= {_HUGE} OR {name} <= -{_HUGE}"
        if key.type.is_time:
            kind = _CASTS[key.type]
            return f"{name} IN (CAST('infinity' AS {kind}), CAST('-infinity' AS {kind}))"
        return None

    def ending(self, key: KeyColumn) -> str | None:
        """Return the condition for a finite value; see `Dialect.ending`."""
        name = self.quote(key.name)
        if key.type is KeyType.DECIMAL:
            return f"{name} < {_HUGE} AND {name} > -{_HUGE}"
        if key.type.is_time:
            kind = _CASTS[key.type]
            return f"{name} < CAST('infinity' AS {kind}) AND {name} > CAST('-infinity' AS {kind})"
        return None

    def part(self, expression: str, count: int) -> str:
        """Return the part by PostgreSQL's own hash; see `Dialect.part`."""
        return f"((hashtext(CAST({expression} AS text))::bigint & 2147483647) % {count})"

    def among(self, columns: Sequence[KeyColumn], rows: Sequence[KeyValues]) -> str:
        """Return the condition by a list that PostgreSQL hashes; see `Dialect.among`. It reads a list of rows as OR."""
        if len(columns) == 1:
            return super().among(columns, rows)
        return f"{self._tuple(map(self.column, columns))} IN (VALUES {self._tuples(columns, rows)})"

    def row_hash(self, columns: Sequence[TableColumn]) -> str:
        """Return a hash of the row as text, in which each value is as its type writes it; see `Dialect.row_hash`."""
        values = ", ".join(self.quote(each.name) for each in columns)
        return f"left(encode(sha256(convert_to(CAST(ROW({values}) AS text), 'UTF8')), 'hex'), 16)"

    def number_of_hash(self, columns: Sequence[TableColumn], count: int) -> str | None:
        """Return the number by the first byte of a SHA-256; see `Dialect.number_of_hash`.

        PostgreSQL's own `hashtext` may differ between versions and platforms, and MD5 is missing under FIPS.
        """
        texts = [self._lasting_text(column) for column in columns]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return None
        text = known[0] if len(known) == 1 else f"concat_ws('/', {', '.join(known)})"
        return f"(coalesce(get_byte(sha256(convert_to({text}, 'UTF8')), 0), 0) & {count - 1})"

    def _lasting_text(self, column: TableColumn) -> str | None:
        """Return the text of a column that no setting of a session changes."""
        name, declared = self.quote(column.name), _LENGTH.sub("", column.declared)
        key = KeyType.TEXT if declared == "character" else _TYPES.get(" ".join(declared.split()))
        if key in (KeyType.INTEGER, KeyType.UUID, KeyType.TEXT):
            return f"CAST({name} AS text)"
        return f"to_char({name}, 'YYYY-MM-DD')" if key is KeyType.DATE else None

    def has_values(self, column: TableColumn) -> bool:
        """Whether it is one of integers, text, dates or UUIDs; see `Dialect.has_values`."""
        return self._lasting_text(column) is not None

    def values_query(self, column: TableColumn, source: str, where: str, most: int) -> str:
        """Return the query for values, which may be equal by their own collation; see `Dialect.values_query`."""
        text = f'CAST({self.quote(column.name)} AS text) COLLATE "C"'
        return f"SELECT DISTINCT {text} FROM {source} WHERE {where} LIMIT {most}"

    def has_value(self, column: TableColumn, text: str | None) -> str:
        """Return the condition, with one before it that an index serves; see `Dialect.has_value`."""
        name, key = self.quote(column.name), _TYPES.get(" ".join(_LENGTH.sub("", column.declared).split()))
        if text is None:
            return f"{name} IS NULL"
        if key in (KeyType.INTEGER, KeyType.UUID, KeyType.DATE):
            return f"{name} = {self.literal(text, KeyColumn(column.name, key))}"
        return f'{name} = {_text(text)} AND CAST({name} AS text) COLLATE "C" = {_text(text)}'

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared, NOT a.attnotnull AS nullable,
                   CASE WHEN a.attcollation = 0 THEN '' WHEN c.collname <> 'default' THEN c.collname
                        WHEN to_jsonb(d) ->> 'datlocprovider' = 'i' THEN 'icu' ELSE d.datcollate END AS collated,
                   a.attidentity <> ''
                   OR coalesce(pg_get_expr(e.adbin, e.adrelid) LIKE 'nextval(%', false) AS is_generated,
                   coalesce((SELECT s.seqcache FROM pg_sequence s
                             JOIN pg_depend o ON o.objid = s.seqrelid AND o.classid = 'pg_class'::regclass
                             WHERE o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
                             LIMIT 1), 1) AS cached
            FROM pg_attribute a
            JOIN pg_database d ON d.datname = current_database()
            LEFT JOIN pg_collation c ON c.oid = a.attcollation
            LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
            WHERE a.attrelid = to_regclass({_text(self.table(parts))}) AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum"""

    def types_query(self, query: str, columns: Sequence[str]) -> str:
        """Return the query for the types of columns of a query, which works where it has no rows as well."""
        names = ", ".join(map(self.quote, columns))
        types = ", ".join(
            f"CAST(pg_typeof(q.{self.quote(each)}) AS text) AS type_{at}" for at, each in enumerate(columns)
        )
        return f"SELECT {types} FROM (SELECT 1) one LEFT JOIN (SELECT {names} FROM ({query}\n) q LIMIT 1) q ON true"

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for whole, valid, unique indexes; see `Dialect.unique_query`."""
        return f"""
            SELECT CAST(i.indexrelid AS bigint) AS id, i.indisprimary, a.attname, NOT i.indimmediate AS is_deferred
            FROM pg_index i
            CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            WHERE i.indrelid = to_regclass({_text(self.table(parts))}) AND i.indisunique AND i.indisvalid
              AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
            ORDER BY i.indexrelid, k.place"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return "SELECT CAST(clock_timestamp() AT TIME ZONE 'UTC' AS text) AS now_utc"

    def open_queries(self) -> tuple[str, ...]:
        """Return the queries for open transactions, and then for prepared ones; see `Dialect.open_queries`.

        `pg_locks` names those that have no id yet, which a snapshot misses: one may have a value of a sequence, or a
        time, already. A session in another database can't write here, and neither can the autovacuum, which has no
        user, nor a VACUUM. A prepared transaction belongs to no session; when it began is not known.
        """
        return (
            """
            SELECT CAST(l.virtualtransaction AS text) AS id, CAST(l.pid AS text) AS owner, 0 AS stage,
                   CAST(a.xact_start AT TIME ZONE 'UTC' AS text) AS since,
                   concat_ws(', ', 'pid ' || l.pid, nullif(a.application_name, ''), a.usename) AS who
            FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
              AND coalesce(a.datname = current_database(), true) AND (a.pid IS NULL OR a.usesysid IS NOT NULL)
              AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = l.pid)""",
            """
            SELECT 'prepared ' || transaction AS id, CAST(NULL AS text) AS owner, 1 AS stage,
                   CAST(NULL AS text) AS since, concat_ws(', ', 'prepared transaction ' || gid, owner) AS who
            FROM pg_prepared_xacts WHERE database = current_database()""",
        )

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for a standby, and for what gets its rows from elsewhere; see `Dialect.unseen_query`.

        It follows views to their tables, and a table to its partitions.
        """
        name = "NULL" if parts is None else _text(self.table(parts))
        return f"""
            WITH RECURSIVE part(oid) AS (
                SELECT CAST(to_regclass({name}) AS oid)
                UNION
                SELECT edge.part FROM part JOIN (
                    SELECT w.ev_class AS whole, d.refobjid AS part FROM pg_rewrite w
                    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                                    AND d.refclassid = 'pg_class'::regclass
                    UNION ALL
                    SELECT inhparent, inhrelid FROM pg_inherits
                ) edge ON edge.whole = part.oid
            )
            SELECT 'this server is a standby: read from its primary' AS why WHERE pg_is_in_recovery()
            UNION ALL
            SELECT CAST(CAST(c.oid AS regclass) AS text) || CASE c.relkind
                   WHEN 'm' THEN ' is a materialised view, which gets late rows when it is refreshed: read its tables'
                   WHEN 'f' THEN ' is a foreign table, whose transactions are open elsewhere: read it there'
                   ELSE ' gets its rows by a subscription, whose transactions are open elsewhere: read it there' END
            FROM part JOIN pg_class c ON c.oid = part.oid
            WHERE c.relkind IN ('m', 'f') OR EXISTS (SELECT 1 FROM pg_subscription_rel s WHERE s.srrelid = c.oid)"""

    @property
    def shared_snapshot(self) -> SharedSnapshot:
        """An exported snapshot; see `Dialect.shared_snapshot`.

        A second BEGIN, where the driver has sent one already, warns and still sets the isolation.
        """
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        return SharedSnapshot(begin, "SELECT pg_export_snapshot()", f"{begin}; SET TRANSACTION SNAPSHOT '{{}}'")

    def identity_query(self) -> str:
        """Return the query for the identifier of the cluster and the database; see `Dialect.identity_query`."""
        return (
            "SELECT CAST(system_identifier AS text) || '/' || "
            "(SELECT CAST(oid AS text) FROM pg_database WHERE datname = current_database()) AS server "
            "FROM pg_control_system()"
        )
