"""How a column of a frame goes to Redshift: as plain Parquet, by a temporary table, cast on the way into the target.

Parquet, and not CSV or Avro: it tells NULL from empty text and keeps line ends, quotes and NaN without an escape, it is
in each Spark, and a COPY of it fails where a text would be rounded or cut. What the documentation of COPY says of it
decides the rest:

    values go in by their order, and the numbers of      a temporary table has exactly the columns of the files; the
    columns have to match                                INSERT after it names those of the target
    the types of a file have to be those of the table    the temporary table has them; the INSERT casts

Only types whose form in Parquet is beyond doubt are written: booleans, numbers of 4 and 8 bytes, and text. Decimals,
dates and times travel as text, and times with their offset, so that no setting of Spark changes what is loaded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_bookmarks.core.database.dialects.quoting import quoted
from airflow_bookmarks.core.errors import OptionError

_TEXT = "varchar(65535)"  # the longest that Redshift has, in bytes
# Of a type of Spark: what the temporary table has, and what a target has that the publish makes.
_TYPES = {
    "boolean": ("boolean", "boolean"),
    "tinyint": ("integer", "smallint"),
    "smallint": ("integer", "smallint"),
    "int": ("integer", "integer"),
    "bigint": ("bigint", "bigint"),
    "float": ("real", "real"),
    "double": ("double precision", "double precision"),
    "string": (_TEXT, _TEXT),
    "date": (_TEXT, "date"),
    "timestamp": (_TEXT, "timestamp"),
}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)", re.ASCII)
_STRING = re.compile(r"(var)?char\(\d+\)", re.ASCII)


@dataclass(frozen=True, slots=True)
class CopyColumn:
    """One column: its name in the target, and its type in the frame, as `DataType.simpleString` writes it."""

    name: str
    kind: str

    @classmethod
    def of(cls, name: str, kind: str) -> CopyColumn:
        """Return the column of a name and a type.

        Raises:
            OptionError: Redshift has no plain type for it.

        Example:
            >>> CopyColumn.of("price", "decimal(10,2)").value
            'CAST("price" AS decimal(10,2))'
        """
        found = "string" if _STRING.fullmatch(kind) else kind
        if found not in _TYPES and not _DECIMAL.fullmatch(found):
            raise OptionError(
                f"the column {name!r} is {kind}, which can't be loaded into Redshift. Nothing was written or "
                "committed. Take its fields as columns, make it text (to_json, cast), or leave it out of the frame."
            )
        return cls(name, found)

    @property
    def is_text(self) -> bool:
        """Whether it is written to Parquet as text."""
        return self.loaded == _TEXT

    @property
    def scale(self) -> int | None:
        """The digits after the point of a decimal; None for other types.

        Example:
            >>> CopyColumn("price", "decimal(10,2)").scale
            2
        """
        found = _DECIMAL.fullmatch(self.kind)
        return None if found is None else int(found[2])

    @property
    def loaded(self) -> str:
        """The type of the temporary table."""
        return _TEXT if self.scale is not None else _TYPES[self.kind][0]

    @property
    def made(self) -> str:
        """The type in a target that the publish makes.

        Example:
            >>> CopyColumn("at", "timestamp").made, CopyColumn("n", "tinyint").made
            ('timestamp', 'smallint')
        """
        return self.kind if self.scale is not None else _TYPES[self.kind][1]

    @property
    def value(self) -> str:
        """What the INSERT selects of the temporary table; a session in UTC makes a `timestamp` of a `timestamptz`."""
        name = quoted("redshift", self.name)
        if self.kind == "timestamp":
            return f"CAST({name} AS timestamptz)"
        return name if self.loaded == self.made or not self.is_text else f"CAST({name} AS {self.made})"
