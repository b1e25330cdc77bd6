"""HDFS on the loopback, without Hadoop installed: one name node, one data node.

Example:
    >>> with hdfs_cluster(Path("work")) as cluster:  # doctest: +SKIP
    ...     urlopen(f"http://{cluster.http}/webhdfs/v1/?op=LISTSTATUS")
"""

from __future__ import annotations

import getpass
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as XML

from tools.daemon import answer, daemon, java_home
from tools.jars import fetch
from tools.patience import STUCK_S
from tools.servers import free_port

_LOOPBACK = "127.0.0.1"
_SERVER = "org.apache.hadoop.hdfs.server"
_MAINS = {"name node": f"{_SERVER}.namenode.NameNode", "data node": f"{_SERVER}.datanode.DataNode"}
_HEAP = "-Xmx256m"

_LOG = """
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class HdfsCluster:
    """A running HDFS: `conf` goes into HADOOP_CONF_DIR, `authority` into `hdfs://...`, `http` is its REST API's."""

    conf: Path
    authority: str
    http: str


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[HdfsCluster]:
    """Format a file system, start both servers, and wait until the name node knows the data node.

    Args:
        folder: an empty or absent folder for conf, logs and blocks.

    Raises:
        RuntimeError: jars or Java are missing, or a server did not come up; with the end of its log.
    """
    jars = fetch("hdfs")
    cluster = HdfsCluster(folder / "conf", f"{_LOOPBACK}:{free_port()}", f"{_LOOPBACK}:{free_port()}")
    for path in (cluster.conf, *(cluster.conf / "webapps" / name for name in ("hdfs", "datanode"))):
        path.mkdir(parents=True)  # the pages of the servers are in no jar, and without a folder for them none starts
    _write_conf(cluster, folder)
    _format(cluster, jars, folder)
    with ExitStack() as stack:
        names = stack.enter_context(
            daemon("hdfs name node", _command("name node", cluster, jars), _environment(), folder)
        )
        names.wait_until(lambda: _live_nodes(cluster) is not None)
        data = stack.enter_context(
            daemon("hdfs data node", _command("data node", cluster, jars), _environment(), folder)
        )
        data.wait_until(lambda: _live_nodes(cluster) == 1)
        yield cluster


def _format(cluster: HdfsCluster, jars: Path, folder: Path) -> None:
    command = [*_command("name node", cluster, jars), "-format", "-nonInteractive"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=STUCK_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the name node could not format its folder:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _command(name: str, cluster: HdfsCluster, jars: Path) -> list[str]:
    classes = os.pathsep.join([str(cluster.conf), f"{jars}/*"])
    # Hadoop looks into classes of Java's own, which is closed to others since Java 17.
    command = [str(java_home() / "bin" / "java"), "--add-opens", "java.base/java.lang=ALL-UNNAMED", _HEAP]
    return [*command, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes, _MAINS[name]]


def _environment() -> dict[str, str]:
    return {
        "HADOOP_USER_NAME": getpass.getuser(),
        "HOME": os.environ.get("HOME", "/"),
        "JAVA_HOME": str(java_home()),
        "LANG": "C.UTF-8",
        "PATH": os.defpath,
        "USER": getpass.getuser(),
    }


def _live_nodes(cluster: HdfsCluster) -> int | None:
    found = answer(f"http://{cluster.http}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
    beans = (found or {}).get("beans")
    return int(beans[0]["NumLiveDataNodes"]) if beans else None


# ---- configuration


def _write_conf(cluster: HdfsCluster, folder: Path) -> None:
    (cluster.conf / "log4j.properties").write_text(_LOG)
    default = {"fs.defaultFS": f"hdfs://{cluster.authority}", "hadoop.tmp.dir": str(folder / "tmp")}
    _write(cluster.conf / "core-site.xml", default)
    _write(
        cluster.conf / "hdfs-site.xml",
        {
            "dfs.namenode.rpc-address": cluster.authority,
            "dfs.namenode.http-address": cluster.http,
            "dfs.namenode.name.dir": f"file://{folder}/names",
            "dfs.datanode.data.dir": f"file://{folder}/blocks",
            "dfs.datanode.address": f"{_LOOPBACK}:{free_port()}",
            "dfs.datanode.http.address": f"{_LOOPBACK}:{free_port()}",
            "dfs.datanode.ipc.address": f"{_LOOPBACK}:{free_port()}",
            "dfs.datanode.hostname": _LOOPBACK,
            "dfs.datanode.du.reserved": "0",
            "dfs.replication": "1",
            "dfs.blocksize": "16777216",
            "dfs.ls.limit": "3",  # entries of one answer, so that most listings take several
            "dfs.namenode.safemode.extension": "0",
            "dfs.heartbeat.interval": "1",
        },
    )


def _write(path: Path, properties: dict[str, str]) -> None:
    root = XML.Element("configuration")
    for name, text in properties.items():
        entry = XML.SubElement(root, "property")
        XML.SubElement(entry, "name").text = name
        XML.SubElement(entry, "value").text = text
    path.write_bytes(XML.tostring(root))
