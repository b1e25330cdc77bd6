"""The link from a task to the page of its bookmark."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink

from airflow_bookmarks.airflow_compat import shows_plugin_pages
from airflow_bookmarks.core.errors import NameInvalidError, OptionError

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

log = logging.getLogger(__name__)

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
    a sensor or a change, the job that it names, or all jobs if it names several, or none by a wrong argument.
    """

    name = "Bookmark"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address of the page; empty if this Airflow doesn't show it."""
        if not shows_plugin_pages():
            return ""
        if not hasattr(operator, "task_config"):
            job = getattr(operator, "job", None)
            return page_url(job=job) if isinstance(job, str) else page_url()
        try:
            task_config = operator.task_config()
        except (OptionError, NameInvalidError) as error:  # the try has failed with it, and no job is known
            log.info("bookmark: the link leads to all jobs, since the task names none: %s", error)
            return page_url()
        job = task_config.job_of(ti_key.dag_id, ti_key.task_id, ti_key.map_index)
        return page_url(search=job) if task_config.is_sharded else page_url(job=job)
