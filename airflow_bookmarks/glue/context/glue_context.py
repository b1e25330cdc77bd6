"""`GlueContext`: the door of scripts for AWS Glue to their Spark session, reads and writes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pyspark import SparkContext
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.catalogs.connections import extract_jdbc_conf, reach_catalog
from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog
from airflow_bookmarks.glue.catalogs.lookup import catalog_of
from airflow_bookmarks.glue.classic import check_classic
from airflow_bookmarks.glue.context.data_sink import DataSink
from airflow_bookmarks.glue.context.data_source import DataSource
from airflow_bookmarks.glue.context.logger import ScriptLogger
from airflow_bookmarks.glue.context.readers import DataFrameReader, DynamicFrameReader
from airflow_bookmarks.glue.context.sql_members import SqlMembers
from airflow_bookmarks.glue.context.writers import DataFrameWriter, DynamicFrameWriter
from airflow_bookmarks.glue.errors import refuse
from airflow_bookmarks.glue.outputs import purge
from airflow_bookmarks.glue.run import current_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
    from airflow_bookmarks.glue.run import GlueRun


class GlueContext(SqlMembers):
    """A Spark session with Glue's reads and writes.

    Args:
        sparkContext: a SparkContext, a SparkSession, or None for the session that is there.
        options: `minPartitions` and `targetPartitions`, which Spark decides by itself here.

    Raises:
        ImportError: the session is a client of Spark Connect.

    Example:
        glueContext = GlueContext(SparkContext.getOrCreate())
        spark = glueContext.spark_session
    """

    def __init__(self, sparkContext: SparkContext | SparkSession | None = None, **options: Any) -> None:
        self.spark_session = _session_of(sparkContext)
        self.create_dynamic_frame = DynamicFrameReader(self)
        self.create_data_frame = DataFrameReader(self)
        self.write_dynamic_frame = DynamicFrameWriter(self)
        self.write_data_frame = DataFrameWriter(self)
        unknown = {key: value for key, value in options.items() if key not in ("minPartitions", "targetPartitions")}
        self.run.warn_of_unknown("GlueContext", unknown)
        self.run.reach_catalog = reach_catalog

    @classmethod
    def getOrCreate(cls, sc: SparkContext | SparkSession | None = None) -> Self:
        """Return a context of the session that is there."""
        return cls(sc)

    @property
    def run(self) -> GlueRun:
        """The current run of the session."""
        return current_run(self.spark_session)

    def get_logger(self) -> ScriptLogger:
        """Return a logger with the methods of log4j."""
        return ScriptLogger()

    def currentTimeMillis(self) -> int:
        """Return the time, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    # ---- the catalog

    def tableNames(self, dbName: str | None = None) -> list[str]:
        """Return the names of the tables of a database: of the Data Catalog, or of Spark's as the settings say.

        Args:
            dbName: the database; None: Spark's current one.

        Raises:
            EntityNotFoundError: there is no such database.
        """
        if dbName is None or self.run.settings.catalog == "hive":
            return [table.name for table in self.spark_session.catalog.listTables(dbName)]
        return list(DataCatalog().table_names(dbName))

    def tables(self, dbName: str | None = None) -> DataFrame:
        """Return the tables of a database as rows: database, tableName, isTemporary; see `tableNames`."""
        rows = [(dbName or "", name, False) for name in self.tableNames(dbName)]
        return self.spark_session.createDataFrame(rows, "database string, tableName string, isTemporary boolean")

    def get_catalog_schema_as_spark_schema(
        self, database: str, table_name: str, catalog_id: str | None = None
    ) -> StructType:
        """Return the columns of a table of the catalog, those of its partitions last.

        Raises:
            EntityNotFoundError: there is no such table.
        """
        table = catalog_of(self.run, catalog_id).table(database, table_name)
        columns = [*table.columns, *table.partition_columns]
        ddl = ", ".join(f"`{column.name.replace('`', '``')}` {column.ddl}" for column in columns)
        return self.spark_session.createDataFrame([], ddl).schema

    def extract_jdbc_conf(self, connection_name: str, catalog_id: str | None = None) -> dict[str, Any]:
        """Return what a connection says: user, password, vendor, url (without a database) and fullUrl.

        Raises:
            EntityNotFoundError: there is no such connection, in this process or the Data Catalog.
        """
        return extract_jdbc_conf(self.run, connection_name, catalog_id)

    # ---- reads

    def create_dynamic_frame_from_catalog(self, *args: Any, **kwargs: Any) -> DynamicFrame:
        """Return a table of the catalog; see `DynamicFrameReader.from_catalog`."""
        return self.create_dynamic_frame.from_catalog(*args, **kwargs)

    def create_dynamic_frame_from_options(self, *args: Any, **kwargs: Any) -> DynamicFrame:
        """Return files or a table of a database; see `DynamicFrameReader.from_options`."""
        return self.create_dynamic_frame.from_options(*args, **kwargs)

    def create_dynamic_frame_from_rdd(self, *args: Any, **kwargs: Any) -> DynamicFrame:
        """Return a frame of an RDD; see `DynamicFrameReader.from_rdd`."""
        return self.create_dynamic_frame.from_rdd(*args, **kwargs)

    def create_data_frame_from_catalog(self, *args: Any, **kwargs: Any) -> Any:
        """Return a table of the catalog as a DataFrame; see `DataFrameReader.from_catalog`."""
        return self.create_data_frame.from_catalog(*args, **kwargs)

    def create_data_frame_from_options(self, *args: Any, **kwargs: Any) -> Any:
        """Return files or a table of a database as a DataFrame; see `DataFrameReader.from_options`."""
        return self.create_data_frame.from_options(*args, **kwargs)

    def create_sample_dynamic_frame_from_catalog(
        self, database: str, table_name: str, num: int, *args: Any, sample_options: Any = None, **kwargs: Any
    ) -> DynamicFrame:
        """Return some rows of a table of the catalog; the bookmark is not looked at."""
        kwargs["transformation_ctx"] = ""
        with self.run.reading_whole(f"create_sample_dynamic_frame_from_catalog({database=}, {table_name=})"):
            frame = self.create_dynamic_frame.from_catalog(database, table_name, *args[:1], **kwargs)
        return frame.derived(frame.typed().limit(num))

    def create_sample_dynamic_frame_from_options(
        self,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        num: int = 100,
        sample_options: Any = None,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        **kwargs: Any,
    ) -> DynamicFrame:
        """Return some rows of files or a table of a database; the bookmark is not looked at."""
        with self.run.reading_whole(f"create_sample_dynamic_frame_from_options({connection_type=})"):
            frame = self.create_dynamic_frame.from_options(
                connection_type, connection_options, format, format_options, "", push_down_predicate, **kwargs
            )
        return frame.derived(frame.typed().limit(num))

    def getSource(
        self,
        connection_type: str,
        format: str | None = None,
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        **options: Any,
    ) -> DataSource:
        """Return a source that is read by its `getFrame`."""
        return DataSource(self, connection_type, format, transformation_ctx, push_down_predicate, options)

    # ---- writes

    def write_dynamic_frame_from_options(self, *args: Any, **kwargs: Any) -> Any:
        """Write a frame; see `DynamicFrameWriter.from_options`."""
        return self.write_dynamic_frame.from_options(*args, **kwargs)

    def write_from_options(self, frame_or_dfc: Any, *args: Any, **kwargs: Any) -> Any:
        """Write a frame, or each frame of a collection; see `DynamicFrameWriter.from_options`."""
        return self.write_dynamic_frame.from_options(frame_or_dfc, *args, **kwargs)

    def write_dynamic_frame_from_catalog(self, *args: Any, **kwargs: Any) -> Any:
        """Write a frame to a table of the catalog; see `DynamicFrameWriter.from_catalog`."""
        return self.write_dynamic_frame.from_catalog(*args, **kwargs)

    def write_dynamic_frame_from_jdbc_conf(self, *args: Any, **kwargs: Any) -> None:
        """Write a frame to a table of a database; see `DynamicFrameWriter.from_jdbc_conf`."""
        self.write_dynamic_frame.from_jdbc_conf(*args, **kwargs)

    write_from_jdbc_conf = write_dynamic_frame_from_jdbc_conf

    def write_data_frame_from_catalog(self, *args: Any, **kwargs: Any) -> Any:
        """Write a DataFrame to a table of the catalog; see `DynamicFrameWriter.from_catalog`."""
        return self.write_data_frame.from_catalog(*args, **kwargs)

    def write_data_frame_from_options(self, *args: Any, **kwargs: Any) -> Any:
        """Write a DataFrame; see `DynamicFrameWriter.from_options`."""
        return self.write_data_frame.from_options(*args, **kwargs)

    def getSink(
        self, connection_type: str, format: str | None = None, transformation_ctx: str = "", **options: Any
    ) -> DataSink:
        """Return a sink that is written by its `writeFrame`."""
        return DataSink(self, connection_type, format, transformation_ctx, options)

    def purge_s3_path(
        self, s3_path: str, options: Mapping[str, Any] | None = None, transformation_ctx: str = ""
    ) -> None:
        """Delete files below a path that are older than `retentionPeriod` hours (default: 168).

        With enable, between `Job.init` and `Job.commit`, they are listed at once and deleted by the commit.
        """
        purge.purge_s3_path(self.run, s3_path, options, transformation_ctx)

    def purge_table(
        self,
        catalog_id: str | None = None,
        database: str = "",
        table_name: str | Mapping[str, Any] = "",
        options: Mapping[str, Any] | None = None,
        transformation_ctx: str = "",
    ) -> None:
        """Delete files of a table of the catalog; see `purge_s3_path`.

        By position scripts also write it as in Scala: `purge_table(database, table_name, options)`.
        """
        if isinstance(table_name, Mapping):
            purge.purge_table(self.run, None, str(catalog_id), database, table_name, transformation_ctx)
        else:
            purge.purge_table(self.run, catalog_id, database, table_name, options, transformation_ctx)

    # ---- out of reach

    def getStreamingSource(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a stream."""
        refuse("getStreamingSource")

    def getSampleStreamingDynamicFrame(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a stream."""
        refuse("getSampleStreamingDynamicFrame")

    def forEachBatch(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a stream."""
        refuse("forEachBatch")

    def add_ingestion_time_columns(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a stream."""
        refuse("add_ingestion_time_columns")

    def start_transaction(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a transaction on governed tables."""
        refuse("start_transaction")

    begin_transaction = start_transaction

    def commit_transaction(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a transaction on governed tables."""
        refuse("commit_transaction")

    def cancel_transaction(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a transaction on governed tables."""
        refuse("cancel_transaction")

    def transition_table(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a change of storage classes."""
        refuse("transition_table")

    def transition_s3_path(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse a change of storage classes."""
        refuse("transition_s3_path")


def _session_of(given: SparkContext | SparkSession | None) -> SparkSession:
    session = SparkSession.builder.getOrCreate() if given is None or isinstance(given, SparkContext) else given
    check_classic(session)
    if not isinstance(session, SparkSession):
        raise TypeError(
            f"GlueContext({type(given).__name__}): expected a SparkContext or a SparkSession. Nothing was read or "
            "changed."
        )
    return session
