"""Hive-style tables of Spark's catalog: folders of files, whose partitions a Hive metastore knows by name.

Without a metastore Spark finds the partitions of most tables by listing, and there is nothing to add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.partition import NULL_VALUE
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.core.text.escaping import in_lines
from airflow_bookmarks.files.opener import canonical_folder, open_filesystem
from airflow_bookmarks.sinks.files.catalog import elsewhere, is_outside, partitions_of
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.tables.described import DescribedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_bookmarks.sinks.files.catalog import CatalogPartition, TableDefinition

# Of tables made by STORED AS: the class that reads them, and the format of their files.
_SERDES = (("ParquetHiveSerDe", "parquet"), ("OrcSerde", "orc"), ("AvroSerDe", "avro"))
# Formats whose files say by themselves how they are read: of others the options of the table would count, and no SQL
# tells these.
FORMATS = ("parquet", "orc", "avro", "json")
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
_AT_ONCE = 100  # partitions that one statement adds


@dataclass(frozen=True, slots=True)
class HiveStyleTable:
    """A table over a folder of files; `columns` are names and types, those of `partitions` last.

    `location` is that folder as the catalog spells it.
    """

    name: str
    format: str
    folder: str
    location: str
    columns: tuple[tuple[str, str], ...]
    partitions: tuple[str, ...]
    keeps_partitions: bool


class SparkCatalog:
    """Spark's catalog as a session reaches it; see `sinks.files.catalog.PartitionCatalog`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def find(self, name: str) -> HiveStyleTable | None:
        """Return a table by its full name; None if it is not there.

        Raises:
            OptionError: what is there takes no files of a managed output. SourceError: the catalog is out of reach.
        """
        parts = parts_of(name)
        try:
            told = DescribedTable.of(self._spark, quoted(*parts), with_properties=False)
        except SPARK_ERRORS as error:
            if any(said in str(error) for said in _MISSING):
                return None
            raise SourceError(f"the table {name} is out of reach: {in_lines(cause_of(error))}") from error
        if not told.provider:
            raise OptionError(f"{name} is a view, and takes no files")
        details = told.details
        if details.get("Num Buckets", "-1") not in ("-1", "0", ""):
            raise OptionError(f"the table {name} has buckets, which files of a run would not keep")
        written_as = _format_of(told)
        if written_as not in FORMATS:
            raise OptionError(
                f"the table {name} is of format {written_as}, and a managed output goes to one of {', '.join(FORMATS)}"
            )
        database, table = details.get("Database", ""), details.get("Table", "")
        full = (details.get("Catalog") or "spark_catalog", database, table)
        return HiveStyleTable(
            quoted(*full) if database and table else quoted(*parts),
            written_as,
            canonical_folder(told.location),
            told.location,
            told.columns,
            told.partitions,
            details.get("Partition Provider") == "Catalog",
        )

    def check(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """See `PartitionCatalog.check`."""
        found = self._found(table, folder)
        if [name.lower() for name in found.partitions] != [column.lower() for column in columns]:
            raise OptionError(
                f"the table {table} is partitioned by {list(found.partitions) or 'nothing'}, and the output by "
                f"{list(columns) or 'nothing'}"
            )
        return found.name

    def fits(self, table: str, folder: str, columns: Sequence[str]) -> str:
        """See `PartitionCatalog.fits`."""
        return table if self.find(table) is None else self.check(table, folder, columns)

    def outside(self, table: str, folder: str) -> tuple[str, str] | None:
        """See `PartitionCatalog.outside`; it takes a question for each partition."""
        found = self.find(table)
        if found is None or not found.keeps_partitions:
            return None
        try:
            names = sorted(self._names(found))
            for each in partitions_of([f"{folder}/{name}/part" for name in names], folder):
                location = self._location_of(found, each)
                if location and is_outside(location, folder):
                    return each.folder, location
        except SPARK_ERRORS as error:
            raise SourceError(f"the table {table} does not tell its partitions: {in_lines(cause_of(error))}") from error
        return None

    def define(self, table: str, folder: str, definition: TableDefinition) -> None:
        """See `PartitionCatalog.define`."""
        try:
            if self.find(table) is None:
                self._spark.sql(_made(table, folder, definition))
                return
            found = self._found(table, folder)
            has = {name.lower() for name, _ in found.columns}
            more = [(name, kind) for name, kind in definition.columns if name.lower() not in has]
            if more and definition.adds_columns:
                self._spark.sql(f"ALTER TABLE {found.name} ADD COLUMNS ({_ddl(more)})")
        except SPARK_ERRORS as error:
            raise SourceError(f"the table {table} can't be made or widened: {in_lines(cause_of(error))}") from error

    def add(self, table: str, folder: str, partitions: Sequence[CatalogPartition]) -> None:
        """See `PartitionCatalog.add`; what this session knows of the files of the table is forgotten."""
        found = self._found(table, folder)
        try:
            if partitions and found.keeps_partitions:
                self._add(found, partitions)
            self._spark.sql(f"REFRESH TABLE {found.name}")
        except SPARK_ERRORS as error:
            raise SourceError(f"the table {table} took no partitions: {in_lines(cause_of(error))}") from error

    def _add(self, table: HiveStyleTable, partitions: Sequence[CatalogPartition]) -> None:
        before = self._names(table)
        for start in range(0, len(partitions), _AT_ONCE):
            # By its column and type the catalog may spell a folder otherwise than the output: M=01 as m=1.
            some = " ".join(f"{_partition(p)} {_location(table, p)}" for p in partitions[start : start + _AT_ONCE])
            self._spark.sql(f"ALTER TABLE {table.name} ADD IF NOT EXISTS {some}")
        made = self._names(table) - before
        names = [_spelled(table, each) for each in partitions]
        # If a value has another text in the catalog, two folders of the output may be one partition there: 01 and 1.
        is_by_name = made.union(before).issuperset(names)
        for name, each in zip(names, partitions, strict=True):
            if name not in made or not is_by_name:
                self._check_folder(table, each)

    def _names(self, table: HiveStyleTable) -> frozenset[str]:
        """Return the partitions that a table has, written as folders are."""
        return frozenset(row[0] for row in self._spark.sql(f"SHOW PARTITIONS {table.name}").collect())

    def _check_folder(self, table: HiveStyleTable, partition: CatalogPartition) -> None:
        """Make sure that a partition that the catalog may have had already lies where an output has its files."""
        location = self._location_of(table, partition)
        wanted = f"{table.folder}/{partition.folder}"
        if not location or canonical_folder(location) != canonical_folder(wanted):
            raise elsewhere(f"the table {table.name}", partition.folder, location, wanted)

    def _location_of(self, table: HiveStyleTable, partition: CatalogPartition) -> str:
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {table.name} {_partition(partition)}").collect()
        return next((row[1] for row in rows if row[0] == "Location"), "")

    def _found(self, table: str, folder: str) -> HiveStyleTable:
        found = self.find(table)
        if found is None:
            raise OptionError(f"there is no table {table} in Spark's catalog")
        if found.folder != folder:
            raise OptionError(
                f"the table {table} lies in {found.folder!r}, and the output in {folder!r}: write to the folder of the "
                "table, or name a table that lies where the output does, or that is yet to be made"
            )
        return found


def _format_of(told: DescribedTable) -> str:
    if told.provider != "hive":
        return told.provider
    serde = told.details.get("Serde Library", "")
    return next((name for ending, name in _SERDES if serde.endswith(ending)), serde or "hive")


def _spelled(table: HiveStyleTable, partition: CatalogPartition) -> str:
    """Return the folder of a partition with the names that the table has for its columns."""
    values = [piece.partition("=")[2] for piece in partition.folder.split("/")]
    return "/".join(f"{name}={value}" for name, value in zip(table.partitions, values, strict=True))


def _location(table: HiveStyleTable, partition: CatalogPartition) -> str:
    folder = f"{table.location.rstrip('/')}/{partition.folder}"
    return f"LOCATION {_literal(folder)}"


def _partition(partition: CatalogPartition) -> str:
    """Return a partition as SQL names it: Spark casts the text of a value to the type of its column."""
    values = (f"{quoted(name)} = {_value(value)}" for name, value in partition.values)
    return f"PARTITION ({', '.join(values)})"


def _value(value: str) -> str:
    if value == NULL_VALUE:
        return "NULL"
    return _literal(value)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _made(table: str, folder: str, definition: TableDefinition) -> str:
    """Return the statement that makes a table over a folder."""
    by = ", ".join(quoted(name) for name, _ in definition.partitions)
    location = _literal(open_filesystem(folder).uri(folder))
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(*parts_of(table))} ({_ddl([*definition.columns, *definition.partitions])})"
        f" USING {definition.format}{f' PARTITIONED BY ({by})' if by else ''} LOCATION {location}"
    )


def _ddl(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
