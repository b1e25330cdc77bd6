"""The operator with a Livy server: the driver is beside the server, and has its Python and its identity.

`make test-all` plays what a user meets; CHAOS=full the rest.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.operators.livy import BookmarkLivyOperator
from airflow_bookmarks.operators.runtime_zip import runtime_zip
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.airflow.conftest import Played, Player
from tests.clusters.conftest import CLUSTER_KEY, CONF, event_log
from tests.clusters.scene import (
    DAG_ID,
    JOB,
    SCRIPT,
    TASK_ID,
    Order,
    Scene,
    arrival,
    command_lines,
    environment_of,
    full_only,
    held,
)
from tools.livy_server import LivyServer
from tools.patience import STUCK_S

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.thorough,  # test_yarn.py shows it of another cluster, operators/test_submitters.py of Livy's API
    pytest.mark.xdist_group("clusters"),
]


class LivyScene(Scene):
    """A scene whose operator is Livy's."""

    def task(self, *, retries: int = 0, conf: Mapping[str, str] | None = None, **given: Any) -> Any:
        """Return the operator for one try; `given` are the fields of `Order`, and arguments of the operator."""
        order = {field.name: given.pop(field.name) for field in fields(Order) if field.name in given}
        told = Order(str(self.root), **order)
        return BookmarkLivyOperator(
            task_id=TASK_ID,
            args=[json.dumps(asdict(told))],
            retries=retries,
            **{**self.submit, **given, "conf": {**self.submit["conf"], **(conf or {})}},
        )


@pytest.fixture
def on_livy(livy: LivyServer, store: BookmarkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LivyScene:
    """Set an empty scene whose operator submits by Livy; script and runtime lie where the server may read them."""
    connection = {"conn_type": "livy", "host": "127.0.0.1", "port": livy.port, "schema": "http"}
    monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(connection))
    submit = {
        "file": str(shutil.copy(SCRIPT, livy.code)),
        "runtime_uri": str(runtime_zip(livy.code)),
        "conf": {**CONF, **event_log(tmp_path)},
        "driver_memory": "512m",
        "polling_interval": 1,
    }
    return LivyScene(tmp_path, store, submit)


def test_each_dag_run_reads_only_what_is_new(on_livy: LivyScene, player: Player) -> None:
    numbers = []
    for new in ("a", "b"):
        on_livy.land(new, new, new, f"more of {new}")
        played = play(on_livy, player)
        assert played.state == "success"
        summary = played.xcom("copy")
        numbers.append((summary["run_number"], summary["contexts"]["raw"]["files"]))
        on_livy.check_whole()

    assert numbers == [("1", 1), ("2", 1)]
    told = on_livy.report()
    assert any(part.endswith(".zip") for part in Path(told["package"]).parts)
    assert not told["has_airflow"]
    assert told["access_key"] == CLUSTER_KEY


def test_kill_deletes_the_batch_and_its_driver_cannot_commit(on_livy: LivyScene, livy: LivyServer) -> None:
    on_livy.land("a", "a")
    with held(on_livy, "manual__1") as attempt:
        batch = livy.batches()[-1]
        assert batch["state"] == "running"
        attempt.task.on_kill()
        with pytest.raises(AirflowException) as raised:
            attempt.ended.result(STUCK_S)
        # Livy ends the JVM of a batch, and the Python beside it lives on.
        assert attempt.driver.is_running()
        attempt.go_on()
        psutil.wait_procs([attempt.driver], timeout=STUCK_S)

    assert "FencedError" in on_livy.error()
    assert batch["id"] not in [each["id"] for each in livy.batches()]
    assert any("nothing was committed" in note for note in raised.value.__notes__)
    execution = on_livy.store.execution(JOB, f"{DAG_ID}/manual__1/copy")
    assert execution is not None
    assert execution.killed_attempt == 1
    assert (on_livy.head.lease, on_livy.head.run_number) == (None, 0)
    assert on_livy.target().total() == 0


