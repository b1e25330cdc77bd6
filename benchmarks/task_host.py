"""A process that has imported Airflow, and forks a worker for each task that it is told to execute.

    python -P benchmarks/task_host.py FD

An executor's supervisor does the same, so a task does not pay for Airflow itself. The provider's operator is imported
before the fork too, although each task pays for it: ours stands on it, and what ours adds is then seen without that.
Orders come as lines of JSON through the socket FD, each answered by one. This end imports nothing of the benchmark: it
runs where the provider is installed as users have it.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import time
import traceback
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any


def main(line: socket.socket) -> None:
    """Execute tasks until the other end hangs up."""
    import airflow.providers.apache.spark.operators.spark_submit
    import airflow.sdk.execution_time.supervisor
    import airflow.sdk.execution_time.task_runner  # noqa: F401

    with line.makefile("r") as orders:
        for text in orders:
            pid = os.fork()
            if pid == 0:
                _work(line, json.loads(text))
            _, status = os.waitpid(pid, 0)
            if status != 0:
                raise SystemExit(f"a worker ended with {os.waitstatus_to_exitcode(status)}")


def _work(line: socket.socket, order: dict[str, Any]) -> None:
    code = 1
    try:
        line.sendall(f"{json.dumps(_execute(order))}\n".encode())
        code = 0
    except BaseException:  # told before `os._exit`, which would lose it
        traceback.print_exc()
        raise
    finally:
        os._exit(code)  # what the host has to do at its end is not the worker's


def _execute(order: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(order["environment"])
    module, _, name = order["operator"].rpartition(".")
    begun = time.process_time()
    operator = getattr(importlib.import_module(module), name)
    imported_s = time.process_time() - begun
    started = time.perf_counter()
    result = operator(task_id=order["task_id"], **order["arguments"]).execute(_context(order))
    return {"import_s": imported_s, "execute_s": time.perf_counter() - started, "result": result}


def _context(order: dict[str, Any]) -> Any:
    """Return what Airflow hands to `execute`, as far as the two operators look at it."""
    ti = SimpleNamespace(
        dag_id="bench", task_id=order["task_id"], run_id=order["dag_run_id"], map_index=-1, try_number=1, max_tries=0
    )
    return {"ti": ti, "logical_date": datetime(2026, 5, 3, tzinfo=UTC)}


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        main(given)
