"""Tables that a sink writes to: their names as people write them, as state keeps them, and as SQL quotes them.

Names are taken letter by letter: `Sales.Orders` is not `sales.orders`, and a database that folds case finds neither.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.quoting import quoted
from airflow_bookmarks.core.database.table_name import parse_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.database.dialect import DialectName

_BARE = re.compile(r"[^\s\".`\[\]();'#]+")


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
        return ".".join(map(_shown, self.parts))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of its name."""
        return (self.name,) if self.schema is None else (self.schema, self.name)

    def sql(self, dialect: DialectName) -> str:
        """Return it as SQL names it.

        Example:
            >>> SinkTable("public", "dim").sql("postgresql"), SinkTable(None, "dim").sql("mysql")
            ('"public"."dim"', '`dim`')
        """
        return ".".join(quoted(dialect, part) for part in self.parts)

    def beside(self, name: str) -> SinkTable:
        """Return another table in the same schema."""
        return SinkTable(self.schema, name)


def _shown(part: str) -> str:
    """Return a part of a name as people write it: in double quotes only where it needs them."""
    if _BARE.fullmatch(part):
        return part
    doubled = part.replace('"', '""')
    return f'"{doubled}"'
