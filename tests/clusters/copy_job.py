"""The script that these tests submit: it copies the lines of new files, and says where it runs and what it has there.

It runs where nothing of this project is but what the operator ships, so it imports nothing of the tests, nor of
`airflow_bookmarks.testing`. Its one argument is JSON with the fields of `tests.clusters.scene.Order`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import boto3.session
from pyspark.sql import SparkSession

import airflow_bookmarks
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.spark import BookmarkedJob


def main(order: dict[str, Any]) -> None:
    """Make the run, and note what it ends with: what a driver says is lost with the JVM that started it."""
    try:
        copy(order)
    except Exception as error:  # noted, and raised again
        (Path(order["root"]) / "error.txt").write_text(f"{type(error).__name__}: {error}")
        raise


def copy(order: dict[str, Any]) -> None:
    """Make the run as the script of a user does, and die, fail or wait where the order says so."""
    spark = SparkSession.builder.getOrCreate()
    with dying(order), BookmarkedJob(spark) as job:
        lines = job.read("raw").text(f"{order['root']}/raw")
        job.write(lines, "out").text(f"{order['root']}/out")
        report(spark, Path(order["root"]))
        pass_gate(order["gate"])
        if order["fails"]:
            raise ValueError("the last line of the block fails")


def report(spark: SparkSession, root: Path) -> None:
    """Say where this driver runs, and what it and its executors have there."""
    found = {
        "pid": os.getpid(),
        "package": airflow_bookmarks.__file__,
        "has_airflow": importlib.util.find_spec("airflow") is not None,
        "access_key": getattr(boto3.session.Session().get_credentials(), "access_key", None),
        "spark": spark.version,
        "python": sys.executable,
        "application_id": spark.sparkContext.applicationId,
        "conf": dict(spark.sparkContext.getConf().getAll()),
    }
    (root / "report.json").write_text(json.dumps(found))


def pass_gate(port: int) -> None:
    """Say that this driver has staged all, and wait to be told to go on. 0: there is no gate."""
    if not port:
        return
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"{os.getpid()}\n".encode())
        line.recv(1)


def dying(order: dict[str, Any]) -> AbstractContextManager[None]:
    """Have the job of the block die at the point of the order, if it names one."""

    def die(point: Failpoint) -> None:
        if point != order["fault"]:
            return
        if order["takes_its_container_along"]:  # first the JVM that started this process, as a lost machine does
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    return runs_in(lambda _: RunEnvironment(at=die))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
