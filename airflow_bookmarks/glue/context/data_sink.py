"""`DataSink`: a sink that `GlueContext.getSink` names, and that is written later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.glue.context.writers import DynamicFrameWriter
from airflow_bookmarks.glue.dynamic.base import check_frame
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.failures import Places, place_of_options, place_of_table
from airflow_bookmarks.glue.outputs.write import write_options
from airflow_bookmarks.glue.run import current_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DataSink:
    """A sink that is written by `writeFrame`. Made by `GlueContext.getSink`.

    Example:
        sink = glueContext.getSink("s3", path="s3://lake/orders", enableUpdateCatalog=True, partitionKeys=["day"])
        sink.setFormat("glueparquet")
        sink.setCatalogInfo(catalogDatabase="shop", catalogTableName="orders")
        sink.writeFrame(orders)
    """

    def __init__(
        self,
        glue_context: Any,
        connection_type: str,
        format: str | None,
        transformation_ctx: str,
        options: dict[str, Any],
    ) -> None:
        self._glue_context = glue_context
        self._type, self._options, self._ctx = connection_type, options, transformation_ctx
        self._format, self._format_options = format, dict[str, Any]()
        self._catalog: dict[str, str] | None = None

    def setFormat(self, format: str, **options: Any) -> None:
        """Set the format of files, and its options."""
        self._format, self._format_options = format, options

    def setCatalogInfo(self, catalogDatabase: str, catalogTableName: str, catalogId: str = "") -> None:
        """Name the table of the catalog that is made of what is written, with `enableUpdateCatalog=True`."""
        self._catalog = {"database": catalogDatabase, "table_name": catalogTableName, "catalog_id": catalogId}

    def setAccumulableSize(self, size: int) -> None:
        """Do nothing: it sets how many error records Glue collects, and here all are counted."""

    def writeFrame(self, dynamic_frame: Any, info: str = "") -> Any:
        """Write a `DynamicFrame`, and return it.

        Raises:
            TypeError: it is none.
        """
        run = current_run(self._glue_context.spark_session)
        with run.writing(dynamic_frame, self._places):
            check_frame(dynamic_frame, "DataSink.writeFrame")
            return write_options(
                run,
                dynamic_frame,
                connection_type=self._type,
                connection_options=dict(self._options),
                format=self._format,
                format_options=dict(self._format_options),
                transformation_ctx=self._ctx,
                catalog_table=self._catalog,
            )

    def writeDataFrame(self, data_frame: DataFrame, glue_context: Any = None, info: str = "") -> DataFrame:
        """Write a DataFrame of Spark, and return it."""
        with current_run(self._glue_context.spark_session).writing(data_frame, self._places):
            self.writeFrame(DynamicFrame.fromDF(data_frame, self._glue_context, self._ctx), info)
        return data_frame

    def write(self, dynamic_frame_or_dfc: Any, info: str = "") -> Any:
        """Write a `DynamicFrame`, or each frame of a collection, and return it."""
        if not isinstance(dynamic_frame_or_dfc, DynamicFrameCollection):
            return self.writeFrame(dynamic_frame_or_dfc, info)
        return DynamicFrameWriter(self._glue_context).from_options(
            dynamic_frame_or_dfc, self._type, self._options, self._format, self._format_options, self._ctx
        )

    @property
    def _places(self) -> Places:
        """Where it writes: a folder or a table of a database, and the table of the catalog that is made of it."""
        places = place_of_options(self._options)
        if self._catalog is not None:
            places |= place_of_table(self._catalog["database"], self._catalog["table_name"])
        return places
