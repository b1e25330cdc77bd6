"""`from awsglue.dynamicframe import DynamicFrame`."""

from airflow_bookmarks.glue.context.readers import DynamicFrameReader
from airflow_bookmarks.glue.context.writers import DynamicFrameWriter
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.fields.resolve import ResolveOption
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame

__all__ = ["DynamicFrame", "DynamicFrameCollection", "DynamicFrameReader", "DynamicFrameWriter", "ResolveOption"]
