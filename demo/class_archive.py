"""An archive of Spark's loaded classes: with it a driver starts in half the time (Java's class-data sharing).

Java refuses an archive whose jars have moved, so each environment of Python has its own, made once for each version of
Spark and Java. `python -m demo.class_archive` makes that of this environment, where Spark is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from demo import session

_WARM_UP = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
spark = SparkSession.builder.getOrCreate()
spark.range(100).withColumn("k", F.col("id") % 2).write.csv(sys.argv[1] + "/csv", header=True)
frame = spark.read.schema("id INT, k INT").option("header", True).csv(sys.argv[1] + "/csv")
frame.repartition("k").write.partitionBy("k").parquet(sys.argv[1] + "/parquet")
spark.read.parquet(sys.argv[1] + "/parquet").groupBy("k").agg(F.avg("id")).collect()
spark.stop()
"""


def archive_path(jars: Path | None = None) -> Path:
    """Return where the archive of this Spark and Java lies, whether or not it was made yet.

    Args:
        jars: a folder of what Spark has on its class path besides its own.
    """
    java = os.environ.get("JAVA_HOME", "") and str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    version = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr
    places = f"{_jars()}" if jars is None else f"{jars}\n{_jars()}"
    key = hashlib.sha256(f"{version}\n{places}\n{_spark_version()}".encode()).hexdigest()[:16]
    return Path(sys.prefix) / f"spark-classes-{_spark_version()}-{key}.jsa"


def kept_archive(environment: Mapping[str, str], say: Callable[[str], None], jars: Path | None = None) -> Path:
    """Return the path of the archive; where there is none it is made, which takes half a minute.

    Raises:
        RuntimeError: Spark does not run on this machine.
    """
    archive = archive_path(jars)
    if not archive.exists():
        say("Spark: keeping its classes in an archive; once for this environment, takes half a minute")
        _make_archive(archive, environment)
    return archive


def _make_archive(path: Path, environment: Mapping[str, str]) -> None:
    """Run a small Spark job and keep the classes that it loaded."""
    with tempfile.TemporaryDirectory() as folder:
        made, script = Path(folder) / "classes.jsa", Path(folder) / "warm_up.py"
        script.write_text(_WARM_UP, encoding="ascii")
        options = f"{environment.get('SPARK_SUBMIT_OPTS', '')} -XX:ArchiveClassesAtExit={made}"
        command = ["spark-submit", "--master", "local[2]", str(script), folder]
        session.run(command, {**environment, "SPARK_SUBMIT_OPTS": options})
        if made.exists():  # a Java without class-data sharing makes none, and does without
            beside = path.with_suffix(f".{os.getpid()}.part")
            shutil.move(made, beside)
            os.replace(beside, path)


def java_options(archive: Path) -> str:
    """Return the options with which a driver uses the archive, if it is there."""
    return f"-Xshare:auto -Xlog:disable -XX:SharedArchiveFile={archive}" if archive.exists() else ""


def main() -> None:
    """Make the archive of this environment, unless it is there or Spark is not."""
    if has_spark():
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        kept_archive({**os.environ, "PATH": programs, "PYSPARK_PYTHON": sys.executable}, print)


def has_spark() -> bool:
    """Return whether this environment has a Spark with its jars; what is a client of Spark Connect alone has none."""
    spec = importlib.util.find_spec("pyspark")
    return spec is not None and spec.origin is not None and (Path(spec.origin).parent / "jars").is_dir()


def _jars() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError(f"pyspark is not installed for {sys.executable}; 'make setup' installs it")
    return Path(spec.origin).parent / "jars"


def _spark_version() -> str:
    return next((path.stem.rpartition("-")[2] for path in _jars().glob("spark-core_*.jar")), "unknown")


if __name__ == "__main__":
    main()
