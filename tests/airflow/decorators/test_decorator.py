"""Promises AIR-6 and AIR-7 for `@task.bookmark`: those of `decorated.py`, on a local session and on Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from airflow.sdk import DAG, task

from airflow_bookmarks.airflow_compat import has_pyspark_operator
from airflow_bookmarks.core.errors import OptionError
from tests.airflow.compat import DagSerialization, needs_pyspark_operator
from tests.airflow.decorators import decorated
from tools.patience import STUCK_S
from tools.servers import free_port

PROMISES = [name for name in vars(decorated) if name.startswith("test_")]

# Keeps the server until its input ends, which it does when this process does.
SERVER = """
import sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.port", sys.argv[1])
    .config("spark.driver.memory", "1g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
print("ready", flush=True)
sys.stdin.read()
spark.stop()
"""


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Run a Connect server on a free port; yield its address."""
    port = free_port()
    command = [sys.executable, "-c", SERVER, str(port)]
    pipe = subprocess.PIPE
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            assert any(line.startswith("ready") for line in server.stdout)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.stdin.close()
            server.wait(60)


def outcomes_of(folder: Path, remote: str) -> dict[str, str]:
    """Run all promises in one process; return per name what it failed with, empty where it held."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"--junit-xml={report}", f"--basetemp={folder / 'tests'}", str(Path(decorated.__file__))]
    environment = {**os.environ, "DECORATED_REMOTE": remote}
    done = subprocess.run(command, capture_output=True, text=True, timeout=STUCK_S, check=False, env=environment)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        found[case.attrib["name"]] = "\n".join(
            f"{part.get('message')}\n{part.text}" for part in case if part.tag in ("failure", "error")
        )
    return found


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return outcomes_of(tmp_path_factory.mktemp("local"), "")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("remote")
    with connect_server(folder) as address:
        return outcomes_of(folder, address)


@needs_pyspark_operator
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("decorator")  # or each worker of pytest would run all of them
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.seldom  # minutes; spark/test_life.py has what the runtime does
def test_on_a_local_session(local: dict[str, str], promise: str) -> None:
    assert local[promise] == ""


@needs_pyspark_operator
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.thorough  # the same on a server; spark/test_connect.py has what the runtime does there
@pytest.mark.parametrize("promise", PROMISES)
def test_on_connect(remote: dict[str, str], promise: str) -> None:
    assert remote[promise] == ""


# ---- without Spark


def _function() -> Any:
    """Return a function of its own for each task: a decorator changes the signature."""

    def copy(spark: Any, job: Any, day: str = "monday") -> None:
        """Do nothing: it is not called."""

    return copy


@needs_pyspark_operator
def test_decorator_is_found_and_survives_serialisation() -> None:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        task.bookmark(task_id="copy", bookmark_option="{{ params.o }}", bookmark_upstream=["a"])(_function())()

    again: Any = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).get_task("copy")

    assert (again.bookmark_option, list(again.bookmark_upstream)) == ("{{ params.o }}", ["a"])
    assert {"bookmark_job", "op_kwargs", "conn_id"} <= {*again.template_fields}


@needs_pyspark_operator
def test_function_may_be_mapped() -> None:
    with DAG("shop", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        task.bookmark(task_id="copy")(_function()).expand(day=["monday", "tuesday"])

    assert dag.get_task("copy").is_mapped


@needs_pyspark_operator
def test_what_is_wrong_is_said_when_the_file_is_read() -> None:
    with pytest.raises(OptionError, match="unknown argument 'bookmark_optoin'"):
        task.bookmark(task_id="copy", bookmark_optoin="pause")(_function())()
    with pytest.raises(OptionError, match="multiple_outputs"):
        task.bookmark(task_id="copy", multiple_outputs=True)(_function())
    with pytest.raises(OptionError, match="one run of one bookmark"):
        task.bookmark(task_id="copy", bookmark_shard="0/4")(_function())()
    with pytest.raises(OptionError, match="driver elsewhere"):
        task.bookmark(task_id="copy", ship_runtime=True)(_function())()


def test_provider_without_the_base_of_the_operator_is_named_when_the_file_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("airflow_bookmarks.decorators.bookmark.has_pyspark_operator", lambda: False)

    with pytest.raises(OptionError, match=r"Install apache-airflow-providers-apache-spark 5\.5 or later"):
        task.bookmark(task_id="copy")(_function())


def test_decorator_is_refused_just_where_the_provider_lacks_it() -> None:
    refusal = nullcontext() if has_pyspark_operator() else pytest.raises(OptionError, match="needs the PySparkOperator")

    with refusal:
        task.bookmark(task_id="copy")(_function())


def test_module_is_imported_without_spark_or_runtime() -> None:
    code = (
        "import sys, airflow_bookmarks.decorators.bookmark; "
        "sys.exit(any(name.partition('.')[0] == 'pyspark' or name.startswith('airflow_bookmarks.spark')"
        " for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
