"""Audit: write a row in Airflow's log for each change, beside the event in the state table."""

from __future__ import annotations

import json
import logging
from typing import Any

from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)


def note(event: str, *, owner: str, job: str, dag_id: str | None, task_id: str | None, details: dict[str, Any]) -> bool:
    """Write a row after a change was made; return whether it is there.

    By then the change and its own event are written, so a failing database takes neither back: the failure is logged
    and reported.

    Args:
        event: such as `bookmark.reset`.
        owner: the name of the logged-in user.
        job: the key of the job.
        dag_id, task_id: those that the job's record names.
        details: what else is to be kept.
    """
    extra = json.dumps({"job": job, **details}, sort_keys=True, default=str)
    try:
        with create_session() as session:
            session.add(Log(event=event, owner=owner, dag_id=dag_id, task_id=task_id, extra=extra))
    except SQLAlchemyError:
        log.exception("%s of job %s by %s was made, and Airflow's log has no row of it: %s", event, job, owner, extra)
        return False
    return True
