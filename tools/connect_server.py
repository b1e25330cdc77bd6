"""A Spark Connect server on the loopback, from the installed pyspark, in a process of its own.

Example:
    >>> with connect_server(Path("work")) as url:  # doctest: +SKIP
    ...     SparkSession.builder.remote(url).create().range(3).count()
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from tools.daemon import daemon, java_home
from tools.jars import fetch_for_spark
from tools.servers import free_port
from tools.spark_cluster import spark_home

_LOOPBACK = "127.0.0.1"
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Start a server with two cores, wait until it listens, and yield the URL that clients take.

    Args:
        folder: where its log and its scratch files lie.
        conf: Spark's conf; `spark.driver.memory` bounds the server.

    Raises:
        RuntimeError: jars, pyspark or Java are missing, or it did not come up; with the end of its log.
    """
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": _LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.local.dir": str(folder),
        **_with_its_own_jar(conf),
    }
    command = [str(spark_home() / "bin" / "spark-class"), "org.apache.spark.deploy.SparkSubmit", "--class", _SERVER]
    command += ["--master", "local[2]"]
    for key, text in settings.items():
        command += ["--conf", f"{key}={text}"]
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": _LOOPBACK,
    }
    environment.pop("SPARK_CONNECT_MODE_ENABLED", None)  # that of a client which this process had before
    with daemon("spark connect", command, environment, folder) as server:
        server.wait_until(lambda: _listens(port))
        yield f"sc://{_LOOPBACK}:{port}"


def _with_its_own_jar(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the conf with the jar of the server, where this pyspark does not bring it."""
    if any((spark_home() / "jars").glob("spark-connect_*.jar")):
        return dict(conf)
    own = ",".join(map(str, sorted(fetch_for_spark("connect").glob("*.jar"))))
    return {**conf, "spark.jars": f"{own},{conf['spark.jars']}" if conf.get("spark.jars") else own}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_LOOPBACK, port)) == 0
