"""What of Airflow the pairings need: a DAG in a file, its runs in the metadata database, the API that workers talk to,
and what scheduler, triggerer and people do with a task. All of it is Airflow's own code; only the loops are not.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import uvicorn
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.jobs.job import Job
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.trigger import Trigger
from airflow.triggers.base import BaseTrigger
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select
from sqlalchemy.orm import Session

# What DAG files import, so that a file is read in no time: Airflow gives up on one that takes long.
from airflow_bookmarks.operators import livy, spark_submit  # noqa: F401
from tests.airflow.compat import DagBag, execution_api_app, stored_dag, sync_bag_to_db

_NUMBERS = count(1)


@contextmanager
def execution_api() -> Iterator[str]:
    """Serve the API that workers talk to, without its authentication; yield its address."""
    server = uvicorn.Server(uvicorn.Config(execution_api_app(), log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()


class Flow:
    """One DAG and its present run: `dag_id` comes from the name that is given, with a number."""

    def __init__(self, name: str, tasks: str) -> None:
        self.dag_id = f"{name}_{next(_NUMBERS)}"
        self.file = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{self.dag_id}.py"
        self.file.write_text(_DAG.format(dag_id=self.dag_id, tasks=tasks))
        self.run_id = ""

    def sync(self) -> None:
        """Let Airflow read the file."""
        DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
        bag = DagBag(dag_folder=str(self.file))
        assert not bag.import_errors, bag.import_errors
        sync_bag_to_db(bag, "dags-folder", None)

    # ---- the scheduler

    def trigger(self) -> None:
        """Begin a DAG run."""
        self.run_id = f"manual__{next(_NUMBERS)}"
        with create_session() as session:
            self._dag(session).create_dagrun(
                run_id=self.run_id,
                run_after=datetime.now(tz=UTC),
                run_type=DagRunType.MANUAL,
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.RUNNING,
                session=session,
            )

    def queue(self, task_id: str) -> dict[str, Any]:
        """Do what the scheduler does until a task is queued; return what it sends to a worker."""
        self.look()
        with create_session() as session:
            ti = self._ti(session, task_id)
            assert ti.state == TaskInstanceState.SCHEDULED, ti.state
            ti.state = TaskInstanceState.QUEUED
            names = ("task_id", "dag_id", "run_id", "try_number", "map_index")
            sent = {name: getattr(ti, name) for name in names}
            return {**sent, "id": str(ti.id), "dag_version_id": str(ti.dag_version_id)}

    def look(self) -> str:
        """Look at the run as the scheduler does: tasks whose time has come are scheduled. Return the run's state."""
        with create_session() as session:
            run = self._run(session)
            run.dag = self._dag(session)
            if run.state == DagRunState.QUEUED:
                run.state = DagRunState.RUNNING
            schedulable, _ = run.update_state(session=session, execute_callbacks=False)
            run.schedule_tis(schedulable, session=session)
            return str(run.state)

    def lose(self, task_id: str) -> None:
        """Do what the scheduler does when a worker gives no sign of life, or ends without saying how."""
        with create_session() as session:
            ti = self._ti(session, task_id)
            ti.task = self._dag(session).get_task(task_id)
            ti.handle_failure("the worker is lost", session=session)

    # ---- the triggerer

    def fire(self, task_id: str) -> None:
        """Wait by the trigger of a deferred task until it fires."""

        async def first() -> Any:
            return await anext(aiter(trigger.run()))

        trigger = self.trigger_of(task_id)
        event = asyncio.run(first())
        with create_session() as session:
            Trigger.submit_event(self._ti(session, task_id).trigger_id, event, session=session)

    def trigger_of(self, task_id: str) -> BaseTrigger:
        """Return the trigger of a deferred task, made from what is stored of it."""
        with create_session() as session:
            ti = self._ti(session, task_id)
            assert ti.state == TaskInstanceState.DEFERRED, ti.state
            stored = session.get(Trigger, ti.trigger_id)
            assert stored is not None
            trigger: BaseTrigger = resolve_name(stored.classpath)(**stored.kwargs)
            return trigger

    def expire_trigger(self, task_id: str) -> None:
        """Let the time be over that a deferred task may wait."""
        with create_session() as session:
            self._ti(session, task_id).trigger_timeout = datetime(2026, 1, 1, tzinfo=UTC)
        with create_session() as session:
            runner = SchedulerJobRunner(Job())  # type: ignore[no-untyped-call]
            runner.check_trigger_timeouts(session=session)

    # ---- a person

    def mark_failed(self, task_id: str) -> None:
        """Mark a task failed, as one does in the user interface."""
        with create_session() as session:
            self._ti(session, task_id).set_state(TaskInstanceState.FAILED, session=session)

    def clear(self, task_id: str, *, downstream: bool = False) -> None:
        """Clear a task, and with `downstream` all behind it."""
        with create_session() as session:
            dag = self._dag(session)
            if downstream:
                dag = dag.partial_subset(task_ids=[task_id], include_downstream=True, include_upstream=False)
            dag.clear(task_ids=[*dag.task_dict] if downstream else [task_id], run_id=self.run_id, session=session)

    # ---- looking

    def state(self, task_id: str) -> str:
        """Return the state of a task instance."""
        with create_session() as session:
            return str(self._ti(session, task_id).state)

    def try_number(self, task_id: str) -> int:
        """Return the number of the present try."""
        with create_session() as session:
            return int(self._ti(session, task_id).try_number)

    def _dag(self, session: Session) -> Any:
        return stored_dag(self.dag_id, session)

    def _run(self, session: Session) -> DagRun:
        where = DagRun.dag_id == self.dag_id, DagRun.run_id == self.run_id
        return session.scalars(select(DagRun).where(*where)).one()

    def _ti(self, session: Session, task_id: str) -> TaskInstance:
        model = TaskInstance
        where = model.dag_id == self.dag_id, model.run_id == self.run_id, model.task_id == task_id
        return session.scalars(select(model).where(*where)).one()


_DAG = """
from datetime import UTC, datetime, timedelta
from airflow.sdk import DAG
from airflow_bookmarks.operators.livy import BookmarkLivyOperator
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

with DAG({dag_id!r}, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
{tasks}
"""
