"""Which types of a frame the columns of a table take, in an INSERT as Spark makes it.

Two sources tell. The database itself, which refuses a statement that brings no rows (`no_rows`): a type for which it
has no conversion, and a column that needs a value and gets none. And what is known of values: text that is a number,
as `12` in a column of integers, is converted by all of them, and so may be what is none, by some: MariaDB makes 13
of `12.7`. So text goes into no column of integers or floats; into decimals it does, which have more digits there than
in Spark. Whatever is not known here is left to the database.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.quoting import is_mysql, quoted
from airflow_bookmarks.core.database.publish_sql import names_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.core.database.sink_table import SinkTable

NO_CONVERSION = "42804"  # PostgreSQL: a column has no conversion from the type of its value
NO_DEFAULT = "1364"  # MySQL: a column needs a value, and the statement has none

_LENGTH = re.compile(r"\(.*?\)")
_WHOLE = {"smallint", "integer", "bigint", "tinyint", "mediumint", "int"}
_FLOATS = {"real", "double precision", "float", "double"}
_DECIMALS = {"numeric", "decimal"}
_TIMES = {"date", "datetime", "timestamp", "timestamp without time zone", "timestamp with time zone"}
_OF_TEXT = {"string", "char", "varchar"}
_OF_TIME = {"date", "timestamp", "timestamp_ntz"}
_NESTED = {"struct", "map"}
# As the driver of PostgreSQL sends values. Text and times it sends without a type, which that of the column then reads.
_SENT = {
    "tinyint": "int4",
    "smallint": "int4",
    "int": "int4",
    "bigint": "int8",
    "float": "float4",
    "double": "float8",
    "decimal": "numeric",
    "boolean": "bool",
    "binary": "bytea",
}


def is_kept(dialect: DialectName, given: str) -> bool:
    """Return whether tables have a type for one of a frame.

    Args:
        dialect: of the table.
        given: the type in the frame, as `DataType.simpleString` writes it.

    Example:
        >>> is_kept("postgresql", "array<int>"), is_kept("mariadb", "array<int>"), is_kept("mariadb", "map<int,int>")
        (True, False, False)
    """
    kind = _kind(given)
    return kind not in _NESTED and not (kind == "array" and is_mysql(dialect))


def is_taken(dialect: DialectName, given: str, declared: str) -> bool:
    """Return whether a column takes values of a type of a frame, as far as that is known without the database.

    Args:
        dialect: of the table.
        given: the type in the frame.
        declared: the type in the table, as its catalog has it.

    Example:
        >>> is_taken("postgresql", "string", "integer"), is_taken("mariadb", "string", "decimal(10,2)")
        (False, True)
        >>> is_taken("mariadb", "int", "bigint(20) unsigned"), is_taken("postgresql", "timestamp", "date")
        (True, True)
    """
    if dialect == "sqlite":  # its columns take values of any type
        return True
    kind, column = _kind(given), _column(declared)
    if kind in _OF_TEXT:
        return column not in _WHOLE | _FLOATS
    if kind in _OF_TIME:
        return column not in _WHOLE | _FLOATS | _DECIMALS | {"boolean"}
    return not (kind == "boolean" and column in _TIMES)


def no_rows(dialect: DialectName, table: SinkTable, columns: Sequence[tuple[str, str]]) -> str | None:
    """Return the statement that brings no rows, and that a database refuses as it would refuse any; None: it has none.

    `columns` are names in the table with types of the frame. PostgreSQL only plans it, so that no trigger fires.

    Example:
        >>> from airflow_bookmarks.core.database.sink_table import SinkTable
        >>> no_rows("postgresql", SinkTable("dw", "dim"), [("id", "bigint"), ("name", "string")])
        'EXPLAIN INSERT INTO "dw"."dim" ("id", "name") SELECT CAST(NULL AS int8), NULL WHERE false'
    """
    into = f"INSERT INTO {table.sql(dialect)} ({names_of(dialect, [name for name, _ in columns])})"
    if dialect == "postgresql":
        sent = ((name, _SENT.get(_kind(given))) for name, given in columns)
        values = ", ".join("NULL" if kind is None else f"CAST(NULL AS {kind})" for _, kind in sent)
        return f"EXPLAIN {into} SELECT {values} WHERE false"
    if is_mysql(dialect):
        source = f"(SELECT 1 AS {quoted(dialect, '_bm_one')}) one"
        return f"{into} SELECT {', '.join('NULL' for _ in columns)} FROM {source} WHERE 1 = 0"
    return None


def _kind(given: str) -> str:
    """Return the type of a frame without what follows its name."""
    found = re.match(r"[a-z_]+", given)
    return given if found is None else found[0]


def _column(declared: str) -> str:
    """Return a declared type without lengths and signs."""
    words = _LENGTH.sub(" ", declared.lower()).replace(" unsigned", "").replace(" zerofill", "")
    return " ".join(words.split())
