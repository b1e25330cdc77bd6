"""Tables of a catalog over the folders of files: a publish adds the partitions in which it has made files visible.

    "glue:sales.orders"     a table of the Glue Data Catalog, which any process reaches
    "spark:sales.orders"    a table of Spark's catalog, such as one of a Hive metastore, which Spark alone reaches

What is added is there, however often it is added. A partition whose last file an overwrite has deleted stays, empty.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from airflow_bookmarks.core.errors import OptionError, SourceError, StateCorruptError
from airflow_bookmarks.core.selection.partition import partition_values
from airflow_bookmarks.files.opener import canonical_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

GLUE, SPARK = "glue", "spark"
CATALOGS = (GLUE, SPARK)


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of a catalog, by the kind of the catalog and by its name there."""

    catalog: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the table of a text as scripts and state have it; without a kind it is one of Spark's catalog.

        Raises:
            OptionError: it names none.

        Example:
            >>> CatalogTable.parse("glue:sales.orders"), CatalogTable.parse("sales.orders")
            (CatalogTable(catalog='glue', name='sales.orders'), CatalogTable(catalog='spark', name='sales.orders'))
        """
        catalog, colon, name = text.partition(":")
        found = cls(catalog, name) if colon and "`" not in catalog else cls(SPARK, text)
        if found.catalog not in CATALOGS or not found.name.strip():
            raise OptionError(f"{text!r} is no table of a catalog, such as 'glue:sales.orders' or 'spark:sales.orders'")
        return found

    def __str__(self) -> str:
        return f"{self.catalog}:{self.name}"


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition to add: its folder below that of the table, and the value of each column, as folders have it."""

    folder: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """How a publish makes a table that is not there, or widens one that is.

    Args:
        columns: names and types as Hive writes them, without those of partitions.
        partitions: the same of the partition columns.
        format: that of its files: parquet, orc, avro, json or csv.
        options: those by which the files are read.
        adds_columns: whether a table that is there gets the columns that it lacks.
    """

    columns: tuple[tuple[str, str], ...]
    partitions: tuple[tuple[str, str], ...] = ()
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    adds_columns: bool = True

    def encode(self) -> str:
        """Return it as state keeps it: a JSON object."""
        return json.dumps(
            {
                "columns": self.columns,
                "partitions": self.partitions,
                "format": self.format,
                "options": dict(self.options),
                "adds_columns": self.adds_columns,
            }
        )

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            told = json.loads(text)
            columns, partitions = (_pairs(told[name]) for name in ("columns", "partitions"))
            options = {str(key): str(value) for key, value in told["options"].items()}
            return cls(columns, partitions, str(told["format"]), options, bool(told["adds_columns"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateCorruptError(
                f"the stored definition of a table of a catalog can't be read ({error}); nothing was changed"
            ) from error


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(kind)) for name, kind in value)


class PartitionCatalog(Protocol):
    """A catalog, as a publish reaches it."""

    def check(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """Return the full name of a table, if it lies in a folder and has these partition columns, in any case.

        Raises:
            OptionError: it does not, or there is no such table. SourceError: the catalog is out of reach.
        """
        ...

    def fits(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """Return the full name of a table, as `check` does, or of one that is not there yet.

        Raises:
            OptionError: it is there and lies elsewhere, or has other partition columns. SourceError: see `check`.
        """
        ...

    def outside(self, table: str, folder: str) -> tuple[str, str] | None:
        """Return a partition that lies outside of the folder of a table, and where; None: there is none, or no table.

        Raises:
            SourceError: the catalog is out of reach.
        """
        ...

    def define(self, table: str, folder: str, definition: TableDefinition) -> None:
        """Make a table that is not there, or give one that is the columns that it lacks; it can be repeated.

        Raises:
            OptionError: the table lies elsewhere. SourceError: the catalog does not take it.
        """
        ...

    def add(self, table: str, folder: str, partitions: Sequence[CatalogPartition]) -> None:
        """Add the partitions that a table does not have.

        Args:
            table: its name in the catalog.
            folder: where the table lies: of another one that has this name now, nothing is changed.
            partitions: none for a table without partition columns, which is only looked at.

        Raises:
            OptionError: the table lies elsewhere, or is not there. SourceError: the catalog does not take them, or has
            one already that lies in another folder, where its readers would not find what was published.
        """
        ...


def elsewhere(table: str, partition: str, location: str, wanted: str) -> SourceError:
    """Return the error that a catalog has a partition already, and in another folder than its files are in."""
    return SourceError(
        f"{table} has a partition {partition!r} already that lies in {location or 'no folder'!r}, and its files are in "
        f"{wanted!r}, where nobody who reads the table finds them. It was left as it is. Give the partition that "
        "folder, or drop it from the table"
    )


def is_outside(location: str, folder: str) -> bool:
    """Whether a location of a catalog is not below the folder of a table."""
    return not f"{canonical_folder(location)}/".startswith(f"{folder.rstrip('/')}/")


def partitions_of(files: Iterable[str], folder: str) -> list[CatalogPartition]:
    """Return the partitions in which files below the folder of a table lie, each once, in their order.

    Example:
        >>> partitions_of(["/lake/orders/day=1/a", "/lake/orders/day=1/b"], "/lake/orders")
        [CatalogPartition(folder='day=1', values=(('day', '1'),))]
    """
    first = {file.rpartition("/")[0]: file for file in files}
    below = {parent: tuple(partition_values(file, folder).items()) for parent, file in first.items()}
    start = len(folder.rstrip("/")) + 1
    return [CatalogPartition(parent[start:], values) for parent, values in sorted(below.items()) if values]
