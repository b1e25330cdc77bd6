"""`DataSource`: a source that `GlueContext.getSource` names, and that is read later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.glue.context.readers import DataFrameReader, DynamicFrameReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame


class DataSource:
    """A source that is read by `getFrame`. Made by `GlueContext.getSource`.

    Example:
        source = glueContext.getSource("file", paths=["/in/path"])
        source.setFormat("json")
        frame = source.getFrame()
    """

    def __init__(
        self,
        glue_context: Any,
        connection_type: str,
        format: str | None,
        transformation_ctx: str,
        push_down_predicate: str,
        options: dict[str, Any],
    ) -> None:
        self._glue_context = glue_context
        self._type, self._options = connection_type, options
        self._ctx, self._predicate = transformation_ctx, push_down_predicate
        self._format, self._format_options = format, dict[str, Any]()

    def setFormat(self, format: str, **options: Any) -> None:
        """Set the format of files, and its options."""
        self._format, self._format_options = format, options

    def getFrame(self, **options: Any) -> DynamicFrame:
        """Return the rows; with a context those that are new."""
        return DynamicFrameReader(self._glue_context).from_options(
            self._type, self._options, self._format, self._format_options, self._ctx, self._predicate, **options
        )

    def getSampleFrame(self, num: int, **options: Any) -> DynamicFrame:
        """Return some rows; the bookmark is not looked at."""
        reader = DynamicFrameReader(self._glue_context)
        frame = reader.from_options(
            self._type, self._options, self._format, self._format_options, "", self._predicate, **options
        )
        return frame.derived(frame.typed().limit(num))

    def getDataFrame(self) -> DataFrame:
        """Return all rows as a DataFrame of Spark; the bookmark is not looked at."""
        return DataFrameReader(self._glue_context).from_options(
            self._type, self._options, self._format, self._format_options, "", self._predicate
        )
