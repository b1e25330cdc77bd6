"""Airflow workers that can be killed: each is one process, which supervises one try of a task as executors have it.

python -m tests.airflow.pairings_worker <fd of a socket>

This host has imported Airflow, and forks a worker for each order that it reads from the socket. It answers with the
worker's pid, and when that has ended with its exit code.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import psutil

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class TryOrder:
    """One try of a task: the task instance as the scheduler sends it, and what is in the worker's environment."""

    ti: dict[str, Any]
    dag_file: str
    api_url: str
    log: str
    environment: dict[str, str]


class Worker:
    """A worker at work on one try; `pid` is its supervisor's."""

    def __init__(self, words: IO[str]) -> None:
        self._words = words
        self.pid = int(words.readline())

    def wait(self) -> int:
        """Wait for the end; return the exit code of the supervisor, negative for a signal."""
        return int(self._words.readline())

    @property
    def task(self) -> psutil.Process:
        """The process in which the operator is executed."""
        (child,) = psutil.Process(self.pid).children()
        return child

    def lose(self, driver_pid: int) -> None:
        """Kill all of it at once, as a machine goes that is lost; only the driver lives, which runs elsewhere."""
        leader = psutil.Process(self.pid)
        for process in [leader, *leader.children(recursive=True)]:
            if process.pid != driver_pid:
                process.kill()
        self.wait()


class WorkerHost:
    """Where workers come from."""

    def __init__(self, words: IO[str]) -> None:
        self._words = words

    def start(self, order: TryOrder) -> Worker:
        """Start a worker."""
        self._words.write(f"{json.dumps(asdict(order))}\n")
        self._words.flush()
        return Worker(self._words)


@contextmanager
def worker_host(environment: Mapping[str, str]) -> Iterator[WorkerHost]:
    """Start the host; it is killed at the end, with all that it has started.

    Who waits for its answers has no time limit: each try ends, and where the host is gone they end as well.
    """
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", __spec__.name, str(theirs.fileno())]
    with ours, theirs, subprocess.Popen(command, env=environment, cwd=PROJECT, pass_fds=[theirs.fileno()]) as host:
        theirs.close()
        try:
            with ours.makefile("rw") as words:
                yield WorkerHost(words)
        finally:
            for process in psutil.Process(host.pid).children(recursive=True):
                process.kill()
            host.kill()


def _supervise(order: TryOrder) -> int:
    from airflow.executors.workloads import BundleInfo
    from airflow.sdk.api.datamodels._generated import TaskInstance
    from airflow.sdk.execution_time import supervisor

    os.environ.clear()
    os.environ.update(order.environment)
    supervise = getattr(supervisor, "supervise_task", None) or supervisor.supervise  # the latter in Airflow 3.2
    code: int = supervise(
        ti=TaskInstance.model_validate(order.ti),
        bundle_info=BundleInfo(name="dags-folder"),
        dag_rel_path=order.dag_file,
        token="",
        server=order.api_url,
        log_path=order.log,
    )
    return code


def _work(text: str) -> None:
    code = 1
    try:
        code = _supervise(TryOrder(**json.loads(text)))
    finally:
        os._exit(code)


def _serve(line: socket.socket) -> None:

    import airflow_bookmarks.operators.livy
    import airflow_bookmarks.operators.spark_submit  # noqa: F401

    with line.makefile("r") as orders, line.makefile("w") as answers:
        for text in orders:
            pid = os.fork()
            if pid == 0:
                _work(text)
            print(pid, file=answers, flush=True)
            _, status = os.waitpid(pid, 0)
            print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        _serve(given)
