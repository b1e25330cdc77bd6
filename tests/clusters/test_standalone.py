"""The operator on a Spark standalone cluster, in client mode: the driver is beside the worker, executors elsewhere.

`make test-all` plays what a user meets; CHAOS=full the rest.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import psutil
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.airflow.conftest import Player
from tests.clusters.scene import DAG_ID, JOB, Scene, command_lines, environment_of, full_only, held
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.dynamodb_local,
    pytest.mark.seldom,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("clusters"),
]


def test_each_dag_run_reads_only_what_is_new(
    on_standalone: Scene, player: Player, worker_secret: str, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = []
    for new in ("a", "b"):
        on_standalone.land(new, new, new, f"more of {new}")
        with DAG(DAG_ID, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            on_standalone.task()
        played = player.play(dag)
        assert played.state == "success"
        summary = played.xcom("copy")
        numbers.append((summary["run_number"], summary["contexts"]["raw"]["files"]))
        assert worker_secret not in json.dumps(summary)
        on_standalone.check_whole()

    assert numbers == [("1", 1), ("2", 1)]
    said = capfd.readouterr()
    assert worker_secret not in said.out + said.err


@pytest.mark.thorough  # test_yarn.py and test_livy.py show it of other clusters
def test_no_process_and_no_file_of_spark_shows_the_credentials_of_the_worker(
    on_standalone: Scene, worker_secret: str, capfd: pytest.CaptureFixture[str]
) -> None:
    on_standalone.land("a", "a")
    with held(on_standalone, "manual__1") as attempt:
        shown = command_lines()
        told = on_standalone.report()
        executors = [
            pid
            for pid, line in shown.items()
            if "CoarseGrainedExecutorBackend" in line and told["application_id"] in line
        ]
        assert executors
        assert any("SparkSubmit" in line and str(on_standalone.root) in line for line in shown.values())
        assert [line for line in shown.values() if worker_secret in line] == []
        assert [pid for pid in executors if worker_secret in "".join(environment_of(pid).values())] == []
        # This is where they are: the driver runs beside the worker, and has its identity.
        assert environment_of(attempt.driver.pid)["AWS_SECRET_ACCESS_KEY"] == worker_secret
        attempt.go_on()
        summary = attempt.ended.result()

    assert worker_secret not in json.dumps([told, summary])
    said = capfd.readouterr()
    assert worker_secret not in said.out + said.err
    assert worker_secret not in on_standalone.events()
    on_standalone.check_whole()


@pytest.mark.thorough  # test_yarn.py and test_livy.py show it of other clusters
def test_worker_publishes_what_a_driver_committed_that_was_killed_then(
    on_standalone: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_standalone.land("a", "a", "a")

    summary = on_standalone.run("manual__1", retries=1, fault=Failpoint.COMMITTED)

    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    on_standalone.check_whole()
    monkeypatch.setenv("PATH", "")  # no spark-submit: a retry doesn't need it
    assert on_standalone.run("manual__1", 2, retries=1)["run_number"] == "1"
    on_standalone.check_whole()


@full_only
def test_retry_reads_what_a_driver_had_staged_that_was_killed_then(on_standalone: Scene) -> None:
    on_standalone.land("a", "a", "a")

    with pytest.raises(AirflowException) as raised:
        on_standalone.run("manual__1", retries=1, fault=Failpoint.STAGED)

    assert any("nothing was committed" in note for note in raised.value.__notes__)
    assert on_standalone.target().total() == 0
    on_standalone.run("manual__1", 2, retries=1)
    on_standalone.check_whole()


@pytest.mark.thorough  # test_yarn.py and test_livy.py show it of other clusters
def test_killed_task_stops_spark_submit_and_its_driver_cannot_commit(on_standalone: Scene) -> None:
    on_standalone.land("a", "a")
    with held(on_standalone, "manual__1") as attempt:
        submit = attempt.driver.parent()
        assert submit is not None
        attempt.task.on_kill()
        # Not by psutil: it is the provider's child, and whoever waits first for a child takes its exit code along.
        with pytest.raises(AirflowException):
            attempt.ended.result(STUCK_S)
        assert not submit.is_running()
        assert attempt.driver.is_running()
        attempt.go_on()
        psutil.wait_procs([attempt.driver], timeout=STUCK_S)

    execution = on_standalone.store.execution(JOB, f"{DAG_ID}/manual__1/copy")
    assert execution is not None
    assert execution.killed_attempt == 1
    assert "FencedError" in on_standalone.error()
    assert (on_standalone.head.lease, on_standalone.head.run_number) == (None, 0)
    assert on_standalone.target().total() == 0
