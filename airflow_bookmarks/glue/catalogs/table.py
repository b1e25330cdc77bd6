"""A table as a catalog has it: its columns, its partitions, where its files lie, and of what format they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.selection.partition import NULL_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.core.files.listed_partitions import Values

# Of a Data Catalog; Spark knows what it calls text, and has no length of it in partitions.
_TEXTS = ("varchar", "char", "string")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its type as Hive writes it: "bigint", "struct<a:int>"."""

    name: str
    type: str

    @property
    def ddl(self) -> str:
        """The type as Spark writes it."""
        return "string" if self.type.lower().startswith(_TEXTS) else self.type


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a table.

    Args:
        values: as text, in the order of the table's partition columns.
        location: its folder; None where the catalog has none.
        created_ms: when the catalog got it, in milliseconds since 1970 UTC; 0 where that is not known.
    """

    values: Sequence[str]
    location: str | None
    created_ms: int = 0

    @property
    def texts(self) -> Values:
        """The values, None for NULL."""
        return tuple(None if value == NULL_VALUE else value for value in self.values)


@dataclass(frozen=True, slots=True)
class GlueTable:
    """A table of a catalog.

    Args:
        database: the name of its database.
        name: its own.
        columns: without those of partitions.
        partition_columns: in their order.
        location: the folder of its files, or what its database calls it; None for a view.
        parameters: of the table and of its storage, by their own names; options of reads may stand there.
        serde: the class that reads its rows, and `serde_parameters` what that is told.
    """

    database: str
    name: str
    columns: Sequence[Column] = ()
    partition_columns: Sequence[Column] = ()
    location: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    serde: str | None = None
    serde_parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The table, as messages name it."""
        return f"table {self.database}.{self.name}"

    @property
    def connection(self) -> str | None:
        """The name of the connection by which it is reached, where it is no files."""
        return self.parameters.get("connectionName") or None

    @property
    def classification(self) -> str:
        """What the catalog says of its format, in lower case; may be empty."""
        return self.parameters.get("classification", "").lower()

    @property
    def partition_types(self) -> Mapping[str, str]:
        """The types of the partition columns, as Spark writes them."""
        return {column.name: column.ddl for column in self.partition_columns}


class Catalog(Protocol):
    """Where tables are looked up."""

    def table(self, database: str, name: str) -> GlueTable:
        """Return a table.

        Raises:
            EntityNotFoundError: there is none.
            CatalogError: the catalog refuses, or does not answer.
        """
        ...

    def partitions(self, table: GlueTable, expression: str | None = None) -> Iterable[Partition]:
        """Return the partitions of a table.

        Args:
            expression: a condition on partition columns that the catalog itself evaluates; None: all.

        Raises:
            CatalogError: the catalog refuses the expression or the request, or does not answer.
            OptionError: this catalog evaluates none.
        """
        ...
