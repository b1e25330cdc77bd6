"""A YARN cluster on the loopback, without Hadoop installed: one resource manager, one node manager.

A container has nothing of the environment of whoever started the cluster: what it finds is what the node gives it.

Example:
    >>> with yarn_cluster(Path("work")) as cluster:  # doctest: +SKIP
    ...     environment = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf)}
    ...     command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "job.py"]
    ...     subprocess.run(command, env=environment)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from xml.etree import ElementTree as XML

from tools.daemon import Daemon, answer, daemon, java_home
from tools.jars import fetch
from tools.patience import STUCK_S
from tools.servers import free_port

_LOOPBACK = "127.0.0.1"
_SERVER = "org.apache.hadoop.yarn.server"
_HEAP = "-Xmx400m"
_CONTAINERS_MB = 4096  # what all containers together may take

_MANAGER_PORTS = {
    "yarn.resourcemanager.address",
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.resource-tracker.address",
    "yarn.resourcemanager.admin.address",
    "yarn.nodemanager.address",
    "yarn.nodemanager.localizer.address",
    "yarn.nodemanager.webapp.address",
}

_SCHEDULER = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.9",
    # By memory alone: a machine of two cores would else hold a driver and one executor.
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
}


_LOG = """
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class YarnCluster:
    """A running cluster: `conf` goes into HADOOP_CONF_DIR, `web` is the resource manager's REST API."""

    conf: Path
    web: str
    logs: Path
    staging: Path

    def application(self, application_id: str) -> dict[str, Any]:
        """Return what the resource manager knows of an application: `state`, `finalStatus`, `diagnostics` ...

        Raises:
            KeyError: it knows none of this id.
        """
        found = answer(f"{self.web}/ws/v1/cluster/apps/{application_id}")
        if found is None:
            raise KeyError(application_id)
        app: dict[str, Any] = found["app"]
        return app

    def applications(self) -> list[dict[str, Any]]:
        """Return what the resource manager knows of all applications, oldest first."""
        found = (answer(f"{self.web}/ws/v1/cluster/apps") or {}).get("apps") or {}
        return sorted(found.get("app", []), key=lambda app: int(app["startedTime"]))

    def kill(self, application_id: str) -> None:
        """Ask the resource manager to end an application and its containers."""
        url = f"{self.web}/ws/v1/cluster/apps/{application_id}/state"
        body, headers = b'{"state": "KILLED"}', {"Content-Type": "application/json"}
        with urlopen(Request(url, body, headers, method="PUT"), timeout=STUCK_S):  # noqa: S310  # of the loopback
            return

    def said(self, application_id: str) -> str:
        """Return what the containers of an application have said so far."""
        files = sorted((self.logs / application_id).glob("*/std*"))
        return "\n".join(f"---- {file.parent.name}/{file.name}\n{file.read_text(errors='replace')}" for file in files)


@contextmanager
def yarn_cluster(folder: Path, container_environment: Mapping[str, str] | None = None) -> Iterator[YarnCluster]:
    """Start both servers, and wait until the resource manager knows the node.

    Args:
        folder: an empty or absent folder for conf, logs and containers.
        container_environment: what the node gives to every container, as a real one gives an identity to its jobs.

    Raises:
        RuntimeError: jars, pyspark or Java are missing, or a server did not come up; with the end of its log.
    """
    jars = fetch("yarn")
    cluster = YarnCluster(folder / "conf", f"http://{_LOOPBACK}:{free_port()}", folder / "logs", folder / "staging")
    for path in (cluster.conf, cluster.logs, cluster.staging, folder / "local"):
        path.mkdir(parents=True)
    _write_conf(cluster, folder, container_environment or {})
    with ExitStack() as stack:
        manager = stack.enter_context(_server("resource manager", cluster, jars, folder))
        manager.wait_until(lambda: _active_nodes(cluster) is not None)
        node = stack.enter_context(_server("node manager", cluster, jars, folder))
        node.wait_until(lambda: _active_nodes(cluster) == 1)
        yield cluster


def _server(name: str, cluster: YarnCluster, jars: Path, folder: Path) -> AbstractContextManager[Daemon]:
    home = java_home()
    main = {"resource manager": "resourcemanager.ResourceManager", "node manager": "nodemanager.NodeManager"}[name]
    classes = os.pathsep.join([str(cluster.conf), f"{jars}/*"])
    # Hadoop looks into classes of Java's own, which is closed to others since Java 17.
    command = [str(home / "bin" / "java"), "--add-opens", "java.base/java.lang=ALL-UNNAMED", _HEAP]
    command += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, f"{_SERVER}.{main}"]
    environment = {
        "HOME": os.environ.get("HOME", "/"),
        "JAVA_HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.defpath,
        "USER": os.environ.get("USER", "yarn"),
    }
    return daemon(f"yarn {name}", command, environment, folder)


def _active_nodes(cluster: YarnCluster) -> int | None:
    metrics = answer(f"{cluster.web}/ws/v1/cluster/metrics")
    return None if metrics is None else int(metrics["clusterMetrics"]["activeNodes"])


# ---- configuration


def _write_conf(cluster: YarnCluster, folder: Path, container_environment: Mapping[str, str]) -> None:
    (cluster.conf / "log4j.properties").write_text(_LOG)
    _write(cluster.conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")})
    _write(cluster.conf / "capacity-scheduler.xml", _SCHEDULER)
    _write(
        cluster.conf / "yarn-site.xml",
        {
            **{name: f"{_LOOPBACK}:{free_port()}" for name in _MANAGER_PORTS},
            "yarn.resourcemanager.hostname": _LOOPBACK,
            "yarn.resourcemanager.webapp.address": cluster.web.removeprefix("http://"),
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",  # a container starts that much sooner
            "yarn.nodemanager.hostname": _LOOPBACK,
            "yarn.nodemanager.admin-env": ",".join(f"{name}={text}" for name, text in container_environment.items()),
            "yarn.nodemanager.resource.memory-mb": str(_CONTAINERS_MB),
            "yarn.scheduler.minimum-allocation-mb": "256",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(cluster.logs),
            "yarn.nodemanager.delete.debug-delay-sec": "0",
            # The first check is made all the same, and takes a disk that is nine tenths full for a bad one.
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        },
    )


def _write(path: Path, properties: Mapping[str, str]) -> None:
    root = XML.Element("configuration")
    for name, text in properties.items():
        entry = XML.SubElement(root, "property")
        XML.SubElement(entry, "name").text = name
        XML.SubElement(entry, "value").text = text
    path.write_bytes(XML.tostring(root))
