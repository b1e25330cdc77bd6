"""Jars that tests, demo and benchmarks need, in a cache of the user: fetched once, shared by every clone.

A set lies in `$XDG_CACHE_HOME/airflow-bookmarks/jars/<set>-<version>/` (`~/.cache` where the variable is unset).

Example:
    $ python -m tools.jars dynamodb-local
    /home/me/.cache/airflow-bookmarks/jars/dynamodb-local-2.6.1
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as XML

_FETCH_LIMIT_S = 900


@dataclass(frozen=True, slots=True)
class Artifact:
    """One Maven artifact; without `is_transitive` it comes alone."""

    group: str
    name: str
    version: str
    is_transitive: bool = True


@dataclass(frozen=True, slots=True)
class JarSet:
    """Artifacts that lie in one folder. `excludes` are transitive ones to leave out: `group:name`, `group:*`."""

    version: str
    artifacts: tuple[Artifact, ...]
    excludes: tuple[str, ...] = field(default=())


SETS: dict[str, JarSet] = {
    "dynamodb-local": JarSet("2.6.1", (Artifact("com.amazonaws", "DynamoDBLocal", "2.6.1"),)),
    # Both servers of HDFS. What they share is "provided" to each of them, so it is named.
    "hdfs": JarSet(
        "3.4.2",
        (
            Artifact("org.apache.hadoop", "hadoop-common", "3.4.2"),
            Artifact("org.apache.hadoop", "hadoop-hdfs-client", "3.4.2"),
            Artifact("org.apache.hadoop", "hadoop-hdfs", "3.4.2"),
        ),
    ),
    "livy": JarSet("0.7.1-incubating", (Artifact("org.apache.livy", "livy-server", "0.7.1-incubating"),)),
    # Not Hadoop's minicluster, which is one jar: its REST API answers in a form that no other YARN has.
    "yarn": JarSet(
        "3.4.2",
        (
            Artifact("org.apache.hadoop", "hadoop-yarn-server-resourcemanager", "3.4.2"),
            Artifact("org.apache.hadoop", "hadoop-yarn-server-nodemanager", "3.4.2"),
            # Unused, but the resource manager has a field of one of its classes; with its own it brings all of HBase.
            Artifact("org.apache.hadoop", "hadoop-yarn-server-timelineservice", "3.4.2", is_transitive=False),
        ),
    ),
    # What s3a needs of the SDK; the bundle that hadoop-aws asks for is fifty times as large.
    "s3a": JarSet(
        "3.4.2",
        (
            Artifact("org.apache.hadoop", "hadoop-aws", "3.4.2", is_transitive=False),
            Artifact("software.amazon.awssdk", "s3", "2.29.52"),
            Artifact("software.amazon.awssdk", "s3-transfer-manager", "2.29.52"),
            Artifact("software.amazon.awssdk", "sts", "2.29.52"),
            Artifact("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.2.1"),
        ),
        excludes=("io.netty:*", "org.slf4j:*", "commons-codec:*"),
    ),
    # Alone: what it asks for comes with Spark.
    "avro": JarSet("4.1.1", (Artifact("org.apache.spark", "spark-avro_2.13", "4.1.1", is_transitive=False),)),
}


def fetch(name: str) -> Path:
    """Return the folder that holds the jar set `name`, after fetching it if it is not in the cache yet.

    Raises:
        KeyError: no set has this name.
        RuntimeError: neither Maven nor Ivy could fetch it; the cache was left as it was.
    """
    if name not in SETS:
        raise KeyError(f"there is no jar set {name!r}; there are {sorted(SETS)}")
    jar_set = SETS[name]
    folder = cache_root() / f"{name}-{jar_set.version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Fetched beside its place and renamed: a folder that is there is whole, whoever else fetches at the same time.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
        jars = _fetch_into(Path(work), jar_set)
        try:
            jars.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def cache_root() -> Path:
    """Return the folder under which all jar sets lie."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "airflow-bookmarks" / "jars"


