"""Spark's own catalog: a Hive metastore, or whatever the session has, by its SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.errors import AnalysisException

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.glue.catalogs.table import Column, GlueTable, Partition
from airflow_bookmarks.glue.errors import CatalogError, EntityNotFoundError
from airflow_bookmarks.spark.tables.described import DescribedTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_OPTION = re.compile(r"([^=,\[\]]+)=([^,\]]*)")
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "NoSuchDatabase", "NoSuchTable")


class SessionCatalog:
    """Tables of the catalog of a Spark session (`spark.bookmarks.glue.catalog=hive`).

    Example:
        table = SessionCatalog(spark).table("shop", "orders")
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def table(self, database: str, name: str) -> GlueTable:
        """Return a table; see `Catalog.table`."""
        try:
            told = DescribedTable.of(self._spark, _named(database, name))
        except AnalysisException as error:
            if any(sign in str(error) for sign in _MISSING):
                raise EntityNotFoundError(
                    f"table {database}.{name} does not exist in Spark's catalog (spark.bookmarks.glue.catalog=hive). "
                    "Nothing was read or changed. Correct the name, or start Spark with its metastore."
                ) from error
            raise CatalogError(
                f"table {database}.{name}: Spark's catalog does not give it: {cause_of(error)} Nothing was read or "
                "changed."
            ) from error
        partitions = set(told.partitions)
        storage = dict(_OPTION.findall(told.details.get("Storage Properties", "")))
        formats = {} if told.provider in ("", "hive") else {"classification": told.provider}
        return GlueTable(
            database=database,
            name=name,
            columns=[Column(*each) for each in told.columns if each[0] not in partitions],
            partition_columns=[Column(*each) for each in told.columns if each[0] in partitions],
            location=told.location or None,
            parameters={**formats, **told.properties},
            serde=told.details.get("Serde Library"),
            serde_parameters=_of_serde(storage),
        )

    def partitions(self, table: GlueTable, expression: str | None = None) -> Iterator[Partition]:
        """Yield the partitions of a table, with one statement for each; see `Catalog.partitions`."""
        if expression is not None:
            raise OptionError(
                f"{table.label}: catalogPartitionPredicate={expression!r} is for the Data Catalog, and Spark's own "
                "evaluates none (spark.bookmarks.glue.catalog=hive). Nothing was read or changed. Use "
                "push_down_predicate, which does the same."
            )
        name = _named(table.database, table.name)
        for row in self._spark.sql(f"SHOW PARTITIONS {name}").collect():
            values = [unquote(part.partition("=")[2], "latin-1") for part in row[0].split("/")]
            yield Partition(values, self._location(name, table, values))

    def _location(self, name: str, table: GlueTable, values: list[str]) -> str | None:
        pairs = zip(table.partition_columns, values, strict=True)
        spec = ", ".join(f"{_quoted(column.name)} = {_literal(value)}" for column, value in pairs)
        rows = self._spark.sql(f"DESCRIBE TABLE EXTENDED {name} PARTITION ({spec})").collect()
        # The details of the partition come before those of the table.
        return next((row[1] for row in rows if row[0] == "Location" and row[1]), None)


def _of_serde(storage: Mapping[str, str]) -> Mapping[str, str]:
    """Return what a table of Spark's own says of CSV by the names that a SerDe has for it."""
    names = {"sep": "separatorChar", "delimiter": "separatorChar", "quote": "quoteChar", "escape": "escapeChar"}
    return {**storage, **{names[key]: value for key, value in storage.items() if key in names}}


def _named(database: str, name: str) -> str:
    return f"{_quoted(database)}.{_quoted(name)}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "NULL" if text == "__HIVE_DEFAULT_PARTITION__" else f"'{escaped}'"