@full_only
def test_neither_the_rest_api_nor_a_process_shows_credentials(
    on_livy: LivyScene,
    livy: LivyServer,
    player: Player,
    worker_secret: str,
    cluster_secret: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    on_livy.land("a", "a")

    def look(server: socket.socket, played: Future[Played]) -> tuple[dict[int, str], list[dict[str, str]], str]:
        with arrival(server, played) as call, call.makefile() as words:
            driver = int(words.readline())
            shown = command_lines()
            of_job = [pid for pid, line in shown.items() if "SparkSubmit" in line and str(on_livy.root) in line]
            return shown, [environment_of(pid) for pid in [driver, *of_job]], rest(livy)

    # The DAG run keeps this thread, so another one looks while its driver waits.
    ended: Future[Played] = Future()
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as server:
        watched = pool.submit(look, server, ended)
        ended.set_result(play(on_livy, player, gate=server.getsockname()[1]))
        shown, inside, rest_then = watched.result()

    on_livy.check_whole()
    assert len(inside) == 2, "the driver and its JVM"
    assert [line for line in shown.values() if worker_secret in line or cluster_secret in line] == []
    assert [name for has in inside for name, text in has.items() if worker_secret in text] == []
    assert JOB in "".join(shown.values()), "this is how settings travel"
    captured = capfd.readouterr()
    said = [rest_then, rest(livy), captured.out, captured.err, on_livy.events()]
    said += [json.dumps([on_livy.report(), ended.result().xcom("copy")])]
    assert [text for text in said if worker_secret in text or cluster_secret in text] == []


@full_only
@pytest.mark.parametrize("deferrable", [False, True])
def test_batch_that_fails_leaves_the_state_and_the_next_dag_run_reads_the_same(
    on_livy: LivyScene, livy: LivyServer, player: Player, capfd: pytest.CaptureFixture[str], deferrable: bool
) -> None:
    on_livy.land("a", "a", "a")

    assert play(on_livy, player, fails=True, deferrable=deferrable).state == "failed"

    assert livy.batches()[-1]["state"] == "dead"
    assert "the last line of the block fails" in on_livy.error()
    captured = capfd.readouterr()
    assert f"bookmark {JOB}: nothing was committed; it stands at run 0" in captured.out + captured.err
    assert (on_livy.head.lease, on_livy.head.run_number, on_livy.target().total()) == (None, 0, 0)
    assert play(on_livy, player, deferrable=deferrable).state == "success"
    on_livy.check_whole()


@full_only
@pytest.mark.parametrize("deferrable", [False, True])
def test_worker_publishes_what_a_driver_committed_whose_batch_is_dead(
    on_livy: LivyScene, livy: LivyServer, player: Player, deferrable: bool
) -> None:
    on_livy.land("a", "a", "a")

    played = play(on_livy, player, fault=Failpoint.COMMITTED, deferrable=deferrable)

    assert played.state == "success"
    assert livy.batches()[-1]["state"] == "dead"
    summary = played.xcom("copy")
    assert (summary["run_number"], summary["is_published"]) == ("1", True)
    on_livy.check_whole()


@full_only
def test_runtime_that_the_server_may_not_read_fails_the_task_and_leaves_the_state(
    on_livy: LivyScene, tmp_path: Path
) -> None:
    on_livy.land("a", "a")

    with pytest.raises(AirflowException, match="Could not submit batch") as raised:
        on_livy.run("manual__1", runtime_uri=str(tmp_path / "airflow_bookmarks.zip"))

    assert any("nothing was committed" in note for note in raised.value.__notes__)
    assert not (on_livy.root / "report.json").exists()


def play(scene: LivyScene, player: Player, **given: Any) -> Played:
    """Play a run of a DAG that holds the task alone."""
    with DAG(DAG_ID, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        scene.task(**given)
    return player.play(dag)


def rest(livy: LivyServer) -> str:
    """Return all that the REST API tells of its batches."""
    batches = livy.batches()
    return json.dumps(batches) + "".join(livy.said(batch["id"]) for batch in batches)
