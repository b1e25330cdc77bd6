"""A package that exists in AWS Glue alone: its import says so, and what to do instead."""

from airflow_bookmarks.glue.inventory.surface import ABSENT_PACKAGES

raise ImportError(f"awsglueml: {ABSENT_PACKAGES['awsglueml']}. Nothing was read or changed.")
