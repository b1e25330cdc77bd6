"""`from awsglue.job import Job`."""

from airflow_bookmarks.glue.job import Job

__all__ = ["Job"]
