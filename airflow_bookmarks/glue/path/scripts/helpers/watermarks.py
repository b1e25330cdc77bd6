"""The name under which scripts import `Watermarks`."""

from airflow_bookmarks.glue.watermarks.table import Watermarks

__all__ = ["Watermarks"]
