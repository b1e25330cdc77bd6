"""The example DAGs: they parse anywhere, and say what they run. `make demo` runs them on real data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "dags_examples"

# In a process of its own: what it imports, and where it would connect to, is then the DAGs' doing alone.
PARSE = """
import json, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError(f"a DAG file went to the network when it was parsed: {args}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse

from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

bag = DagBag(dag_folder=sys.argv[1])
dags = {
    dag_id: {
        "file": dag.fileloc,
        "tasks": {task.task_id: type(task).__name__ for task in dag.tasks},
        "order": [task.task_id for task in dag.topological_sort()],
        "retries": [task.retries for task in dag.tasks],
        "params": dict(dag.params),
        "applications": [task.application for task in dag.tasks if hasattr(task, "application")],
        "arguments": [task.application_args for task in dag.tasks if hasattr(task, "application")],
        "comes_back": DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id,
    }
    for dag_id, dag in bag.dags.items()
}
loaded = [name for name in ("pyspark", "boto3") if name in sys.modules]
print("PARSED " + json.dumps({"errors": bag.import_errors, "dags": dags, "loaded": loaded}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Parse the folder as Airflow does, with no network, no database and no connections."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(PROJECT),
    }
    command = [sys.executable, "-c", PARSE, str(FOLDER)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("PARSED ")]
    assert lines, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(lines[0].removeprefix("PARSED "))
    return found


def test_every_example_is_imported_without_network(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert sorted(parsed["dags"]) == sorted(path.stem for path in FOLDER.glob("*.py"))


def test_parsing_loads_neither_spark_nor_the_aws_client(parsed: dict[str, Any]) -> None:
    assert parsed["loaded"] == []


def test_dag_carries_the_name_of_its_file(parsed: dict[str, Any]) -> None:
    assert {dag_id: Path(dag["file"]).stem for dag_id, dag in parsed["dags"].items()} == {
        dag_id: dag_id for dag_id in parsed["dags"]
    }


def test_every_example_survives_serialisation(parsed: dict[str, Any]) -> None:
    assert [dag["comes_back"] for dag in parsed["dags"].values()] == list(parsed["dags"])


def test_every_task_is_tried_three_times(parsed: dict[str, Any]) -> None:
    assert {retries for dag in parsed["dags"].values() for retries in dag["retries"]} == {2}


def test_scripts_of_the_examples_are_there(parsed: dict[str, Any]) -> None:
    applications = [path for dag in parsed["dags"].values() for path in dag["applications"]]

    assert applications
    assert [path for path in applications if not Path(path).is_file()] == []


def test_folders_come_from_one_variable_with_a_default_beside_the_dags(parsed: dict[str, Any]) -> None:
    (arguments,) = parsed["dags"]["flights_clean"]["arguments"]

    assert all(text.startswith("{{ var.value.get('flights_data', '") for text in arguments)
    assert all(str(FOLDER / "data") in text for text in arguments)


def test_delays_wait_for_the_clean_flights_and_fail_on_a_rewind_unless_told(parsed: dict[str, Any]) -> None:
    delays = parsed["dags"]["flights_delays"]

    assert delays["order"] == ["wait", "delays"]
    assert delays["tasks"] == {"wait": "BookmarkSensor", "delays": "BookmarkSparkSubmitOperator"}
    assert delays["params"] == {"on_upstream_rewind": "fail"}
