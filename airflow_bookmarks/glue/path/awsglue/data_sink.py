"""Glue's name of what writes frames."""

from airflow_bookmarks.glue.context.data_sink import DataSink

__all__ = ["DataSink"]