def _fetch_into(work: Path, jar_set: JarSet) -> Path:
    jars = work / "lib"
    jars.mkdir()
    maven = shutil.which("mvn")
    command = _maven_command(maven, work, jar_set) if maven else _ivy_command(work, jar_set)
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=_FETCH_LIMIT_S, check=False)
    if done.returncode != 0 or not any(jars.glob("*.jar")):
        raise RuntimeError(
            f"could not fetch the jars; nothing was put into the cache. Command: {' '.join(command)}\n"
            f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return jars


# ---- Maven: seconds


def _maven_command(maven: str, work: Path, jar_set: JarSet) -> list[str]:
    (work / "pom.xml").write_bytes(XML.tostring(_pom(jar_set)))
    goal = "dependency:copy-dependencies"
    return [maven, "--batch-mode", "--quiet", "--file", "pom.xml", goal, f"-DoutputDirectory={work / 'lib'}"]


def _pom(jar_set: JarSet) -> XML.Element:
    project = XML.Element("project")
    for tag, text in (("modelVersion", "4.0.0"), ("groupId", "jars"), ("artifactId", "jars"), ("version", "1")):
        XML.SubElement(project, tag).text = text
    dependencies = XML.SubElement(project, "dependencies")
    for artifact in jar_set.artifacts:
        dependency = XML.SubElement(dependencies, "dependency")
        for tag, text in (("groupId", artifact.group), ("artifactId", artifact.name), ("version", artifact.version)):
            XML.SubElement(dependency, tag).text = text
        exclusions = XML.SubElement(dependency, "exclusions")
        for group, name in _excluded(jar_set) if artifact.is_transitive else [("*", "*")]:
            exclusion = XML.SubElement(exclusions, "exclusion")
            XML.SubElement(exclusion, "groupId").text = group
            XML.SubElement(exclusion, "artifactId").text = name
    return project


# ---- Ivy, which pyspark ships: a minute or two, and no Maven needed


def _ivy_command(work: Path, jar_set: JarSet) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise RuntimeError("fetching jars takes Maven or Java, and neither is on PATH; nothing was put into the cache")
    (work / "ivy.xml").write_bytes(XML.tostring(_ivy_module(jar_set)))
    pattern = str(work / "lib" / "[artifact]-[revision](-[classifier]).[ext]")
    command = [java, f"-Divy.default.ivy.user.dir={work / 'ivy'}", "-jar", str(_ivy_jar())]
    return [*command, "-ivy", "ivy.xml", "-confs", "default", "-retrieve", pattern]


def _ivy_module(jar_set: JarSet) -> XML.Element:
    module = XML.Element("ivy-module", version="2.0")
    XML.SubElement(module, "info", organisation="jars", module="jars")
    configurations = XML.SubElement(module, "configurations")
    XML.SubElement(configurations, "conf", name="default")
    dependencies = XML.SubElement(module, "dependencies")
    for artifact in jar_set.artifacts:
        attributes = {"org": artifact.group, "name": artifact.name, "rev": artifact.version, "conf": "default->default"}
        XML.SubElement(dependencies, "dependency", attributes, transitive=str(artifact.is_transitive).lower())
    for group, name in _excluded(jar_set):
        XML.SubElement(dependencies, "exclude", org=group, module=name)
    return module


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("fetching jars takes Maven on PATH, or pyspark installed for its Ivy; neither was found")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise RuntimeError("this pyspark has no jars (is it pyspark-client alone?); put Maven on PATH")
    return found[-1]


def _excluded(jar_set: JarSet) -> list[tuple[str, str]]:
    return [(group, name or "*") for group, _, name in (text.partition(":") for text in jar_set.excludes)]


def main() -> None:
    """Fetch one jar set and print its folder."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.jars", description="Fetch a set of jars into the user's cache."
    )
    parser.add_argument("name", choices=sorted(SETS))
    print(fetch(parser.parse_args().name))


if __name__ == "__main__":
    main()
