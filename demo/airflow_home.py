"""An Airflow of the demo's own: its home, its settings, its connections. All by environment, nothing in files."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from demo import session
from demo.cache import cache_folder
from demo.folders import PROJECT, Folders, dags
from demo.store import AWS_ENVIRONMENT, AWS_HIDDEN

if TYPE_CHECKING:
    from demo.lake import Lake

_DATABASE = "airflow.db"
_SPARK_OPTIONS = "-Dspark.ui.enabled=false -Dspark.ui.showConsoleProgress=false -Dspark.sql.shuffle.partitions=4"


def environment(folders: Folders, store: str, spark_java_options: str, lake: Lake | None = None) -> dict[str, str]:
    """Return the environment in which Airflow, and the Spark that it starts, know nothing but this demo.

    Args:
        folders: where all of it lies.
        store: the URI of the state store.
        spark_java_options: what Java is told by whoever starts Spark.
        lake: where the files of the DAGs lie; None: below `folders`.
    """
    java_options = spark_java_options if lake is None else f"{lake.java_options} {spark_java_options}"
    inherited = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
    return {**inherited, **AWS_ENVIRONMENT, **_airflow(folders, store), **_of_lake(lake), **_spark(java_options)}


def _is_foreign(name: str) -> bool:
    return name.startswith(("AIRFLOW", "SPARK_", "PYSPARK_")) or name in (*AWS_HIDDEN, "PYTHONPATH", "PYTHONHOME")


def _airflow(folders: Folders, store: str) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(folders.airflow),
        # Several processes of one Airflow write to it: they wait for each other, and don't fail after five seconds.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folders.airflow / _DATABASE}?timeout=60",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags()),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "0",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(folders.logs / "airflow"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW_CONN_BOOKMARKS_DEFAULT": json.dumps({"conn_type": "bookmarks", "extra": {"store": store}}),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "AIRFLOW__BOOKMARKS__LOOK_BELOW": str(folders.data),
        "AIRFLOW_VAR_FLIGHTS_DATA": str(folders.data),
        "PYTHONPATH": str(PROJECT),
        "PYTHONUNBUFFERED": "1",
    }


def _of_lake(lake: Lake | None) -> dict[str, str]:
    return (
        {}
        if lake is None
        else {"AIRFLOW__BOOKMARKS__LOOK_BELOW": lake.data, "AIRFLOW_VAR_FLIGHTS_DATA": lake.data, **lake.environment}
    )


def _spark(java_options: str) -> dict[str, str]:
    # spark-submit finds Spark and Python through PATH, and executors take PYSPARK_PYTHON.
    programs = Path(sys.executable).parent
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": f"{_SPARK_OPTIONS} {java_options}".strip(),
    }


def migrate(folders: Folders, settings: Mapping[str, str]) -> None:
    """Put Airflow's empty metadata database in place: migrated once for each version, copied after that.

    Raises:
        RuntimeError: the migration failed.
    """
    database = folders.airflow / _DATABASE
    cached = cache_folder("airflow") / f"airflow-{version('apache-airflow-core')}.db"
    if cached.exists():
        shutil.copyfile(cached, database)
        return
    session.run([sys.executable, "-m", "airflow", "db", "migrate"], settings)
    beside = cached.with_suffix(f".{os.getpid()}.part")
    shutil.copyfile(database, beside)
    os.replace(beside, cached)
