"""What lets the Sparks that tests start be there, and be done, in less than half the time.

Most live for seconds: the second compiler and the parallel garbage collector of Java cost them more than they bring,
and so does Spark's own compiler, which writes and compiles Java for each query. `make test` and `make matrix` keep the
classes that Spark loads in an archive, which a process maps as it is.

With `SPARK_TESTS_CODEGEN=1` queries are compiled, as a user's are: so `make test-all` runs, and `make matrix` but for
Spark Connect.
"""

from __future__ import annotations

import os

from demo.class_archive import archive_path, has_spark, java_options

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Neither whole queries nor their expressions.
_WITHOUT_COMPILER = "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN"


def environment() -> dict[str, str]:
    """Return the variables by which spark-submit, and each session that a Python process starts, are quick."""
    if JAVA_OPTIONS in os.environ.get("SPARK_SUBMIT_OPTS", ""):
        return {}  # tests that run in a process of their own have those of the tests that started it
    archived = java_options(archive_path()) if has_spark() else ""
    options = f"{JAVA_OPTIONS} {archived}".strip()
    compiler = "" if os.environ.get("SPARK_TESTS_CODEGEN") == "1" else f" {_WITHOUT_COMPILER}"
    return {"SPARK_LAUNCHER_OPTS": options, **with_java_options(f"{options}{compiler}")}


def with_java_options(options: str) -> dict[str, str]:
    """Return the variable of spark-submit with more options, such as `-Dspark.ui.enabled=false`, than it has now."""
    return {"SPARK_SUBMIT_OPTS": f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {options}".strip()}
