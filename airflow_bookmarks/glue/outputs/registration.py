"""Tables of a catalog that writes make and widen: `enableUpdateCatalog`, `updateBehavior`, `setCatalogInfo`.

enable             by whoever publishes the run, after the files are there
any other run      after the write
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.text.catalog_name import quoted
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.files.catalog import GLUE, SPARK, CatalogTable, TableDefinition, partitions_of
from airflow_bookmarks.sinks.files.registration import reached
from airflow_bookmarks.spark.tables.catalog import SparkCatalog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.outputs.formats import FileFormat
    from airflow_bookmarks.glue.outputs.options import GivenOptions
    from airflow_bookmarks.glue.run import GlueRun

_BEHAVIORS = ("UPDATE_IN_DATABASE", "LOG")


@dataclass(frozen=True, slots=True)
class CatalogUpdate:
    """The table that a write makes, or gives its new partitions and columns.

    Args:
        table: the table, with the kind of its catalog.
        adds_columns: whether a table that is there gets columns that it lacks; `updateBehavior="LOG"` leaves them.
    """

    table: CatalogTable
    adds_columns: bool = True

    @classmethod
    def of(cls, given: GivenOptions, run: GlueRun, table: Mapping[str, str] | None) -> Self | None:
        """Return what the options ask for; None where they ask for no update.

        Args:
            given: the options of the call.
            run: the current run.
            table: `database` and `table_name`, by `setCatalogInfo` or of a write to a table; None: there is none.

        Raises:
            OptionError: an option has a value that is none of its own, or no table is named.
        """
        is_wanted = given.flag("enableUpdateCatalog", default=False)
        behavior = (given.text("updateBehavior", default=_BEHAVIORS[0]) or _BEHAVIORS[0]).upper()
        if behavior not in _BEHAVIORS:
            raise given.refused(f"updateBehavior={behavior!r}: expected one of {', '.join(_BEHAVIORS)}")
        if not is_wanted:
            return None
        if table is None:
            raise given.refused("enableUpdateCatalog needs a table: sink.setCatalogInfo(catalogDatabase, ...)")
        database, name = table["database"], table["table_name"]
        if run.settings.catalog == "hive":
            return cls(CatalogTable(SPARK, quoted(database, name)), behavior == _BEHAVIORS[0])
        if table.get("catalog_id"):
            run.warn_once(
                f"{given.call}: the table is updated in the catalog of the credentials, whatever catalog_id says"
            )
        return cls(CatalogTable(GLUE, f"{database}.{name}"), behavior == _BEHAVIORS[0])

    def definition(self, rows: DataFrame, partition_by: Sequence[str], fmt: FileFormat) -> TableDefinition:
        """Return how the table is made of rows, or widened by them."""
        by = {name.lower() for name in partition_by}
        kinds = {field.name: _hive_type(field.dataType.simpleString()) for field in rows.schema.fields}
        columns = tuple((name, kind) for name, kind in kinds.items() if name.lower() not in by)
        partitions = tuple((name, _named(kinds, name)) for name in partition_by)
        return TableDefinition(columns, partitions, fmt.name, dict(fmt.options), self.adds_columns)

    def register_now(self, run: GlueRun, path: str, definition: TableDefinition) -> None:
        """Make the table, or widen it, and add the partitions that lie in a folder.

        Raises:
            OptionError: the table lies elsewhere. SourceError: the catalog does not take it.
        """
        files = open_filesystem(path)
        folder = files.canonical(path)
        try:
            there = files.list(folder, recursive=True).files.paths
        except SourceMissingError:  # nothing was written
            return
        catalog = reached(self.table, {SPARK: SparkCatalog(run.spark)})
        catalog.fits(self.table.name, folder, [name for name, _ in definition.partitions])
        catalog.define(self.table.name, folder, definition)
        catalog.add(self.table.name, folder, partitions_of(there, folder))


def _hive_type(kind: str) -> str:
    return kind.replace("timestamp_ntz", "timestamp").replace("variant", "string")


def _named(kinds: Mapping[str, str], name: str) -> str:
    return next(kind for column, kind in kinds.items() if column.lower() == name.lower())
