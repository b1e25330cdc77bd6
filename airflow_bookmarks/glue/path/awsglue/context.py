"""`from awsglue.context import GlueContext`."""

from airflow_bookmarks.glue.context import GlueContext

__all__ = ["GlueContext"]
