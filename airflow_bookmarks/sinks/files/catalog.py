"""Tables of a catalog over the folders of files: a publish adds the partitions in which it has made files visible.

    "glue:sales.orders"     a table of the Glue Data Catalog, which any process reaches
    "spark:sales.orders"    a table of Spark's catalog, such as one of a Hive metastore, which Spark alone reaches

What is added is there, however often it is added. A partition whose last file an overwrite has deleted stays, empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.partition import partition_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


class PartitionCatalog(Protocol):
    """A catalog, as a publish reaches it."""

    def check(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """Return the full name of a table, if it lies in a folder and has these partition columns, in any case.

        Raises:
            OptionError: it does not, or there is no such table. SourceError: the catalog is out of reach.
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
