"""MySQL and MariaDB, as far as reading by key needs it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.database.dialect import Dialect, TableColumn, TypesByTable, Witness
from airflow_bookmarks.core.database.dialects.quoting import backticked
from airflow_bookmarks.core.database.dialects.quoting import hexadecimal_text as _text
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
_SECOND, _MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
_DECLARED = re.compile(r"(\w+)(?:\((\d+)(?:,\d+)?\))?")
_ZERO = {
    KeyType.DATE: "'0000-00-00'",
    KeyType.LOCAL_TIME: "'0000-00-00 00:00:00'",
    KeyType.TIME: "'0000-00-00 00:00:00'",
}
_TYPES_TABLE = "_bookmarks_types_of_a_query"  # in this session it would hide a table of the same name
# Whether a transaction has a number of its own: else it has 0, or in MySQL one that is larger than any.
_HAS_ID = "(trx_id > 0 AND trx_id < 281474976710656)"
# `trx_started` is in the zone of the server. Where its clock was put back, an hour came twice: the earlier one counts.
_BEGUN = "convert_tz(trx_started, 'SYSTEM', '+00:00')"
_STARTED = (
    f"CASE WHEN convert_tz({_BEGUN} - INTERVAL 1 HOUR, '+00:00', 'SYSTEM') = trx_started "
    f"THEN {_BEGUN} - INTERVAL 1 HOUR ELSE {_BEGUN} END"
)
# The scheduler runs statements of events in threads of the command Connect.
_RUNS = (
    "id <> connection_id() AND command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID') "
    "AND command NOT LIKE 'Slave%' AND (command <> 'Connect' OR info IS NOT NULL)"
)


class MySQL(Dialect):
    """MySQL from version 8 on."""

    name: ClassVar[str] = "mysql"
    is_tried: ClassVar[bool] = False
    driver: ClassVar[str] = "com.mysql.cj.jdbc.Driver"
    looks_back: ClassVar[bool] = True
    compares_rows: ClassVar[bool] = False  # a comparison of rows reads the whole index
    denied: ClassVar[str] = "1227"
    grant: ClassVar[str] = "GRANT PROCESS ON *.* TO <user>"
    # A statement waits for the locks of its tables before its transaction begins, for a day by default.
    head_start: ClassVar[timedelta] = timedelta(days=1)

    def quote(self, identifier: str) -> str:
        """Return a name in backticks; see `Dialect.quote`."""
        return backticked(identifier)

    def time_limit(self, limit: timedelta) -> str:
        """Return the setting for it, in milliseconds; see `Dialect.time_limit`."""
        return f"SET max_execution_time = {limit // _MILLISECOND}"

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

    def endless(self, key: KeyColumn) -> str | None:
        """Return the condition for a zero date; see `Dialect.endless`."""
        return None if key.type not in _ZERO else f"{self.quote(key.name)} = {_ZERO[key.type]}"

    def ending(self, key: KeyColumn) -> str | None:
        """Return the condition for a date that is no zero; see `Dialect.ending`."""
        return None if key.type not in _ZERO else f"{self.quote(key.name)} > {_ZERO[key.type]}"

    def part(self, expression: str, count: int) -> str:
        """Return the part by a checksum; see `Dialect.part`."""
        return f"(CRC32(CAST({expression} AS CHAR)) % {count})"

    def row_hash(self, columns: Sequence[TableColumn]) -> str:
        """Return a hash of the hashes of all values; see `Dialect.row_hash`. NULL has none, and an empty text has one.

        Text is hashed by its bytes. A float is made a double, all of whose digits are written.
        """
        values = ", ".join(f"coalesce(sha2({self._exact(each)}, 256), 'null')" for each in columns)
        return f"left(sha2(concat_ws(' ', {values}), 256), 16)"

    def _exact(self, column: TableColumn) -> str:
        name, declared = self.quote(column.name), column.declared.lower()
        if declared.startswith("float"):
            return f"CAST({name} + 0e0 AS CHAR)"
        return f"CAST({name} + 0 AS CHAR)" if declared.startswith("bit") else f"CAST({name} AS BINARY)"

    def number_of_hash(self, columns: Sequence[TableColumn], count: int) -> str | None:
        """Return the number by the first byte of a SHA-256; see `Dialect.number_of_hash`."""
        texts = [self._lasting_text(column) for column in columns]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return None
        text = known[0] if len(known) == 1 else f"concat_ws('/', {', '.join(known)})"
        return f"(coalesce(ord(unhex(sha2(convert({text} USING utf8mb4), 256))), 0) & {count - 1})"

    def _lasting_text(self, column: TableColumn) -> str | None:
        """Return the text of a column that no setting of a session changes: `sql_mode` may pad a CHAR with blanks."""
        key, name = self._key_type(column), self.quote(column.name)
        if key is KeyType.INTEGER:
            return f"CAST({name} + 0 AS CHAR)"
        if key is KeyType.DATE:
            return f"date_format({name}, '%Y-%m-%d')"
        return f"trim(TRAILING ' ' FROM {name})" if key in (KeyType.TEXT, KeyType.UUID) else None

    def has_values(self, column: TableColumn) -> bool:
        """Whether it is one of integers, text, dates or UUIDs; see `Dialect.has_values`."""
        return self._lasting_text(column) is not None

    def values_query(self, column: TableColumn, source: str, where: str, most: int) -> str:
        """Return the query for values by their bytes: a collation takes `EU` for `eu`; see `Dialect.values_query`."""
        key = self._key_type(column)
        if key is KeyType.TEXT:
            values = f"SELECT DISTINCT {self._bytes(column)} AS bytes FROM {source} WHERE {where} LIMIT {most}"
            return f"SELECT convert(unhex(bytes) USING utf8mb4) FROM ({values}) found"
        text = self.as_text(KeyColumn(column.name, key or KeyType.TEXT))
        return f"SELECT DISTINCT {text} FROM {source} WHERE {where} LIMIT {most}"

    def has_value(self, column: TableColumn, text: str | None) -> str:
        """Return the condition that a column has a value, by its bytes; see `Dialect.has_value`."""
        name, key = self.quote(column.name), self._key_type(column)
        if text is None:
            return f"{name} IS NULL"
        if key is not None and key is not KeyType.TEXT:
            return f"{name} = {self.literal(text, KeyColumn(column.name, key))}"
        return f"{self._bytes(column)} = '{text.encode().hex().upper()}'"

    def _bytes(self, column: TableColumn) -> str:
        name = self.quote(column.name)
        # `sql_mode` may pad a CHAR with blanks, which are no part of its value.
        name = f"trim(TRAILING ' ' FROM {name})" if column.declared.lower().startswith("char") else name
        return f"hex(convert({name} USING utf8mb4))"

    def _key_type(self, column: TableColumn) -> KeyType | None:
        found = _DECLARED.match(column.declared.lower())
        return None if found is None else _TYPES.get(found[1])

    def columns_query(self, parts: Sequence[str]) -> str:
        """Return the query for the columns of a table or view; see `Dialect.columns_query`."""
        return f"""
            SELECT column_name, column_type, is_nullable = 'YES' AS nullable, coalesce(collation_name, '') AS collated,
                   extra LIKE '%auto_increment%' AS is_generated, 1 AS cached
            FROM information_schema.columns WHERE {_of_table(parts)} ORDER BY ordinal_position"""

    def unique_query(self, parts: Sequence[str]) -> str:
        """Return the query for unique indexes over whole columns; see `Dialect.unique_query`."""
        return f"""
            SELECT index_name, index_name = 'PRIMARY' AS is_primary, column_name, 0 AS is_deferred
            FROM information_schema.statistics s WHERE {_of_table(parts)} AND non_unique = 0
              AND NOT EXISTS (SELECT 1 FROM information_schema.statistics p WHERE p.table_schema = s.table_schema
                              AND p.table_name = s.table_name AND p.index_name = s.index_name
                              AND (p.sub_part IS NOT NULL OR p.column_name IS NULL))
            ORDER BY index_name, seq_in_index"""

    def now_query(self) -> str:
        """Return the query for the present time; see `Dialect.now_query`."""
        return "SELECT CAST(utc_timestamp(6) AS CHAR) AS now_utc"

    @property
    def witness(self) -> Witness:
        """A snapshot in a session of its own: InnoDB keeps its list while anyone asks for it ten times a second."""
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        return Witness(begin, "COMMIT", "SELECT CAST(connection_id() AS CHAR) AS owner")

    def open_queries(self) -> tuple[str, ...]:
        """Return the queries for statements, and then for transactions; see `Dialect.open_queries`.

        A statement has its time when it begins. Its transaction begins with the first row: after it has waited for the
        lock of a table, say. A transaction that only reads has no id, and one that was prepared has no thread any more.
        """
        return (
            self._statements_query(),
            f"""
            SELECT CASE WHEN {_HAS_ID} THEN concat('transaction ', trx_id)
                        ELSE concat('reading ', trx_mysql_thread_id, ' ', trx_started) END AS id,
                   CAST(nullif(trx_mysql_thread_id, 0) AS CHAR) AS owner,
                   CASE WHEN {_HAS_ID} THEN 2 ELSE 1 END AS stage, CAST({_STARTED} AS CHAR) AS since,
                   CASE WHEN trx_mysql_thread_id = 0 THEN concat('prepared transaction ', trx_id)
                        ELSE concat('thread ', trx_mysql_thread_id) END AS who
            FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id()""",
        )

    def _statements_query(self) -> str:
        """Return the query for statements that run. MySQL tells their age in seconds, and gives them no number."""
        return f"""
            SELECT concat('statement of ', id) AS statement, CAST(id AS CHAR) AS owner, 0 AS stage,
                   CAST(utc_timestamp() - INTERVAL time + 1 SECOND AS CHAR) AS since,
                   concat('thread ', id, ', ', user) AS who
            FROM information_schema.processlist WHERE {_RUNS}"""

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for a replica, and a table of another server; see `Dialect.unseen_query`."""
        table = "1 = 0" if parts is None else _of_table(parts)
        return f"""
            SELECT 'this server is a replica: read from its primary' AS why FROM information_schema.processlist
            WHERE command LIKE 'Slave%' OR (user = 'system user' AND command IN ('Connect', 'Query'))
            UNION ALL
            SELECT concat(table_name, ' is a table of another server, whose transactions are open there: read it there')
            FROM information_schema.tables WHERE {table} AND engine IN ('FEDERATED', 'CONNECT', 'SPIDER')"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the server; see `Dialect.identity_query`."""
        return "SELECT concat(@@server_uuid, '/', database()) AS server"


