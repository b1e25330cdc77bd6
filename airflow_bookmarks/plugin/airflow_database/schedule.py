"""What Airflow's database knows of when the DAGs of jobs were due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.types import DagRunType
from sqlalchemy import literal, select, union_all

from airflow_bookmarks.core.health.cadence import Schedule, is_uncertain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from airflow_bookmarks.core.head import Head

Schedules = dict[str, Schedule]  # by job
_Asked = tuple[str, "datetime"]  # a DAG, and the last commit of a job of it

_TIMES = 20  # of each job: the first two decide, and the others are counted for a person
_AT_A_TIME = 50  # a query asks for as many jobs


def schedules_of(heads: Mapping[str, Head], entries: Mapping[str, Mapping[str, Any]], now: datetime) -> Schedules:
    """Return what Airflow knows of the schedules of jobs whose commits alone don't tell whether they are late.

    A job whose DAG is not in this Airflow, or has no times of its own (it is triggered, or waits for assets), is not
    among them.

    Args:
        heads: of the jobs.
        entries: of the index, by job; they name the DAGs.
        now: the present time.
    """
    asked = {
        job: (str(dag_id), head.commits[-1])
        for job, head in heads.items()
        if is_uncertain(head.commits, now) and (dag_id := entries.get(job, {}).get("dag_id"))
    }
    if not asked:
        return {}
    found: dict[_Asked, Schedule] = {}
    wanted = sorted(set(asked.values()))
    with create_session() as session:
        for start in range(0, len(wanted), _AT_A_TIME):
            found |= _of_part(session, wanted[start : start + _AT_A_TIME])
    return {job: found[each] for job, each in asked.items() if each in found}


def _of_part(session: Session, asked: Sequence[_Asked]) -> dict[_Asked, Schedule]:
    columns = (DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after)
    known = select(*columns).where(DagModel.dag_id.in_({dag_id for dag_id, _ in asked}), ~DagModel.is_stale)
    dags = {dag_id: (is_paused, next_at is not None) for dag_id, is_paused, next_at in session.execute(known)}
    times = _times(session, [each for each in asked if each[0] in dags])
    found: dict[_Asked, Schedule] = {}
    for each in asked:
        is_paused, is_timed = dags.get(each[0], (False, False))
        if is_timed or each in times:
            found[each] = Schedule(times.get(each, ()), is_paused)
    return found


def _times(session: Session, asked: Sequence[_Asked]) -> dict[_Asked, list[datetime]]:
    """Return the first times after each commit at which the scheduler let the DAG run; not what has had none."""
    runs = [
        select(literal(number).label("number"), DagRun.run_after.label("at"))
        .where(DagRun.dag_id == dag_id, DagRun.run_type == DagRunType.SCHEDULED, DagRun.run_after > after)
        .order_by(DagRun.run_after)
        .limit(_TIMES)
        .subquery()
        for number, (dag_id, after) in enumerate(asked)
    ]
    if not runs:
        return {}
    found: dict[_Asked, list[datetime]] = {}
    for number, at in session.execute(union_all(*(select(part.c.number, part.c.at) for part in runs))):
        found.setdefault(asked[number], []).append(at)
    return {each: sorted(times) for each, times in found.items()}
