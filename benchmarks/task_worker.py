"""Where tasks are executed: orders for `benchmarks.task_host`, which forks a worker for each of them."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_HOST = Path(__file__).with_name("task_host.py")
PLAIN = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"
BOOKMARKED = "airflow_bookmarks.operators.spark_submit.BookmarkSparkSubmitOperator"


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of a task: how long the worker imported its operator (of the processor), how long `execute` took (by
    the clock: it waits for requests), what it returned.
    """

    import_s: float
    execute_s: float
    result: Any


class TaskWorker:
    """Executes tasks, one at a time, each in a process of its own."""

    def __init__(self, words: IO[str]) -> None:
        self._words = words
        self._executed = 0

    def execute(
        self, operator: str, task_id: str, environment: Mapping[str, str], arguments: Mapping[str, Any]
    ) -> Executed:
        """Execute a task in a DAG run of its own.

        Raises:
            RuntimeError: it failed; the worker's own words are on stderr.
        """
        self._executed += 1
        order = {
            "operator": operator,
            "task_id": task_id,
            "dag_run_id": f"bench__{self._executed:04d}",
            "environment": dict(environment),
            "arguments": dict(arguments),
        }
        self._words.write(f"{json.dumps(order)}\n")
        self._words.flush()
        answer = self._words.readline()
        if not answer:
            raise RuntimeError(f"the task {task_id!r} failed; what the worker said stands above")
        return Executed(**json.loads(answer))


@contextmanager
def task_worker(interpreter: Path, environment: Mapping[str, str]) -> Iterator[TaskWorker]:
    """Start the host of the workers with an environment, which is all that it has; it ends with the block."""
    ours, theirs = socket.socketpair()
    command = [str(interpreter), "-P", str(_HOST), str(theirs.fileno())]
    with (
        ours,
        theirs,
        subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()], stdout=subprocess.DEVNULL),
    ):
        theirs.close()
        try:
            with ours.makefile("rw") as words:
                yield TaskWorker(words)
        finally:
            ours.shutdown(socket.SHUT_RDWR)  # the host ends when nobody is left to order
