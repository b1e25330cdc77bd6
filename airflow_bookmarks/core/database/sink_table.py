"""Tables that a sink writes to: their names as people write them, as state keeps them, and as SQL quotes them.

Names are taken letter by letter: `Sales.Orders` is not `sales.orders`, and a database that folds case finds neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from airflow_bookmarks.core.database.table_name import parse_table
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

DialectName: TypeAlias = Literal["postgresql", "mysql", "mariadb", "sqlite"]

_BARE = re.compile(r"[^\s\".`\[\]();'#]+")


def is_mysql(dialect: DialectName) -> bool:
    """Whether a database is MySQL or MariaDB, which share what is said of either."""
    return dialect in ("mysql", "mariadb")


def quoted(dialect: DialectName, identifier: str) -> str:
    """Return the name of a table or column, quoted: its case and its blanks stay.

    Raises:
        OptionError: it is empty, or has a character that no name has.

    Example:
        >>> quoted("postgresql", 'a"b c'), quoted("mariadb", "a`b")
        ('"a""b c"', '`a``b`')
    """
    if not identifier or "\0" in identifier:
        raise OptionError(f"{identifier!r} can't be a name in a database. Nothing was written or changed.")
    mark = "`" if is_mysql(dialect) else '"'
    return f"{mark}{identifier.replace(mark, mark * 2)}{mark}"


def text_literal(dialect: DialectName, text: str) -> str:
    """Return a text as a literal.

    MySQL reads a backslash as its `sql_mode` says, so there a text is written in hexadecimal.

    Example:
        >>> text_literal("postgresql", "it's"), text_literal("mysql", "é")
        ("'it''s'", "_utf8mb4 x'c3a9'")
    """
    if is_mysql(dialect):
        return f"_utf8mb4 x'{text.encode().hex()}'"
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@dataclass(frozen=True, slots=True)
class SinkTable:
    """A table, with its schema (of MySQL: its database; of SQLite: `main`); None: that of the connection."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> SinkTable:
        """Return the table that a text names: `dim`, `public.dim`, `"Sales 2013"."Order Lines"`, or what `str` wrote.

        Raises:
            OptionError: it names no table, or has more than two parts.

        Example:
            >>> SinkTable.parse('public."Order ""Lines"" 2013"')
            SinkTable(schema='public', name='Order "Lines" 2013')
        """
        return cls.of_parts(parse_table(text, most=2))

    @classmethod
    def of_parts(cls, parts: Sequence[str]) -> SinkTable:
        """Return the table of which these are the parts of its name, the schema before it."""
        return cls(parts[-2] if len(parts) > 1 else None, parts[-1])

    def __str__(self) -> str:
        return ".".join(_shown(part) for part in (self.schema, self.name) if part is not None)

    def sql(self, dialect: DialectName) -> str:
        """Return it as SQL names it.

        Example:
            >>> SinkTable("public", "dim").sql("postgresql"), SinkTable(None, "dim").sql("mysql")
            ('"public"."dim"', '`dim`')
        """
        return ".".join(quoted(dialect, part) for part in (self.schema, self.name) if part is not None)

    def beside(self, name: str) -> SinkTable:
        """Return another table in the same schema."""
        return SinkTable(self.schema, name)


def _shown(part: str) -> str:
    """Return a part of a name as people write it: in double quotes only where it needs them."""
    if _BARE.fullmatch(part):
        return part
    doubled = part.replace('"', '""')
    return f'"{doubled}"'
