"""Starting spark-submit, in a session of its own that ends with the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from demo import session
from tests.chaos.real.order import Order
from tests.quick_spark import JAVA_OPTIONS
from tools.patience import STUCK_S

ROOT = Path(__file__).parents[3]
_PROGRAMS = Path(sys.executable).parent
_HERE = Path(__file__).parent
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,  # halves short drivers
}


def environment() -> dict[str, str]:
    """Return the environment in which spark-submit finds this Python and these modules."""
    return {
        **os.environ,
        "PATH": f"{_PROGRAMS}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }


def spark_submit(script: str, *arguments: str, conf: Mapping[str, str] | None = None) -> list[str]:
    """Return the command that runs a script, of this folder if it is a bare name; `conf` is more of Spark's."""
    given = {**_CONF, **(conf or {})}.items()
    words = [word for name, value in given for word in ("--conf", f"{name}={value}")]
    options = ["--master", "local[1]", "--driver-memory", "600m", *words]
    return [str(_PROGRAMS / "spark-submit"), *options, str(_HERE / script), *arguments]


@contextmanager
def started(command: Sequence[str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; it and all that it started are killed at the end. What they say goes to the file `said`."""
    with said.open("ab") as output:
        leader = session.start(command, environment(), stdout=output, stderr=subprocess.STDOUT)
        try:
            yield leader
        finally:
            session.end(leader)


def submit(order: Order) -> int:
    """Run a driver by a spark-submit of its own; return the exit code of spark-submit."""
    with started(spark_submit("spark_driver.py", order.to_text()), order.said) as leader:
        return leader.wait(STUCK_S)


class SparkHost:
    """One JVM of spark-submit in which drivers run one after the other."""

    def __init__(self, words: IO[str]) -> None:
        self._words = words

    def start(self, order: Order) -> None:
        """Start a driver."""
        self._words.write(f"{order.to_text()}\n")
        self._words.flush()

    def wait(self) -> int:
        """Wait for the end of the driver that was started; return its exit code, negative for a signal."""
        return int(self._words.readline())

    def drive(self, order: Order) -> int:
        """Run a driver to its end; return its exit code."""
        self.start(order)
        return self.wait()


@contextmanager
def spark_host(said: Path) -> Iterator[SparkHost]:
    """Start spark-submit, and wait until it takes orders."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(STUCK_S)
        with started(spark_submit("spark_host.py", str(server.getsockname()[1])), said):
            line, _ = server.accept()
            line.settimeout(STUCK_S)
            with line, line.makefile("rw") as words:
                yield SparkHost(words)
