"""Tables that a sink writes to: their names as people write them, as state keeps them, and as SQL quotes them.

Names are taken letter by letter: `Sales.Orders` is not `sales.orders`, and a database that folds case finds neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from airflow_bookmarks.core.errors import OptionError

DialectName: TypeAlias = Literal["postgresql", "mysql", "mariadb", "sqlite"]

_PART = re.compile(r"""\s*(?:"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^\s".`();']+))\s*(?:\.|$)""")
_BARE = re.compile(r"[^\s\".`();'#]+")


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
        parts: list[str] = []
        at = 0
        while at < len(text) and (found := _PART.match(text, at)) is not None:
            in_quotes, in_ticks, bare = found.groups()
            parts.append(
                in_quotes.replace('""', '"') if in_quotes else in_ticks.replace("``", "`") if in_ticks else bare
            )
            at = found.end()
        if at < len(text) or len(parts) not in (1, 2) or text.rstrip().endswith("."):
            raise OptionError(
                f"{text!r} is no name of a table. Nothing was written or committed. Write it as 'dim', 'public.dim' or "
                "'public.\"Order Lines\"'."
            )
        return cls(parts[0] if len(parts) == 2 else None, parts[-1])

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
