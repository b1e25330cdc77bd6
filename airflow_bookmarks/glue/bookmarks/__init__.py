"""Bookmarks in the shape of Glue's API.

entry     what Glue says of a bookmark: the JobBookmarkEntry, and the state of each context in it
requests  `get_job_bookmark` and `reset_job_bookmark`, as boto3's client of Glue has them
first_run an entry of Glue as the first run of a job here, so that nothing is read again on the first day
"""

from airflow_bookmarks.glue.bookmarks.requests import EntityNotFoundException, get_job_bookmark, reset_job_bookmark

__all__ = ["EntityNotFoundException", "get_job_bookmark", "reset_job_bookmark"]
