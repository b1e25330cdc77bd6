"""A Spark standalone cluster on the loopback: one master and two workers, from an installed pyspark.

Example:
    >>> with spark_cluster(Path("work")) as cluster:  # doctest: +SKIP
    ...     subprocess.run(["spark-submit", "--master", cluster.master, "job.py"])
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.daemon import Daemon, answer, daemon, java_home
from tools.servers import free_port

WORKERS = 2
_LOOPBACK = "127.0.0.1"
_DAEMON_MEMORY = "256m"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster: `master` is the URL that spark-submit takes, `work` holds a folder for each application."""

    master: str
    work: Path


@contextmanager
def spark_cluster(folder: Path, home: Path | None = None) -> Iterator[SparkCluster]:
    """Start a master and two workers of 1 core and 1 GB each, and wait until the master knows both.

    Args:
        folder: where logs and what applications leave lie.
        home: the Spark to run; default: that of this Python.

    Raises:
        RuntimeError: pyspark or Java is missing, or a server did not come up; with the end of its log.
    """
    port, web_port = free_port(), free_port()
    master_url = f"spark://{_LOOPBACK}:{port}"
    home = spark_home() if home is None else home
    work = folder / "work"
    work.mkdir(parents=True)
    with ExitStack() as stack:
        master = stack.enter_context(_server("master", "Master", ["--port", str(port)], web_port, folder, home))
        master.wait_until(lambda: _alive_workers(web_port) is not None)
        for number in range(1, WORKERS + 1):
            options = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), master_url]
            stack.enter_context(_server(f"worker {number}", "Worker", options, free_port(), folder, home))
        master.wait_until(lambda: _alive_workers(web_port) == WORKERS)
        yield SparkCluster(master_url, work)


def spark_home(python: str = sys.executable) -> Path:
    """Return the folder of the pyspark that is installed for a Python, which is a whole Spark.

    Raises:
        RuntimeError: it is not installed.
    """
    if python != sys.executable:
        where = "import importlib.util; print(importlib.util.find_spec('pyspark').origin)"
        return Path(subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout).parent
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError(f"pyspark is not installed for {sys.executable}; 'make setup' installs it")
    return Path(spec.origin).parent


def _server(
    name: str, kind: str, options: list[str], web_port: int, folder: Path, home: Path
) -> AbstractContextManager[Daemon]:
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
    command += ["--host", _LOOPBACK, "--webui-port", str(web_port), *options]
    return daemon(f"spark {name}", command, _environment(home), folder)


def _environment(home: Path) -> dict[str, str]:
    """Return what the servers, and so the executors, have of the environment: nothing that a driver may lean on."""
    return {
        "HOME": os.environ.get("HOME", "/"),
        "JAVA_HOME": str(java_home()),
        "LANG": "C.UTF-8",
        "PATH": os.environ.get("PATH", os.defpath),
        "SPARK_DAEMON_MEMORY": _DAEMON_MEMORY,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _LOOPBACK,
    }


def _alive_workers(web_port: int) -> int | None:
    state = answer(f"http://{_LOOPBACK}:{web_port}/json/")
    return None if state is None else int(state["aliveworkers"])
