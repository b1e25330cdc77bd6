"""PostgreSQL, as far as reading by key needs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_LENGTH = re.compile(r"\((\d+)(?:,\d+)?\)")


class PostgreSQL(Dialect):
    """PostgreSQL from version 12 on."""

    name: ClassVar[str] = "postgresql"
    driver: ClassVar[str] = "org.postgresql.Driver"

    def quote(self, identifier: str) -> str:
        """Return a name in double quotes; see `Dialect.quote`."""
        return '"' + identifier.replace('"', '""') + '"'

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`. Text is compared by its bytes."""
        length = _LENGTH.search(column.declared)
        key = _TYPES.get(" ".join(_LENGTH.sub("", column.declared).split()))
        if key is None:
            return None
        digits = int(length[1]) if length is not None and key.is_time else 6
        collation = "C" if key is KeyType.TEXT and (column.collation or "") not in _BYTEWISE else None
        return KeyColumn(column.name, key, column.is_nullable, digits, collation)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a typed literal; see `Dialect.literal`. An integer stays bare, or no index would serve it."""
        if key.type is KeyType.INTEGER:
            return str(int(text))
        return f"CAST({_text(text)} AS {_CASTS[key.type]})"

    def as_text(self, key: KeyColumn) -> str:
        """Return the cast to text: exact under the settings of a session of this package; see `Dialect.as_text`."""
        return f"CAST({self.quote(key.name)} AS text)"

    def part(self, expression: str, count: int) -> str:
        """Return the part by PostgreSQL's own hash; see `Dialect.part`."""
        return f"((hashtext(CAST({expression} AS text))::bigint & 2147483647) % {count})"

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
                   CASE WHEN a.attcollation = 0 THEN '' WHEN c.collname = 'default' THEN d.datcollate
                        ELSE c.collname END,
                   a.attidentity <> '' OR coalesce(pg_get_expr(e.adbin, e.adrelid) LIKE 'nextval(%', false),
                   coalesce((SELECT s.seqcache FROM pg_sequence s
                             JOIN pg_depend o ON o.objid = s.seqrelid AND o.classid = 'pg_class'::regclass
                             WHERE o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
                             LIMIT 1), 1)
            FROM pg_attribute a
            JOIN pg_database d ON d.datname = current_database()
            LEFT JOIN pg_collation c ON c.oid = a.attcollation
            LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
            WHERE a.attrelid = to_regclass({_text(self.table(parts))}) AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum"""

    def types_query(self, query: str, columns: Sequence[str]) -> str:
        """Return the query for the types of columns of a query, which works where it has no rows as well."""
        names = ", ".join(map(self.quote, columns))
        types = ", ".join(f"CAST(pg_typeof(q.{self.quote(each)}) AS text)" for each in columns)
        return f"SELECT {types} FROM (SELECT 1) one LEFT JOIN (SELECT {names} FROM ({query}) q LIMIT 1) q ON true"

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for whole, valid, unique indexes; see `Dialect.unique_query`."""
        return f"""
            SELECT CAST(i.indexrelid AS bigint), i.indisprimary, a.attname
            FROM pg_index i
            CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place)
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
            WHERE i.indrelid = to_regclass({_text(self.table(parts))}) AND i.indisunique AND i.indisvalid
              AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
            ORDER BY i.indexrelid, k.place"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return "SELECT CAST(clock_timestamp() AT TIME ZONE 'UTC' AS text)"

    def transactions_query(self) -> str:
        """Return the query for open transactions; see `Dialect.transactions_query`.

        `pg_locks` names those that have no id yet, which a snapshot misses: one may have a value of a sequence, or a
        time, already. A session that is known to be in another database can't write here.
        """
        return """
            SELECT CAST(l.virtualtransaction AS text), CAST(a.xact_start AT TIME ZONE 'UTC' AS text),
                   concat_ws(', ', 'pid ' || l.pid, nullif(a.application_name, ''), a.usename)
            FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
              AND coalesce(a.datname = current_database(), true)
            UNION ALL
            SELECT 'prepared ' || gid, NULL, concat_ws(', ', 'prepared transaction ' || gid, owner)
            FROM pg_prepared_xacts WHERE database = current_database()"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the cluster and the database; see `Dialect.identity_query`."""
        return (
            "SELECT CAST(system_identifier AS text) || '/' || "
            "(SELECT CAST(oid AS text) FROM pg_database WHERE datname = current_database()) FROM pg_control_system()"
        )


def _text(value: str) -> str:
    """Return a literal of text that means the same whatever `standard_conforming_strings` is."""
    quoted = "'" + value.replace("'", "''") + "'"
    return " E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted
