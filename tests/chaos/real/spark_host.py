"""What one spark-submit runs to have many drivers: each a process of its own, started by the order and killed as such.

spark-submit tests/chaos/real/spark_host.py <port>

It takes one order a line from the port of the loopback, and answers with the exit code of the driver. The drivers find
the gateway of the JVM as any Python process does that spark-submit starts; only the start of the JVM is saved, half of
the time that a driver takes. What a dead driver leaves in the JVM, its Spark context, is stopped before the next.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.java_gateway import launch_gateway

DRIVER = Path(__file__).with_name("spark_driver.py")


def serve(port: int) -> None:
    """Run drivers until the other end closes the line."""
    jvm = launch_gateway().jvm  # type: ignore[no-untyped-call]
    with socket.create_connection(("127.0.0.1", port)) as line, line.makefile("rw") as words:
        for order in words:
            code = subprocess.run([sys.executable, str(DRIVER), order.strip()], check=False).returncode
            _stop_context(jvm)
            words.write(f"{code}\n")
            words.flush()


def _stop_context(jvm: Any) -> None:
    jvm.org.apache.spark.sql.SparkSession.clearDefaultSession()
    jvm.org.apache.spark.sql.SparkSession.clearActiveSession()
    jvm.org.apache.spark.SparkContext.getOrCreate().stop()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
