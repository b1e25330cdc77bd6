"""Which catalog a run looks tables up in, and the types of their columns as Spark has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog
from airflow_bookmarks.glue.catalogs.hive import SessionCatalog
from airflow_bookmarks.spark.features import SPARK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_bookmarks.glue.catalogs.table import Catalog, Column
    from airflow_bookmarks.glue.run import GlueRun


def catalog_of(run: GlueRun, catalog_id: str | None = None) -> Catalog:
    """Return where the settings of the run say that tables are looked up."""
    return SessionCatalog(run.spark) if run.settings.catalog == "hive" else DataCatalog(catalog_id=catalog_id)


def declared_types(spark: SparkSession, columns: Sequence[Column]) -> StructType:
    """Return the columns of a table with the types of its catalog; a type that Spark has not is text."""
    fields = []
    for column in columns:
        try:
            kind = spark.range(0).select(F.lit(None).cast(column.ddl)).schema[0].dataType
        except SPARK_ERRORS:  # a union, or an interval of Hive's
            kind = StringType()
        fields.append(StructField(column.name, kind))
    return StructType(fields)
