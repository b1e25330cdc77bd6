"""`create_dynamic_frame` and `create_data_frame`: the reads of a script, handed to `glue.inputs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import RDD
from pyspark.sql import Row

from airflow_bookmarks.glue.context.parameters import one_database, required
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.errors import STREAM, GlueUnsupportedError
from airflow_bookmarks.glue.inputs.read import read_catalog, read_options
from airflow_bookmarks.glue.run import current_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.glue.run import GlueRun

_STREAMS = ("kinesis", "kafka")


class DynamicFrameReader:
    """`create_dynamic_frame` of a `GlueContext`.

    Example:
        orders = glueContext.create_dynamic_frame.from_catalog(
            database="shop", table_name="orders", transformation_ctx="orders"
        )
    """

    def __init__(self, glue_context: Any) -> None:
        self._glue_context = glue_context

    @property
    def _spark(self) -> SparkSession:
        session: SparkSession = self._glue_context.spark_session
        return session

    @property
    def _run(self) -> GlueRun:
        return current_run(self._spark)

    def from_catalog(
        self,
        database: str | None = None,
        table_name: str | None = None,
        redshift_tmp_dir: str = "",
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        additional_options: Mapping[str, Any] | None = None,
        catalog_id: str | None = None,
        **kwargs: Any,
    ) -> DynamicFrame:
        """Return a table of the catalog; with a context what is new in it.

        Args:
            database, table_name: the table; `name_space` is another word for `database`.
            redshift_tmp_dir: a folder for tables of Redshift.
            transformation_ctx: the context, under which the job keeps its position; without it all is read.
            push_down_predicate: a condition on partition columns, in Spark's SQL.
            additional_options: options of the read, such as `jobBookmarkKeys`.
            catalog_id: the account whose catalog it is.

        Raises:
            GlueParameterError: database or table_name is missing, or given in two ways.
            EntityNotFoundError: there is no such table.
        """
        database = one_database(database, kwargs.pop("name_space", None))
        with self._run.reading(transformation_ctx):
            return read_catalog(
                self._run,
                database=database,
                table_name=required("table_name", table_name),
                redshift_tmp_dir=redshift_tmp_dir,
                transformation_ctx=transformation_ctx,
                push_down_predicate=push_down_predicate,
                additional_options=dict(additional_options or {}),
                catalog_id=catalog_id,
                glue_ctx=self._glue_context,
                **kwargs,
            )

    def from_options(
        self,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        **kwargs: Any,
    ) -> DynamicFrame:
        """Return files or a table of a database; with a context what is new there.

        Args:
            connection_type: "s3", "file", or the vendor of a database, such as "postgresql".
            connection_options: where it is, such as `{"paths": ["s3://lake/raw"]}`, and how it is read.
            format: the format of files, such as "csv".
            format_options: the options of the format, such as `{"withHeader": True}`.
            transformation_ctx: the context, under which the job keeps its position; without it all is read.
            push_down_predicate: a condition on partition columns, in Spark's SQL.

        Raises:
            GlueUnsupportedError: the connection type or format is out of reach.
        """
        with self._run.reading(transformation_ctx):
            return read_options(
                self._run,
                connection_type=connection_type,
                connection_options=dict(connection_options or {}),
                format=format,
                format_options=dict(format_options or {}),
                transformation_ctx=transformation_ctx,
                push_down_predicate=push_down_predicate,
                glue_ctx=self._glue_context,
                **kwargs,
            )

    def from_rdd(
        self,
        data: Any,
        name: str,
        schema: Any = None,
        sample_ratio: float | None = None,
        transformation_ctx: str = "",
    ) -> DynamicFrame:
        """Return a frame of an RDD of rows, dicts or tuples; dicts may differ in columns and types."""
        rows = data if isinstance(data, RDD) else self._spark.sparkContext.parallelize(data)
        first = rows.take(1)
        if schema is None and first and isinstance(first[0], (dict, Row)):
            empty = DynamicFrame.fromDF(self._spark.range(0).select(), self._glue_context, name)
            return empty.derived(outcomes=rows.map(_as_dict))
        return DynamicFrame.fromDF(
            self._spark.createDataFrame(rows, schema, sample_ratio), self._glue_context, name or transformation_ctx
        )


def _as_dict(row: Any) -> dict[str, Any]:
    return row.asDict(recursive=True) if isinstance(row, Row) else dict(row)


class DataFrameReader:
    """`create_data_frame` of a `GlueContext`: rows as a DataFrame of Spark, read whole, without a bookmark."""

    def __init__(self, glue_context: Any) -> None:
        self._glue_context = glue_context
        self._frames = DynamicFrameReader(glue_context)

    def from_catalog(
        self,
        database: str | None = None,
        table_name: str | None = None,
        redshift_tmp_dir: str = "",
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        additional_options: Mapping[str, Any] | None = None,
        catalog_id: str | None = None,
        **kwargs: Any,
    ) -> DataFrame:
        """Return a table of the catalog as a DataFrame; see `DynamicFrameReader.from_catalog`.

        Raises:
            GlueUnsupportedError: the table is a stream.
        """
        with self._run.reading_whole(f"create_data_frame.from_catalog(database={database!r}, {table_name=})"):
            return self._frames.from_catalog(
                database,
                table_name,
                redshift_tmp_dir,
                "",
                push_down_predicate,
                additional_options,
                catalog_id,
                **kwargs,
            ).toDF()

    def from_options(
        self,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        transformation_ctx: str = "",
        push_down_predicate: str = "",
        **kwargs: Any,
    ) -> DataFrame:
        """Return files or a table of a database as a DataFrame; see `DynamicFrameReader.from_options`.

        Raises:
            GlueUnsupportedError: it is a stream.
        """
        call = f"create_data_frame.from_options({connection_type=})"
        if connection_type in _STREAMS:
            raise GlueUnsupportedError(call, "a stream", STREAM)
        with self._run.reading_whole(call):
            return self._frames.from_options(
                connection_type, connection_options, format, format_options, "", push_down_predicate, **kwargs
            ).toDF()

    @property
    def _run(self) -> GlueRun:
        return current_run(self._glue_context.spark_session)
