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
from importlib import metadata
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


@dataclass(frozen=True, slots=True)
class SparkJars:
    """What is put beside the jars of a Spark, by the newest versions that were tried with it.

    Attributes:
        scala: The Scala of its packages.
        hadoop: The Hadoop that it brings, which `hadoop-aws` has to equal.
        sdk: The AWS SDK that this `hadoop-aws` is compiled against, or the next version that is to be had.
        avro: `spark-avro`.
        analytics: `analyticsaccelerator-s3`, for a `hadoop-aws` that asks for it.
        connect: `spark-connect`, for a Spark that does not bring the server.
        delta: `delta-spark`, by its name without the Scala, and its version.
        delta_storage: `delta-storage`, which Delta asks for.
        iceberg: `iceberg-spark-runtime`, which is made for one Spark each.
    """

    scala: str
    hadoop: str
    sdk: str
    avro: str
    analytics: str = ""
    connect: str = ""
    delta: tuple[str, str] | None = None
    delta_storage: str = ""
    iceberg: tuple[str, str] | None = None

    def sets(self) -> dict[str, JarSet]:
        """Return the jar sets, by kind."""
        # The packages of Spark come alone: what they ask for comes with Spark.
        sets = {"avro": JarSet(self.avro, (self._of_spark("spark-avro", self.avro),)), "s3a": self._s3a()}
        if self.connect:
            sets["connect"] = JarSet(self.connect, (self._of_spark("spark-connect", self.connect),))
        if self.delta:
            (name, version), group = self.delta, "io.delta"
            delta = Artifact(group, f"{name}_{self.scala}", version, is_transitive=False)
            sets["delta"] = JarSet(version, (delta, Artifact(group, "delta-storage", self.delta_storage, False)))
        if self.iceberg:
            name, version = self.iceberg
            runtime = Artifact("org.apache.iceberg", f"{name}_{self.scala}", version, is_transitive=False)
            sets["iceberg"] = JarSet(version, (runtime,))
        return sets

    def _of_spark(self, name: str, version: str) -> Artifact:
        return Artifact("org.apache.spark", f"{name}_{self.scala}", version, is_transitive=False)

    def _s3a(self) -> JarSet:
        # What s3a needs of the SDK; the bundle that hadoop-aws asks for is fifty times as large.
        hadoop = Artifact("org.apache.hadoop", "hadoop-aws", self.hadoop, is_transitive=False)
        version = f"{self.hadoop}-sdk-{self.sdk}"
        if self.sdk.startswith("1."):
            parts = [Artifact("com.amazonaws", f"aws-java-sdk-{name}", self.sdk) for name in ("s3", "sts", "dynamodb")]
            return JarSet(version, (hadoop, *parts), ("com.fasterxml.jackson.core:*", *_OF_SPARK))
        group = "software.amazon.awssdk"
        parts = [Artifact(group, name, self.sdk) for name in ("s3", "s3-transfer-manager", "sts")]
        if self.analytics:
            name = "analyticsaccelerator-s3"
            parts.append(Artifact("software.amazon.s3.analyticsaccelerator", name, self.analytics))
        return JarSet(version, (hadoop, *parts), ("io.netty:*", *_OF_SPARK))


_OF_SPARK = ("org.slf4j:*", "commons-codec:*")

# By the first two numbers of the version of Spark: `docs/reference/spark_versions.md` shows it to users.
FOR_SPARK: dict[str, SparkJars] = {
    "3.5": SparkJars(
        "2.12",
        hadoop="3.3.4",
        sdk="1.12.262",
        avro="3.5.9",
        connect="3.5.7",
        delta=("delta-spark", "3.3.2"),
        delta_storage="3.3.2",
        iceberg=("iceberg-spark-runtime-3.5", "1.12.0"),
    ),
    "4.0": SparkJars(
        "2.13",
        hadoop="3.4.1",
        sdk="2.29.52",
        avro="4.0.2",
        delta=("delta-spark_4.0", "4.4.0"),
        delta_storage="4.4.0",
        iceberg=("iceberg-spark-runtime-4.0", "1.11.0"),
    ),
    "4.1": SparkJars(
        "2.13",
        hadoop="3.4.2",
        sdk="2.29.52",
        avro="4.1.1",
        analytics="1.2.1",
        delta=("delta-spark_4.1", "4.4.0"),
        delta_storage="4.4.0",
        iceberg=("iceberg-spark-runtime-4.1", "1.12.0"),
    ),
    "4.2": SparkJars(
        "2.13",
        hadoop="3.5.0",
        sdk="2.35.4",
        avro="4.1.1",
        analytics="1.3.1",
        delta=("delta-spark_4.2", "4.4.0"),
        delta_storage="4.4.0",
    ),
}

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
    # JDBC drivers. What they ask for besides is for other ways to log in, and for logs, which Spark has.
    "mariadb": JarSet("3.5.11", (Artifact("org.mariadb.jdbc", "mariadb-java-client", "3.5.11", is_transitive=False),)),
    "postgresql": JarSet("42.7.14", (Artifact("org.postgresql", "postgresql", "42.7.14", is_transitive=False),)),
    "sqlite": JarSet("3.53.2.0", (Artifact("org.xerial", "sqlite-jdbc", "3.53.2.0", is_transitive=False),)),
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
    **{f"{kind}-spark-{spark}": jars for spark, given in FOR_SPARK.items() for kind, jars in given.sets().items()},
}


def fetch_for_spark(kind: str) -> Path:
    """Return the folder that holds jars for the installed pyspark: `avro`, `s3a`, `delta` and so on; see `fetch`.

    Raises:
        KeyError: there are none of this kind for this Spark, or pyspark is not installed.
    """
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise KeyError(f"{kind}: pyspark is not installed, whose version says which jars it takes") from None
    return fetch(f"{kind}-spark-{'.'.join(version.split('.')[:2])}")


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
