"""MySQL and MariaDB, as far as reading by key needs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn, Witness
from airflow_bookmarks.core.database.key import KeyColumn, KeyType

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"), KeyType.INTEGER),
    "decimal": KeyType.DECIMAL,
    "date": KeyType.DATE,
    "datetime": KeyType.LOCAL_TIME,
    "timestamp": KeyType.TIME,
    "uuid": KeyType.UUID,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), KeyType.TEXT),
}
_DECLARED = re.compile(r"(\w+)(?:\((\d+)(?:,\d+)?\))?")


class MySQL(Dialect):
    """MySQL from version 8 on."""

    name: ClassVar[str] = "mysql"
    driver: ClassVar[str] = "com.mysql.cj.jdbc.Driver"
    compares_rows: ClassVar[bool] = False  # a comparison of rows reads the whole index

    def quote(self, identifier: str) -> str:
        """Return a name in backticks; see `Dialect.quote`."""
        return "`" + identifier.replace("`", "``") + "`"

    def key_column(self, column: TableColumn) -> KeyColumn | None:
        """Return a column as a key; see `Dialect.key_column`. Text needs a collation that compares bytes."""
        found = _DECLARED.match(column.declared.lower())
        key = None if found is None else _TYPES.get(found[1])
        if found is None or key is None:
            return None
        if key is KeyType.TEXT and not (column.collation or "").endswith("_bin"):
            return None
        digits = int(found[2] or 0) if key in (KeyType.LOCAL_TIME, KeyType.TIME) else 6
        return KeyColumn(column.name, key, column.is_nullable, digits)

    def literal(self, text: str, key: KeyColumn) -> str:
        """Return a literal that becomes one of the type of its column; see `Dialect.literal`.

        A time stays text: a cast would make NULL of a zero date.
        """
        if key.type is KeyType.INTEGER:
            return str(int(text))
        if key.type is KeyType.DECIMAL:
            return f"CAST({_text(text)} AS DECIMAL(65, {len(text.partition('.')[2])}))"
        # Sessions of this package are in UTC, and MariaDB reads no zone.
        return _text(text.removesuffix("+00:00") if key.type is KeyType.TIME else text)

    def as_text(self, key: KeyColumn) -> str:
        """Return the cast to text; see `Dialect.as_text`. `+ 0` makes a number of bits."""
        name = self.quote(key.name)
        return f"CAST({name} + 0 AS CHAR)" if key.type is KeyType.INTEGER else f"CAST({name} AS CHAR)"

    def part(self, expression: str, count: int) -> str:
        """Return the part by a checksum; see `Dialect.part`."""
        return f"(CRC32(CAST({expression} AS CHAR)) % {count})"

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT column_name, column_type, is_nullable = 'YES', coalesce(collation_name, ''),
                   extra LIKE '%auto_increment%', 1
            FROM information_schema.columns WHERE {_of_table(parts)} ORDER BY ordinal_position"""

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for unique indexes over whole columns; see `Dialect.unique_query`."""
        return f"""
            SELECT index_name, index_name = 'PRIMARY', column_name
            FROM information_schema.statistics s WHERE {_of_table(parts)} AND non_unique = 0
              AND NOT EXISTS (SELECT 1 FROM information_schema.statistics p WHERE p.table_schema = s.table_schema
                              AND p.table_name = s.table_name AND p.index_name = s.index_name
                              AND (p.sub_part IS NOT NULL OR p.column_name IS NULL))
            ORDER BY index_name, seq_in_index"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return "SELECT CAST(utc_timestamp(6) AS CHAR)"

    @property
    def witness(self) -> Witness:
        """A snapshot in a session of its own: InnoDB keeps its list while anyone asks for it ten times a second."""
        return Witness("START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT concat('thread ', connection_id())")

    def transactions_query(self) -> str:
        """Return the query for open transactions, and statements that have begun and wait; see `Dialect`.

        A statement that waits for a lock of its table has its time already, and no transaction yet.
        """
        return """
            SELECT concat('transaction ', trx_id, ' of thread ', trx_mysql_thread_id),
                   CAST(convert_tz(trx_started, @@session.time_zone, '+00:00') AS CHAR),
                   concat('thread ', trx_mysql_thread_id)
            FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id()
            UNION ALL
            SELECT concat('statement ', id, ' ', query_id),
                   CAST(utc_timestamp(6) - INTERVAL time_ms * 1000 MICROSECOND AS CHAR),
                   concat('thread ', id, ', ', user)
            FROM information_schema.processlist
            WHERE id <> connection_id() AND command IN ('Query', 'Execute') AND info IS NOT NULL"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the server; see `Dialect.identity_query`."""
        return "SELECT concat(@@server_uuid, '/', database())"


class MariaDB(MySQL):
    """MariaDB from version 10.5 on."""

    name: ClassVar[str] = "mariadb"
    driver: ClassVar[str] = "org.mariadb.jdbc.Driver"

    def identity_query(self) -> str:
        """Return the query for the identifier of the server; see `Dialect.identity_query`."""
        return "SELECT concat(@@server_uid, '/', database())"


def _of_table(parts: Sequence[str]) -> str:
    schema = _text(parts[-2]) if len(parts) > 1 else "database()"
    return f"table_schema = {schema} AND table_name = {_text(parts[-1])}"


def _text(value: str) -> str:
    """Return a literal of text that means the same whether a backslash escapes in its session or not."""
    return f"_utf8mb4 0x{value.encode().hex()}" if "\\" in value else "'" + value.replace("'", "''") + "'"