class MariaDB(MySQL):
    """MariaDB from version 10.5 on."""

    name: ClassVar[str] = "mariadb"
    is_tried: ClassVar[bool] = True
    driver: ClassVar[str] = "org.mariadb.jdbc.Driver"

    def time_limit(self, limit: timedelta) -> str:
        """Return the setting for it, in seconds; see `Dialect.time_limit`."""
        return f"SET max_statement_time = {limit / _SECOND}"

    def types_by_table(self, query: str, columns: Sequence[str]) -> TypesByTable:
        """Return how MariaDB tells the types of a query, of which no function tells any; see `Dialect.types_by_table`.

        Other sessions do not see such a table, and it commits nothing.
        """
        names = ", ".join(map(self.quote, columns))
        # LIMIT 0: the query is resolved, and not run.
        rows = f"SELECT {names} FROM ({query}\n) q LIMIT 0"
        return TypesByTable(
            f"CREATE OR REPLACE TEMPORARY TABLE {_TYPES_TABLE} AS {rows}",
            f"SHOW FULL COLUMNS FROM {_TYPES_TABLE}",
            f"DROP TEMPORARY TABLE {_TYPES_TABLE}",
            "1044",
            "CREATE TEMPORARY TABLES",
        )

    def _statements_query(self) -> str:
        """Return the query for statements that run, by their numbers and to the microsecond."""
        return f"""
            SELECT concat('statement ', id, ' ', query_id) AS statement, CAST(id AS CHAR) AS owner, 0 AS stage,
                   CAST(utc_timestamp(6) - INTERVAL ceil(time_ms * 1000) + 1000 MICROSECOND AS CHAR) AS since,
                   concat('thread ', id, ', ', user) AS who
            FROM information_schema.processlist WHERE {_RUNS}"""

    def unseen_query(self, parts: Sequence[str] | None) -> str:
        """Return the query for what MySQL has as well, and for Galera; see `Dialect.unseen_query`."""
        return f"""{super().unseen_query(parts)}
            UNION ALL
            SELECT 'this server is one of a Galera cluster, whose other servers write as well'
            FROM information_schema.global_status
            WHERE variable_name = 'wsrep_cluster_size' AND CAST(variable_value AS INT) > 1"""

    def identity_query(self) -> str:
        """Return the query for the identifier of the server; see `Dialect.identity_query`."""
        return "SELECT concat(@@server_uid, '/', database()) AS server"


def _of_table(parts: Sequence[str]) -> str:
    schema = _text(parts[-2]) if len(parts) > 1 else "database()"
    return f"table_schema = {schema} AND table_name = {_text(parts[-1])}"
