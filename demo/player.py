"""The player: a process that holds the example DAGs and plays one run of one of them for each line that it is sent.

    {"dag_id": ..., "logical_date": ..., "conf": {...}, "fault": "committed@1" or null, "log": path}
    -> {"run_id": ..., "state": ..., "tries": {task_id: n}, "states": {task_id: ...}, "xcom": {task_id: ...}}

It is a process of its own so that the demo itself runs without Airflow, shows nothing of its logs, and can end it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from demo.folders import PROJECT

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG

_DRIVER = str(PROJECT / "demo" / "driver.py")


def main() -> None:
    """Answer each request from stdin on stdout; all other output goes to the log that the request names."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    dags = _load(Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"]))
    print(json.dumps({"dags": sorted(dags)}), file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        _log_to(Path(request["log"]))
        print(json.dumps(_play(dags[request["dag_id"]], request)), file=replies, flush=True)


def _load(folder: Path) -> dict[str, DAG]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=str(folder))
    if bag.import_errors:
        raise SystemExit("".join(f"{path} can't be imported:\n{error}\n" for path, error in bag.import_errors.items()))
    return dict(bag.dags)


def _log_to(path: Path) -> None:
    # By descriptor and not by sys.stdout: loggers and child processes hold the descriptors.
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _play(dag: DAG, request: dict[str, Any]) -> dict[str, Any]:
    moment = datetime.fromisoformat(request["logical_date"])
    with _driven_by(dag, request["fault"]):
        run: DagRun = dag.test(logical_date=moment, run_after=moment, run_conf=request["conf"])
    tasks = run.get_task_instances()
    return {
        "run_id": run.run_id,
        "state": str(run.state),
        "states": {task.task_id: str(task.state) for task in tasks},
        "tries": {task.task_id: task.try_number for task in tasks},
        "xcom": {task.task_id: task.xcom_pull(task_ids=task.task_id) for task in tasks},
    }


@contextmanager
def _driven_by(dag: DAG, fault: str | None) -> Iterator[None]:
    """Have the scripts of a DAG run by the driver that dies at a point, for the block; None: as they are."""
    tasks = [task for task in dag.tasks if isinstance(task, BookmarkSparkSubmitOperator)] if fault else []
    given = [(task, task.application, task.application_args) for task in tasks]
    for task, script, arguments in given:
        task.application, task.application_args = _DRIVER, [fault, script, *(arguments or [])]
    try:
        yield
    finally:
        for task, script, arguments in given:
            task.application, task.application_args = script, arguments


if __name__ == "__main__":
    main()
