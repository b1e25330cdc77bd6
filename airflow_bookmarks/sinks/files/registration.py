"""Add the partitions of a publish to the table of a catalog, by whatever this process reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.errors import OptionError, PublishError, SourceError
from airflow_bookmarks.sinks.files.catalog import GLUE, CatalogTable, TableDefinition, partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sinks.files.catalog import CatalogPartition, PartitionCatalog


@dataclass(frozen=True, slots=True)
class Registration:
    """The partitions that the publish of an output adds to a table of a catalog."""

    catalog: PartitionCatalog
    table: CatalogTable
    folder: str
    partitions: Sequence[CatalogPartition]
    definition: TableDefinition | None = None

    @classmethod
    def of_entry(
        cls, entry: OutputEntry, files: Iterable[str], catalogs: Mapping[str, PartitionCatalog], what: str, then: str
    ) -> Self | None:
        """Return that of a stored output with these files; None where it is to be in no catalog.

        Args:
            catalogs: those that this process reaches, by their kind, besides that of Glue.
            what: the run and the output, for errors.
            then: what is left as it is, and what to do.

        Raises:
            PublishError: this process does not reach the catalog.
        """
        if entry.metadata.catalog_table is None:
            return None
        try:
            table = CatalogTable.parse(entry.metadata.catalog_table)
            stored = entry.metadata.catalog_definition
            definition = None if stored is None else TableDefinition.decode(stored)
            return cls(reached(table, catalogs), table, entry.target, partitions_of(files, entry.target), definition)
        except (OptionError, SourceError) as error:
            raise PublishError(f"{what}: {str(error).rstrip('.')}. {then}") from error

    def add(self, what: str, then: str) -> None:
        """Add them; for the arguments see `of_entry`.

        Raises:
            PublishError: the catalog does not take them.
        """
        try:
            if self.definition is not None:
                self.catalog.define(self.table.name, self.folder, self.definition)
            self.catalog.add(self.table.name, self.folder, self.partitions)
        except (OptionError, SourceError) as error:
            raise PublishError(
                f"{what}: its files are published, and its partitions are not in the catalog: "
                f"{str(error).rstrip('.')}. {then}"
            ) from error


def reached(table: CatalogTable, catalogs: Mapping[str, PartitionCatalog]) -> PartitionCatalog:
    """Return the catalog of a table as this process reaches it.

    Raises:
        SourceError: it does not.
    """
    if table.catalog in catalogs:
        return catalogs[table.catalog]
    if table.catalog == GLUE:
        from airflow_bookmarks.sinks.files.glue import GlueCatalog  # boto3, which an output without a table needs not

        return GlueCatalog()
    raise SourceError(
        f"only Spark reaches the catalog of the table {table.name}, and this process has no Spark session. Run the "
        "job, whose driver has one"
    )
