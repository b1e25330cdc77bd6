"""Watch the health of all jobs, and notify of each change once: a problem when it begins, and when it is over.

Put the notifiers of your providers into `NOTIFY` (Slack, e-mail, PagerDuty: docs/operations/health.md). As it stands,
the task writes to its log. Connection: `bookmarks_default`.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, Context

from airflow_bookmarks.operators.health_watch import BookmarkHealthWatchOperator

log = logging.getLogger(__name__)


def write_to_log(context: Context) -> None:
    """Take the place of a notifier."""
    log.warning("%s", context["bookmark"]["message"])  # type: ignore[typeddict-item]


NOTIFY = [write_to_log]

# [start health_watch]
with DAG(
    "health_watch",
    description="Notify of each change in the health of any job, once",
    schedule=timedelta(minutes=5),
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # two looks at the same time might both tell
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkHealthWatchOperator(task_id="watch", notify=NOTIFY)
# [end health_watch]
