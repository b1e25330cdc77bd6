"""`from awsglue.utils import getResolvedOptions`."""

from airflow_bookmarks.glue.arguments import getResolvedOptions
from airflow_bookmarks.glue.errors import GlueArgumentError

__all__ = ["GlueArgumentError", "getResolvedOptions"]
