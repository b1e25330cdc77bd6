"""The runtime that PySpark scripts use: `from airflow_bookmarks.spark import BookmarkedJob`."""

from airflow_bookmarks.spark.job import BookmarkedJob

__all__ = ["BookmarkedJob"]
