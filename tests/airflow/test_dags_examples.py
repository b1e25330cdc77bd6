"""The example DAGs: they parse anywhere, say what they run, and do what they are there to show.

`make demo` runs `flights_clean` and `flights_delays` on the flights of a year.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG, Asset, AssetAll, exceptions
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from fastapi.testclient import TestClient

from airflow_bookmarks.core.rules.shard import shard_names
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.operators.change import BookmarkResetOperator
from tests.airflow.compat import HAS_APPROVAL, DagBag, bag_of, sync_bag_to_db
from tests.quick_spark import with_java_options
from tools.patience import STUCK_S

from .conftest import Played, Player, World

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "dags_examples"

# In a process of its own: what it imports, and where it would connect to, is then the DAGs' doing alone.
PARSE = """
import json, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError(f"a DAG file went to the network when it was parsed: {args}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse

from tests.airflow.compat import DagBag, DagSerialization

bag = DagBag(dag_folder=sys.argv[1])
dags = {
    dag_id: {
        "file": dag.fileloc,
        "tasks": {task.task_id: type(task).__name__ for task in dag.tasks},
        "order": [task.task_id for task in dag.topological_sort()],
        "retries": [task.retries for task in dag.tasks],
        "params": {name: value for name, value in dag.params.dump().items() if isinstance(value, str)},
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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("PARSED ")]
    assert lines, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(lines[0].removeprefix("PARSED "))
    return found


def test_every_example_is_imported_without_network(parsed: dict[str, Any]) -> None:
    # Where a DAG can't wait for a person, the import of Airflow's own operator says so.
    refused = set() if HAS_APPROVAL else {"rewind_with_approval"}

    assert {Path(path).stem for path in parsed["errors"]} == refused, parsed["errors"]
    said = ("needs Airflow 3.1+", "Param has no default value")
    assert all(any(text in error for text in said) for error in parsed["errors"].values())
    assert {*parsed["dags"]} == {path.stem for path in FOLDER.glob("*.py")} - refused


@pytest.mark.seldom
def test_parsing_loads_neither_spark_nor_the_aws_client(parsed: dict[str, Any]) -> None:
    assert parsed["loaded"] == []


@pytest.mark.seldom
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
    assert delays["params"] == {"on_rewind": "fail"}


# ---- what the documentation shows of them

SHOWN = re.compile(r"From \[dags_examples/(\w+)\.py\]\(\S+\), between its marks:\n\n```python\n(.*?)\n```", re.DOTALL)


def marked(name: str, folder: Path = FOLDER) -> str:
    """Return the lines of an example between its marks."""
    text = (folder / f"{name}.py").read_text()
    lines = re.search(rf"^ *# \[start {name}\]\n(.*?)^ *# \[end {name}\]$", text, re.DOTALL | re.MULTILINE)
    assert lines is not None, f"{name}.py has no marks"
    return textwrap.dedent(lines[1]).strip("\n")


def test_documentation_shows_the_marked_lines_of_every_example() -> None:
    pages = [path.read_text() for path in (PROJECT / "docs").rglob("*.md")]
    shown = dict(found for page in pages for found in SHOWN.findall(page))

    assert sorted(shown) == sorted(path.stem for path in FOLDER.glob("*.py"))
    assert shown == {name: marked(name) for name in shown}


def test_page_of_shards_shows_the_marked_lines_of_its_example() -> None:
    page = (PROJECT / "docs" / "guides" / "shards.md").read_text()

    assert marked("flights_by_shard") in page
    assert marked("late_flights", FOLDER / "jobs") in page


def test_page_of_batches_shows_the_marked_lines_of_its_script() -> None:
    assert marked("name_flights", FOLDER / "jobs") in (PROJECT / "docs" / "guides" / "batches.md").read_text()


def test_page_of_examples_shows_the_marked_lines_of_a_script_and_links_every_dag() -> None:
    page = (PROJECT / "docs" / "getting-started" / "examples.md").read_text()

    assert all(marked(name, FOLDER / "jobs") in page for name in ("convert_weather", "land_orders", "report_orders"))
    assert sorted(re.findall(r"^\| \[(\w+)\]\(", page, re.MULTILINE)) == sorted(
        path.stem for path in FOLDER.glob("*.py")
    )


# ---- what they do


class Examples:
    """The example DAGs in Airflow's database, with a world of their own to run in."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self.world, self.raw = world, world.folder / "data" / "raw" / "flights"
        self.raw.mkdir(parents=True)
        patch.setenv("AIRFLOW_VAR_FLIGHTS_DATA", str(world.folder / "data"))
        # Two flights need no two hundred partitions, nor a page.
        for name, value in with_java_options("-Dspark.sql.shuffle.partitions=2 -Dspark.ui.enabled=false").items():
            patch.setenv(name, value)
        DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
        sync_bag_to_db(self._bag(), "dags-folder", None)

    def _bag(self) -> DagBag:
        return bag_of(str(FOLDER), "dags-folder")

    def dag(self, dag_id: str) -> DAG:
        """Read a DAG anew, as Airflow does for each run: templates are rendered in place."""
        dag = self._bag().dags[dag_id]
        assert isinstance(dag, DAG)
        return dag

    def asset(self, dag_id: str) -> Asset:
        """Return the asset that starts a DAG."""
        condition = self.dag(dag_id).timetable.asset_condition
        assert isinstance(condition, AssetAll)
        (asset,) = condition.objects
        assert isinstance(asset, Asset)
        return asset

    def deliver(self, day: int, delay: int = 2) -> None:
        """Put the file of a day there: one flight."""
        lines = [
            HEADER,
            f"2013,1,{day},517,515,{delay},830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-{day:02} 05:00:00",
        ]
        (self.raw / f"flights_2013-01-{day:02}.csv").write_text("".join(f"{line}\n" for line in lines))

    def files_read(self, job: str) -> list[int]:
        """Return how many files each committed run of a job has read."""
        return [row["files"] for row in BookmarkHook().history(job)]


HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,"
    "air_time,distance,hour,minute,time_hour"
)


@pytest.fixture
def examples(world: World, player: Player, monkeypatch: pytest.MonkeyPatch) -> Examples:
    return Examples(world, monkeypatch)


class Person(logging.Handler):
    """Somebody who looks at what waits for a person, and answers it, by the API that the page uses.

    `dag.test()` says in its log that it waits: by then the task is parked, and an answer finds it.
    """

    def __init__(self, answer: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._answer, self.read = answer, ""
        passwords = folder / "passwords.json"
        passwords.write_text(json.dumps({"ada": "analytical"}))
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ada:admin")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        self._client = TestClient(create_app(apps="core"))
        token = self._client.post("/auth/token", json={"username": "ada", "password": "analytical"}).json()
        self._client.headers["Authorization"] = f"Bearer {token['access_token']}"

    def emit(self, record: logging.LogRecord) -> None:
        if "Waiting for Human-in-the-loop input" not in record.getMessage():
            return
        waiting = self._client.get("/api/v2/dags/~/dagRuns/~/hitlDetails", params={"response_received": False})
        (detail,) = waiting.json()["hitl_details"]
        self.read = f"{detail['subject']}\n{detail['body']}"
        task = detail["task_instance"]
        path = f"/api/v2/dags/{task['dag_id']}/dagRuns/{task['dag_run_id']}/taskInstances/{task['task_id']}/-1"
        answered = self._client.patch(
            f"{path}/hitlDetails", json={"chosen_options": [self._answer], "params_input": {}}
        )
        assert answered.status_code == 200, answered.text


@pytest.fixture
def person(examples: Examples, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Person]:
    someone = Person(request.param, examples.world.folder, monkeypatch)
    log = logging.getLogger("airflow.sdk.definitions.dag")
    log.addHandler(someone)
    yield someone
    log.removeHandler(someone)


def three_runs(world: World, job: str = "flights_clean.clean") -> None:
    for number in (1, 2, 3):
        world.shop.put(f"{number}.txt", f"line {number}")
        world.shop.run(job)


def states(played: Played) -> dict[str, str]:
    return {task.task_id: str(task.state) for task in played.run.get_task_instances()}


def test_watch_tells_a_trouble_once_and_its_end_once(examples: Examples, caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[str]:
        caplog.clear()
        assert Played(examples.dag("health_watch").test()).state == "success"
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelname == "WARNING" and " is " in record.getMessage()
        ]

    examples.world.shop.begin("copy").abort("no such column")
    (said,) = told()
    assert said.startswith("job 'copy' is FAILED since 20")
    assert told() == []

    examples.world.shop.run("copy")

    assert told() == ["job 'copy' is OK: it commits as usual"]


parks_for_a_person = pytest.mark.skipif(
    not hasattr(exceptions, "TaskAwaitingInput"),
    reason="dag.test() of this Airflow waits in a trigger, and says nothing",
)


@pytest.mark.seldom
@parks_for_a_person
@pytest.mark.parametrize("person", ["Approve"], indirect=True)
def test_rewind_is_made_once_a_person_has_approved_what_was_previewed(examples: Examples, person: Person) -> None:
    three_runs(examples.world)

    played = Played(
        examples.dag("rewind_with_approval").test(run_conf={"to_run": 1, "reason": "carrier code was wrong"})
    )

    assert set(states(played).values()) == {"success"}
    assert "Rewind flights_clean.clean to run 1?" in person.read
    assert "runs undone: 2" in person.read
    (event,) = BookmarkHook().get("flights_clean.clean")["changes"]
    assert (event["kind"], event["to_run"], event["why"]) == ("rewind", 1, "carrier code was wrong")
    assert len(DagRun.find(dag_id="flights_clean")) == 1


@pytest.mark.seldom
@parks_for_a_person
@pytest.mark.parametrize("person", ["Reject"], indirect=True)
def test_rewind_that_a_person_rejects_is_not_made(examples: Examples, person: Person) -> None:
    three_runs(examples.world)
    before = len(DagRun.find(dag_id="flights_clean"))

    played = Played(examples.dag("rewind_with_approval").test(run_conf={"to_run": 1, "reason": "perhaps"}))

    assert states(played) == {"preview": "success", "approve": "success", "rewind": "skipped", "run_again": "skipped"}
    assert BookmarkHook().get("flights_clean.clean")["changes"] == []
    assert len(DagRun.find(dag_id="flights_clean")) == before


@pytest.mark.spark
@pytest.mark.slow
def test_chain_reads_in_each_dag_what_the_one_before_has_published(examples: Examples) -> None:
    day = datetime(2013, 1, 2, tzinfo=UTC)
    for number in (1, 2):
        examples.deliver(number)

    clean = Played(examples.dag("flights_clean").test(run_after=day, logical_date=day))
    assert clean.state == "success"  # else the next DAG waits for ever
    delays = Played(examples.dag("flights_delays").test(run_after=day, logical_date=day))

    assert (clean.state, delays.state, delays.run.run_id) == ("success", "success", clean.run.run_id)
    assert clean.xcom("clean")["outputs"]["clean"]["rows"] == 2
    assert delays.xcom("wait")["run_number"] == clean.xcom("clean")["run_number"]
    assert delays.xcom("delays")["contexts"]["flights"]["files"] == clean.xcom("clean")["outputs"]["clean"]["files"]
    assert delays.xcom("delays")["outputs"]["journal"]["rows"] == 2


@pytest.mark.thorough  # operators/test_params.py does it without Spark
@pytest.mark.spark
@pytest.mark.slow
def test_choice_at_trigger_holds_for_one_run(examples: Examples) -> None:
    examples.deliver(1)
    assert Played(examples.dag("choose_at_trigger").test()).state == "success"
    examples.deliver(2)

    paused = Played(examples.dag("choose_at_trigger").test(run_conf={"bookmark_option": "pause"}))

    assert paused.xcom("clean")["contexts"]["flights"]["files"] == 1
    assert examples.files_read("choose_at_trigger.clean") == [1]


@pytest.mark.thorough  # operators/test_change_operators.py resets on a condition without Spark
@pytest.mark.spark
@pytest.mark.slow
def test_everything_is_read_again_when_the_script_writes_other_columns(examples: Examples) -> None:
    dag_id, job = "reset_when_schema_changed", "reset_when_schema_changed.clean"
    for day in (1, 2):
        examples.deliver(day)
    played = Played(examples.dag(dag_id).test())
    assert (played.state, played.xcom("reset")["changed"]) == ("success", False)
    asked = examples.dag(dag_id).get_task("reset")
    assert isinstance(asked, BookmarkResetOperator)
    assert asked.condition is not None
    assert asked.condition({}, {}) is False  # what the script writes is what the DAG says

    dag = examples.dag(dag_id)
    reset = dag.get_task("reset")
    assert isinstance(reset, BookmarkResetOperator)
    assert reset.condition is not None
    vars(inspect.getmodule(reset.condition))["COLUMNS"].add(
        "delay_class"
    )  # somebody adds a column here and to the script
    played = Played(dag.test())

    assert (played.state, played.xcom("reset")["changed"]) == ("success", True)
    assert examples.files_read(job) == [2, 2]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough  # minutes: 64 runs; operators/test_shards.py and spark/test_shards.py do it in short
def test_mapped_tasks_share_out_what_was_delivered(examples: Examples) -> None:
    for day in (1, 2, 3):
        examples.deliver(day, delay=20)

    played = Played(examples.dag("flights_by_shard").test())

    assert played.state == "success"
    made = [task.xcom_pull(task_ids="late", map_indexes=task.map_index) for task in played.run.get_task_instances()]
    assert len(made) == 4
    assert sum(summary["contexts"]["flights"]["files"] for summary in made) == 3
    assert sum(summary["outputs"]["late"]["rows"] for summary in made) == 3
    assert sum(sum(examples.files_read(name)) for name in shard_names("flights_by_shard.late")) == 3


@pytest.mark.thorough  # spark/test_batches.py and spark/test_reference.py do it in short
@pytest.mark.spark
@pytest.mark.slow
def test_backlog_is_drained_in_batches_with_the_names_of_the_carriers(examples: Examples) -> None:
    for day in range(1, 6):
        examples.deliver(day)

    played = Played(examples.dag("flights_backlog").test(run_conf={"files_per_batch": 2}))

    assert played.state == "success"
    summary = played.xcom("name")
    assert (summary["first_run_number"], summary["run_number"]) == ("1", "3")
    assert summary["contexts"]["flights"]["files"] == 5
    assert summary["outputs"]["named"]["rows"] == 5
    assert examples.files_read("flights_backlog.name") == [2, 2, 1]


WEATHER_HEADER = (
    "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour"
)


def report(folder: Path, hour: int, *, age_s: float) -> None:
    """Put the weather report of an hour there, as one that was written so long ago."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"EWR_2013-01-01_{hour:02}.csv"
    row = f"EWR,2013,1,1,{hour},39.02,26.06,59.37,270,10.35,NA,0,1012,10,2013-01-01T{hour:02}:00:00Z"
    path.write_text(f"{WEATHER_HEADER}\n{row}\n")
    written = time.time() - age_s
    os.utime(path, (written, written))


@pytest.mark.thorough  # operators/test_skip_when_empty.py does it in short
@pytest.mark.spark
@pytest.mark.slow
def test_hour_reads_what_is_whole_and_an_hour_without_reports_starts_no_spark(
    examples: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag_id, raw = "hourly_csv_to_parquet", examples.world.folder / "data" / "raw" / "weather"
    for hour, age_s in ((1, 7200), (2, 3600), (3, 0)):
        report(raw, hour, age_s=age_s)
    first = Played(examples.dag(dag_id).test())
    assert first.state == "success"
    assert first.xcom("convert")["outputs"]["weather"]["rows"] == 2
    assert first.xcom("convert")["contexts"]["reports"]["skipped"] == {"settling": 1}

    monkeypatch.setenv("PATH", "")  # no spark-submit, no java
    empty = Played(examples.dag(dag_id).test())

    assert empty.state == "success"
    assert examples.files_read(f"{dag_id}.convert") == [2, 0]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.seldom  # glue/test_scripts.py runs such scripts without Airflow
def test_script_for_glue_runs_unmodified_and_reads_each_report_once(examples: Examples) -> None:
    dag_id, data = "weather_from_glue", examples.world.folder / "data"
    for hour in (1, 2):
        report(data / "raw" / "weather", hour, age_s=7200)
    first = Played(examples.dag(dag_id).test())
    assert first.state == "success"
    report(data / "raw" / "weather", 3, age_s=3600)
    second = Played(examples.dag(dag_id).test())
    assert second.state == "success"
    third = Played(examples.dag(dag_id).test())  # nothing new: without Spark

    assert third.state == "success"
    assert [each.xcom("weather")["outputs"]["target"]["rows"] for each in (first, second)] == [2, 1]
    assert examples.files_read(f"{dag_id}.weather") == [2, 1, 0]
    assert list((data / "weather_from_glue").glob("month=1/day=1/*.parquet"))


@pytest.mark.seldom
@pytest.mark.spark
@pytest.mark.slow
def test_delivery_that_is_complete_wakes_the_dag_which_reads_it(examples: Examples) -> None:
    dag_id = "flights_on_arrival"
    (watcher,) = examples.asset(dag_id).watchers
    ready = examples.raw.parent / "READY"
    examples.deliver(1)
    ready.touch()

    assert isinstance(watcher.trigger, BaseEventTrigger)
    events = watcher.trigger.run()

    async def woken() -> TriggerEvent:
        return await anext(events)

    assert asyncio.run(asyncio.wait_for(woken(), STUCK_S)).payload is True
    assert not ready.exists()
    assert Played(examples.dag(dag_id).test()).state == "success"
    assert Played(examples.dag(dag_id).test()).state == "success"  # woken twice
    assert examples.files_read(f"{dag_id}.clean") == [1, 0]
