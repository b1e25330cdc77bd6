"""A Livy server on the loopback, whose batches run on this machine, each in a Spark of its own.

A batch has nothing of the environment of whoever started the server: what it finds is what the server was given.

Example:
    >>> with livy_server(Path("work")) as livy:  # doctest: +SKIP
    ...     requests.post(f"{livy.url}/batches", json={"file": shutil.copy("job.py", livy.code)})
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.daemon import answer, daemon, java_home
from tools.jars import fetch
from tools.servers import free_port
from tools.spark_cluster import spark_home

_LOOPBACK = "127.0.0.1"
_HEAP = "-Xmx256m"
_KEPT_LINES = 10_000  # of what a batch says; 200 where nothing is said, which is less than one batch has

# Hadoop 2.7, which this Livy brings, looks into classes of Java's own that are closed to others since Java 17.
_OPENED = ("java.base/java.lang", "java.base/java.net", "java.base/java.util", "java.security.jgss/sun.security.krb5")

_LOG = """
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class LivyServer:
    """A running server: `port` is that of its REST API, `code` holds the scripts and archives that a batch may name."""

    port: int
    code: Path

    @property
    def url(self) -> str:
        return f"http://{_LOOPBACK}:{self.port}"

    def batches(self) -> list[dict[str, Any]]:
        """Return what the server tells of all batches that it knows, oldest first."""
        found: list[dict[str, Any]] = (answer(f"{self.url}/batches?size=1000") or {}).get("sessions", [])
        return sorted(found, key=lambda batch: int(batch["id"]))

    def said(self, batch_id: int) -> str:
        """Return what a batch has said so far, as far as the server has kept it.

        Raises:
            KeyError: the server knows no such batch, or was asked to delete it.
        """
        found = answer(f"{self.url}/batches/{batch_id}/log?from=0&size={_KEPT_LINES}")
        if found is None:
            raise KeyError(batch_id)
        return "\n".join(found["log"])


@contextmanager
def livy_server(folder: Path, batch_environment: Mapping[str, str] | None = None) -> Iterator[LivyServer]:
    """Start a server and wait until it answers.

    Args:
        folder: an empty or absent folder for configuration, code and log.
        batch_environment: what the server has, and so every batch, as a real one gives an identity to its jobs.

    Raises:
        RuntimeError: jars, pyspark or Java are missing, or the server did not come up; with the end of its log.
    """
    jars = fetch("livy")
    server = LivyServer(free_port(), folder / "code")
    conf = folder / "conf"
    for path in (conf, server.code, folder / "logs"):  # it keeps a log of requests, in a folder that it does not make
        path.mkdir(parents=True)
    _write_conf(conf, server)
    with daemon("livy", _command(jars, conf), _environment(folder, conf, batch_environment or {}), folder) as process:
        process.wait_until(lambda: answer(f"{server.url}/version") is not None)
        yield server


def _command(jars: Path, conf: Path) -> list[str]:
    command = [str(java_home() / "bin" / "java"), _HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    for package in _OPENED:
        command += ["--add-opens", f"{package}=ALL-UNNAMED"]
    return [*command, "-cp", os.pathsep.join([str(conf), f"{jars}/*"]), "org.apache.livy.server.LivyServer"]


def _environment(folder: Path, conf: Path, batch_environment: Mapping[str, str]) -> dict[str, str]:
    return {
        "HOME": os.environ.get("HOME", "/"),
        "JAVA_HOME": str(java_home()),
        "LANG": "C.UTF-8",
        "LIVY_CONF_DIR": str(conf),
        "LIVY_HOME": str(folder),
        "PATH": os.defpath,
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "USER": os.environ.get("USER", "livy"),
        **batch_environment,
    }


def _write_conf(conf: Path, server: LivyServer) -> None:
    settings = {
        "livy.cache-log.size": str(_KEPT_LINES),
        "livy.server.host": _LOOPBACK,
        "livy.server.port": str(server.port),
        "livy.file.local-dir-whitelist": f"{server.code}{os.sep}",
        "livy.spark.master": "local[1]",
        "livy.ui.enabled": "false",
    }
    (conf / "livy.conf").write_text("".join(f"{name} = {text}\n" for name, text in settings.items()))
    (conf / "log4j.properties").write_text(_LOG)
