"""`awsglue.data_source`."""

from airflow_bookmarks.glue.context.data_source import DataSource

__all__ = ["DataSource"]
