"""The link from a task to the page of its bookmark."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from airflow_bookmarks.core.job import airflow_job_name

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

_PAGE = "/plugin/bookmarks"


def page_url(**search: str) -> str:
    """Return the address of the page, below the `[api] base_url` that this machine knows; else below the site's root.

    Args:
        search: what the page is to show: `job=` a job, `search=` the jobs with that in their name.

    Example:
        >>> page_url(job="flights.clean").endswith("/plugin/bookmarks?job=flights.clean")
        True
    """
    base: str = conf.get("api", "base_url", fallback="")
    asked = f"?{urlencode(search)}" if search else ""
    return f"{base.rstrip('/')}{_PAGE}{asked}"


class BookmarkLink(BaseOperatorLink):
    """Opens the page of the bookmark that a task has to do with. A worker makes the link when a try of the task ends.

    Of an operator that runs a job it is that job; of a sharded one all jobs of its name, which is the begin of theirs;
    of a sensor or a change the job that it names, and all jobs where it names several.
    """

    name = "Bookmark"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address of the page."""
        if not hasattr(operator, "bookmark_job"):
            job = getattr(operator, "job", None)
            return page_url(job=job) if isinstance(job, str) else page_url()
        is_sharded = getattr(operator, "bookmark_shard", None) is not None
        default = airflow_job_name(ti_key.dag_id, ti_key.task_id, -1 if is_sharded else ti_key.map_index)
        job = str(operator.bookmark_job or default)
        return page_url(search=job) if is_sharded else page_url(job=job)
