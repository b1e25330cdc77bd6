"""The worker process of these tests: what the operator does around Spark, in a process that can be killed.

python -m tests.chaos.real.worker <order> <command ...>

It runs the command with the order as its last argument. The decisions are the operator's own (`Attempt`, of which
`BookmarkSparkSubmitOperator.execute` makes its try of a task); that Airflow itself starts no process here, and that the
task's first try is 1, is all that differs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from airflow.sdk.exceptions import AirflowException

from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.store.bookmark_store import open_store
from tests.chaos.real.order import JOB, Order


def work(order: Order, command: Sequence[str]) -> Summary:
    """Play one try of the task, in the order of `BookmarkedSubmission.run_bookmarked`."""
    attempt = Attempt(open_store(order.store), JOB, order.identity, first=1, environment=RunEnvironment())
    earlier = attempt.finish_earlier()
    if earlier is not None:
        print("Spark was not needed")
        return earlier
    attempt.check_free("fail")
    code = subprocess.run([*command, order.to_text()], check=False).returncode
    if code == 0:
        return attempt.finish()
    error = AirflowException(f"Cannot execute: {command[0]}. Error code is: {code}.")
    summary = attempt.settle(error)
    if summary is None:
        raise error
    return summary


if __name__ == "__main__":
    work(Order.from_text(sys.argv[1]), sys.argv[2:])
