"""The operator on YARN, in cluster mode: the driver shares nothing with Airflow but the shipped zip and the settings.

`make test-all` plays what a user meets; CHAOS=full the rest.
"""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

import psutil
import pytest
from airflow.sdk.exceptions import AirflowException

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.clusters.conftest import CLUSTER_KEY
from tests.clusters.scene import DAG_ID, JOB, Scene, command_lines, environment_of, full_only, held
from tools.patience import STUCK_S
from tools.yarn_cluster import YarnCluster

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("clusters"),
]


@pytest.mark.seldom
def test_driver_in_the_cluster_has_the_shipped_zip_and_an_identity_of_its_own(
    on_yarn: Scene, yarn: YarnCluster, worker_secret: str, cluster_secret: str, capfd: pytest.CaptureFixture[str]
) -> None:
    on_yarn.land("a", "a", "a", "more of a")
    on_yarn.land("b", "b")
    with held(on_yarn, "manual__1") as attempt:
        shown = command_lines()
        told = on_yarn.report()
        of_job = {pid: line for pid, line in shown.items() if told["application_id"] in line}
        kinds = {kind for kind in ("ApplicationMaster", "ExecutorBackend") for line in of_job.values() if kind in line}
        inside = [environment_of(pid) for pid in [attempt.driver.pid, *of_job]]
        assert kinds == {"ApplicationMaster", "ExecutorBackend"}
        assert any("SparkSubmit" in line and str(on_yarn.root) in line for line in shown.values())
        assert [line for line in shown.values() if worker_secret in line or cluster_secret in line] == []
        assert [name for has in inside for name, text in has.items() if worker_secret in text] == []
        assert worker_secret not in shipped(yarn, told["application_id"])
        attempt.go_on()
        summary = attempt.ended.result()

    on_yarn.check_whole()
    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    assert "airflow_bookmarks" in told["package"]
    assert any(part.endswith(".zip") for part in Path(told["package"]).parts)
    assert not told["has_airflow"]
    assert told["access_key"] == CLUSTER_KEY
    captured = capfd.readouterr()
    said = [json.dumps([told, summary]), captured.out, captured.err, on_yarn.events()]
    said += [yarn.said(told["application_id"])]
    assert [text for text in said if worker_secret in text or cluster_secret in text] == []


def shipped(yarn: YarnCluster, application_id: str) -> str:
    """Return what spark-submit has put into the archive of settings that every container gets."""
    (archive,) = yarn.staging.rglob(f"{application_id}/__spark_conf__.zip")
    with ZipFile(archive) as opened:
        return "".join(opened.read(name).decode() for name in opened.namelist())


@pytest.mark.seldom  # a minute and a half; chaos/real/test_worker.py has it without a cluster, thorough
def test_worker_publishes_what_a_driver_committed_whose_container_was_lost(on_yarn: Scene) -> None:
    on_yarn.land("a", "a", "a")
    on_yarn.run("manual__1")
    on_yarn.land("b", "b", "b")

    summary = on_yarn.run("manual__2", fault=Failpoint.COMMITTED, takes_its_container_along=True)

    assert (summary["run_number"], summary["is_published"]) == ("2", True)
    assert summary["contexts"]["raw"]["files"] == 1
    on_yarn.check_whole()


@pytest.mark.thorough
def test_killed_task_ends_the_application_and_leaves_the_job_free(on_yarn: Scene, yarn: YarnCluster) -> None:
    on_yarn.submit = {**on_yarn.submit, "yarn_track_via_rm_api": True}
    on_yarn.land("a", "a")
    with held(on_yarn, "manual__1") as attempt:
        attempt.task.on_kill()
        psutil.wait_procs([attempt.driver], timeout=STUCK_S)
        with pytest.raises(RuntimeError, match="KILLED") as raised:
            attempt.ended.result()

    assert any("nothing was committed" in note for note in raised.value.__notes__)
    execution = on_yarn.store.execution(JOB, f"{DAG_ID}/manual__1/copy")
    assert execution is not None
    assert execution.killed_attempt == 1
    assert yarn.application(on_yarn.report()["application_id"])["state"] == "KILLED"
    assert (on_yarn.head.lease, on_yarn.head.run_number) == (None, 0)
    assert on_yarn.target().total() == 0


@full_only
def test_exception_in_the_block_commits_nothing_and_the_retry_reads_the_same(on_yarn: Scene) -> None:
    on_yarn.land("a", "a", "a")

    with pytest.raises(AirflowException) as raised:
        on_yarn.run("manual__1", retries=1, fails=True)

    assert any("nothing was committed" in note for note in raised.value.__notes__)
    assert "the last line of the block fails" in on_yarn.error()
    assert on_yarn.target().total() == 0
    on_yarn.run("manual__1", 2, retries=1)
    on_yarn.check_whole()


@full_only
def test_driver_that_outlives_spark_submit_commits_nothing(on_yarn: Scene, yarn: YarnCluster) -> None:
    on_yarn.land("a", "a")
    with held(on_yarn, "manual__1") as attempt:
        (submit,) = (
            pid for pid, line in command_lines().items() if "SparkSubmit" in line and str(on_yarn.root) in line
        )
        psutil.Process(submit).kill()
        with pytest.raises(AirflowException):
            attempt.ended.result()
        assert attempt.driver.is_running()
        attempt.go_on()
        psutil.wait_procs([attempt.driver], timeout=STUCK_S)

    assert "FencedError" in on_yarn.error()
    assert on_yarn.target().total() == 0
    on_yarn.run("manual__1", 2, retries=1)
    on_yarn.check_whole()


@pytest.mark.seldom
@full_only
def test_driver_that_yarn_starts_again_leaves_its_first_commit_to_the_worker(on_yarn: Scene) -> None:
    on_yarn.land("a", "a", "a")

    summary = on_yarn.run(
        "manual__1",
        conf={"spark.yarn.maxAppAttempts": "2"},
        fault=Failpoint.COMMITTED,
        takes_its_container_along=True,
    )

    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    assert "JobBusyError" in on_yarn.error()
    on_yarn.check_whole()
