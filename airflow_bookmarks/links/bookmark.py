"""The link from a task to the page of its bookmark."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from airflow_bookmarks.airflow_compat import shows_plugin_pages
from airflow_bookmarks.core.job import airflow_job_name

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

_PAGE = "/plugin/bookmarks"


def page_url(**search: str) -> str:
    """Return the address of the page, below the `[api] base_url` that this machine knows; else below the site's root.

    Args:
        search: what the page shows: `job=` one job, `search=` the jobs whose name contains the text.

    Example:
        >>> page_url(job="flights.clean").endswith("/plugin/bookmarks?job=flights.clean")
        True
    """
    base: str = conf.get("api", "base_url", fallback="")
    asked = f"?{urlencode(search)}" if search else ""
    return f"{base.rstrip('/')}{_PAGE}{asked}"


class BookmarkLink(BaseOperatorLink):
    """Open the page of a task's bookmark. A worker creates the link when a try of the task ends.

    Where Airflow's UI has no place for the page, there is no link either.

    For an operator that runs a job, it opens that job; for a sharded one, all jobs whose names begin with its name; for
    a sensor or a change, the job that it names, or all jobs if it names several.
    """

    name = "Bookmark"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address of the page; empty if this Airflow doesn't show it."""
        if not shows_plugin_pages():
            return ""
        if not hasattr(operator, "bookmark_job"):
            job = getattr(operator, "job", None)
            return page_url(job=job) if isinstance(job, str) else page_url()
        is_sharded = getattr(operator, "bookmark_shard", None) is not None
        default = airflow_job_name(ti_key.dag_id, ti_key.task_id, -1 if is_sharded else ti_key.map_index)
        job = str(operator.bookmark_job or default)
        return page_url(search=job) if is_sharded else page_url(job=job)
