"""`write_dynamic_frame` and `write_data_frame`: the writes of a script, handed to `glue.outputs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from airflow_bookmarks.glue.context.parameters import one_database, required
from airflow_bookmarks.glue.dynamic.base import check_frame
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.failures import place_of_options, place_of_table
from airflow_bookmarks.glue.outputs.write import write_catalog, write_jdbc_conf, write_options
from airflow_bookmarks.glue.run import current_run

if TYPE_CHECKING:
    from airflow_bookmarks.glue.run import GlueRun


class DynamicFrameWriter:
    """`write_dynamic_frame` of a `GlueContext`.

    With enable, between `Job.init` and `Job.commit`, rows are visible after the commit; else at once.

    Example:
        glueContext.write_dynamic_frame.from_options(
            frame=orders, connection_type="s3", connection_options={"path": "s3://lake/orders"}, format="parquet"
        )
    """

    def __init__(self, glue_context: Any) -> None:
        self._glue_context = glue_context

    @property
    def _run(self) -> GlueRun:
        return current_run(self._glue_context.spark_session)

    def from_options(
        self,
        frame: Any,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        transformation_ctx: str = "",
        **kwargs: Any,
    ) -> Any:
        """Write a frame, or each frame of a collection, to files or a table of a database; return it.

        Args:
            frame: a `DynamicFrame`; or a collection, whose frames go to folders, or tables, of their names.
            connection_type: "s3", "file", or the vendor of a database.
            connection_options: where it goes, such as `{"path": "s3://lake/orders", "partitionKeys": ["day"]}`.
            format: the format of files.
            format_options: the options of the format.
            transformation_ctx: the name of the output; default: the last part of its target.

        Raises:
            TypeError: `frame` is neither.
            GlueUnsupportedError: the connection type or format is out of reach.
        """
        self._run.warn_of_unknown("write_dynamic_frame.from_options", kwargs)
        if isinstance(frame, DynamicFrameCollection):
            for name, one in frame.items():
                named = _named(connection_options, name)
                self.from_options(one, connection_type, named, format, format_options, transformation_ctx)
            return frame
        with self._run.writing(frame, place_of_options(connection_options)):
            options = dict(connection_options or {})
            check_frame(frame, "write_dynamic_frame.from_options")
            return write_options(
                self._run,
                frame,
                connection_type=connection_type,
                connection_options=options,
                format=format,
                format_options=dict(format_options or {}),
                transformation_ctx=transformation_ctx,
            )

    def from_catalog(
        self,
        frame: Any,
        database: str | None = None,
        table_name: str | None = None,
        redshift_tmp_dir: str = "",
        transformation_ctx: str = "",
        additional_options: Mapping[str, Any] | None = None,
        catalog_id: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write a frame to a table of the catalog; return it.

        Raises:
            GlueParameterError: database or table_name is missing, or given in two ways.
            EntityNotFoundError: there is no such table.
        """
        name_space = kwargs.pop("name_space", None)
        self._run.warn_of_unknown("write_dynamic_frame.from_catalog", kwargs)
        with self._run.writing(frame, place_of_table(database or name_space, table_name)):
            check_frame(frame, "write_dynamic_frame.from_catalog")
            return write_catalog(
                self._run,
                frame,
                database=one_database(database, name_space),
                table_name=required("table_name", table_name),
                redshift_tmp_dir=redshift_tmp_dir,
                transformation_ctx=transformation_ctx,
                additional_options=dict(additional_options or {}),
                catalog_id=catalog_id,
            )

    def from_jdbc_conf(
        self,
        frame: Any,
        catalog_connection: str,
        connection_options: Mapping[str, Any] | None = None,
        redshift_tmp_dir: str = "",
        transformation_ctx: str = "",
        catalog_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Write a frame to a table of the database that a connection names.

        Raises:
            EntityNotFoundError: there is no such connection.
        """
        self._run.warn_of_unknown("write_dynamic_frame.from_jdbc_conf", kwargs)
        with self._run.writing(frame, place_of_options(connection_options, catalog_connection)):
            check_frame(frame, "write_dynamic_frame.from_jdbc_conf")
            write_jdbc_conf(
                self._run,
                frame,
                catalog_connection=catalog_connection,
                connection_options=dict(connection_options or {}),
                redshift_tmp_dir=redshift_tmp_dir,
                transformation_ctx=transformation_ctx,
                catalog_id=catalog_id,
            )


def _named(options: Mapping[str, Any] | None, name: str) -> Any:
    """Return the options for one frame of a collection: a folder, or a table, of its name."""
    options = {} if options is None else options
    if not isinstance(options, Mapping):
        return options  # the write of the frame refuses them
    if "path" in options:
        return {**options, "path": f"{str(options['path']).rstrip('/')}/{name}"}
    return {**options, "dbtable": name}


class DataFrameWriter:
    """`write_data_frame` of a `GlueContext`: the same for a DataFrame of Spark."""

    def __init__(self, glue_context: Any) -> None:
        self._glue_context = glue_context
        self._writer = DynamicFrameWriter(glue_context)

    def from_options(
        self,
        frame: DataFrame,
        connection_type: str,
        connection_options: Mapping[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> DataFrame:
        """Write a DataFrame; see `DynamicFrameWriter.from_options`."""
        with current_run(self._glue_context.spark_session).writing(frame, place_of_options(connection_options)):
            made = self._dynamic(frame, kwargs)
            self._writer.from_options(made, connection_type, connection_options, *args, **kwargs)
        return frame

    def from_catalog(
        self, frame: DataFrame, database: str | None = None, table_name: str | None = None, *args: Any, **kwargs: Any
    ) -> DataFrame:
        """Write a DataFrame to a table of the catalog; see `DynamicFrameWriter.from_catalog`."""
        place = place_of_table(database or kwargs.get("name_space"), table_name)
        with current_run(self._glue_context.spark_session).writing(frame, place):
            self._writer.from_catalog(self._dynamic(frame, kwargs), database, table_name, *args, **kwargs)
        return frame

    def _dynamic(self, frame: DataFrame, kwargs: Mapping[str, Any]) -> DynamicFrame:
        if not isinstance(frame, DataFrame):
            raise TypeError(
                f"write_data_frame: expected a DataFrame and got {type(frame).__name__}. Nothing was written. Write a "
                "DynamicFrame with write_dynamic_frame."
            )
        return DynamicFrame.fromDF(frame, self._glue_context, str(kwargs.get("transformation_ctx", "")))
