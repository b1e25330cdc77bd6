"""Promises AIR-2, AIR-3 and RUN-18: driver and worker may die independently of each other, and each row is there once.

Real processes throughout: a worker that supervises the try of a task as Airflow's executors do, the task, spark-submit
or what stands in for it, and the driver, which is held at a point of the protocol while something happens to the task.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psutil
import pytest

from airflow_bookmarks.core.errors import FencedError
from airflow_bookmarks.core.run import Run, RunState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.bookmark_store import open_store
from tests.airflow.conftest import World, connect
from tests.airflow.operators.test_operator import HAS_DURABLE, JOB, begin, context, operator, play
from tests.airflow.pairings import (
    PAGE,
    PAIRINGS,
    DriverFate,
    Pairing,
    Result,
    TaskFate,
    load_results,
    read_table,
    texts_of,
)
from tests.airflow.pairings_airflow import Flow, execution_api
from tests.airflow.pairings_driver import ON_REWIND_VARIABLE
from tests.airflow.pairings_scene import DRIVER, Scene
from tests.airflow.pairings_worker import WorkerHost, worker_host
from tests.chaos.real.order import Gate, Held, open_gate
from tests.chaos.real.scene import IS_FULL
from tests.lifecycle.shop import Shop

pytestmark = [pytest.mark.airflow, pytest.mark.chaos, pytest.mark.xdist_group("pairings")]

TASK = "copy"
HOLDS = {
    DriverFate.DIED: Failpoint.STAGED,
    DriverFate.COMMITTED: Failpoint.COMMITTED,
    DriverFate.RUNNING: Failpoint.BEFORE_COMMIT,
}

# What a user writes in the DAG file.
SUBMIT = f"    BookmarkSparkSubmitOperator(task_id={TASK!r}, application={str(DRIVER)!r}, {{arguments}})"
LIVY = (
    f"    BookmarkLivyOperator(task_id={TASK!r}, file='job.py', deferrable=True, polling_interval=1,"
    " ship_runtime=False, {arguments})"
)


# ---- the stage


@pytest.fixture(scope="module")
def api_url(airflow_database: None) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", secrets.token_hex(64))  # Airflow 3.2 does not start without one
        with execution_api() as url:
            yield url


@pytest.fixture(scope="module")
def host(airflow_database: None) -> Iterator[WorkerHost]:
    # A task that is marked failed or cleared learns of it by its next heartbeat.
    with worker_host({**os.environ, "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1"}) as opened:
        yield opened


@pytest.fixture
def gate() -> Iterator[Gate]:
    with open_gate() as opened:
        yield opened


Stage = Callable[..., Scene]


@pytest.fixture
def stage(world: World, host: WorkerHost, api_url: str, gate: Gate) -> Iterator[Stage]:
    """Return what sets a scene: a DAG of a name, with the tasks that are given."""
    files = []

    def set_scene(name: str, tasks: str, at: World = world) -> Scene:
        flow = Flow(name, tasks)
        files.append(flow.file)
        return Scene(at, flow, host, api_url, gate)

    yield set_scene
    for file in files:  # other tests read this folder too
        file.unlink()


@pytest.fixture
def remote(world: World, monkeypatch: pytest.MonkeyPatch, moto_url: str) -> World:
    """Put the state where a driver on another machine reaches it."""
    uri = f"dynamodb://bookmarks-{uuid.uuid4().hex}?region=eu-west-1&endpoint={moto_url}&namespace=test"
    connect(monkeypatch, store=uri)
    store = open_store(uri)
    store.init()
    return World(world.folder, store, Shop(world.folder, store), uri)


@pytest.fixture
def livy_stage(stage: Stage, remote: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Return what sets a scene with Livy."""
    scenes = []

    def set_scene(name: str, tasks: str) -> Scene:
        scene = stage(name, tasks, remote)
        opened = scene.livy.serving()
        opened.__enter__()
        scenes.append(opened)
        value = {"conn_type": "livy", "host": "127.0.0.1", "port": scene.livy.port, "schema": "http"}
        monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(value))
        return scene

    yield set_scene
    for opened in scenes:
        opened.__exit__(None, None, None)


# ---- what happens to the task, while its driver stands at a point


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a pairing: the state of the task and the runs before somebody went on, who did, what the driver
    that was still running said in the end.
    """

    state: str
    left: list[Run]
    submits: int
    heir: str
    said: str = ""


Act = Callable[[Scene, DriverFate, bool], Played]


def retried(scene: Scene, driver: DriverFate, spark: bool) -> Played:
    """The worker is lost; Airflow notices that it gives no sign of life, and tries again."""
    worker, held = scene.hold(HOLDS[driver], spark=spark)
    worker.lose(held.pid)
    scene.flow.lose(TASK)
    return go_on(scene, held, driver)


def cleared(scene: Scene, driver: DriverFate, spark: bool) -> Played:
    """Somebody clears the task: while it runs, or once it has failed or succeeded."""
    worker, held = scene.hold(HOLDS[driver], spark=spark)
    if driver is not DriverFate.RUNNING:
        scene.kill(held)
        worker.wait()
        played = seen(scene, "try 2")
        scene.flow.clear(TASK)
        assert scene.play() == "success"
        return played
    scene.flow.clear(TASK)
    worker.wait()
    assert scene.flow.state(TASK) == "restarting"
    scene.flow.lose(TASK)  # as the scheduler does when an executor says that a task has ended which is to start again
    return go_on(scene, held, driver)


def killed(scene: Scene, driver: DriverFate, spark: bool) -> Played:
    """Somebody marks the task failed; the next DAG run comes when it comes."""
    worker, held = scene.hold(HOLDS[driver], spark=spark)
    scene.flow.mark_failed(TASK)
    worker.wait()
    said = ""
    if driver is DriverFate.RUNNING:
        said = scene.let_go(held)
    else:
        scene.kill(held)
    played = replace(seen(scene, "the next DAG run"), said=said)
    scene.flow.trigger()
    assert scene.play() == "success"
    return played


def timed_out(scene: Scene, driver: DriverFate, spark: bool) -> Played:
    """The time that `execution_timeout` gives is over."""
    worker, held = scene.hold(HOLDS[driver], spark=spark)
    worker.task.send_signal(signal.SIGALRM)  # by which Airflow has itself woken when the time is over
    worker.wait()
    return go_on(scene, held, driver)


def deferred(scene: Scene, driver: DriverFate, spark: bool) -> Played:
    """The task is deferred while the driver works; then its trigger sees it end, or waits no longer."""
    scene.livy.patience = 1
    worker, held = scene.hold(HOLDS[driver], spark=spark)
    worker.wait()
    assert scene.flow.state(TASK) == "deferred"
    if driver is DriverFate.RUNNING:
        scene.flow.expire_trigger(TASK)
    else:
        scene.kill(held)
        scene.flow.fire(TASK)
    if scene.play() == "success":
        return seen(scene, "the worker")
    return go_on(scene, held, driver)


ACTS: dict[TaskFate, Act] = {
    TaskFate.RETRIED: retried,
    TaskFate.CLEARED: cleared,
    TaskFate.KILLED: killed,
    TaskFate.TIMED_OUT: timed_out,
    TaskFate.DEFERRED: deferred,
}


def go_on(scene: Scene, held: Held, driver: DriverFate) -> Played:
    """Let the task be retried, after its driver died; or before that, where it is still running, is let go."""
    if driver is not DriverFate.RUNNING and psutil.pid_exists(held.pid):
        scene.kill(held)
    played = seen(scene, "try 2")
    assert played.state == "up_for_retry"
    assert scene.play() == "success"
    assert scene.flow.try_number(TASK) == 2
    return replace(played, said=scene.let_go(held)) if driver is DriverFate.RUNNING else played


def seen(scene: Scene, heir: str) -> Played:
    """Return how it stands before `heir` goes on."""
    return Played(scene.flow.state(TASK), scene.runs, len(scene.submits), heir)


# ---- what became of it, in words


def words_of(played: Played, runs: list[Run], submits: int) -> str:
    """Say what became of the input that the first driver had planned. `runs` and `submits` are those in the end."""
    last = [f"{_TASK_WORDS[played.state]}; {_finished(played, runs)}"]
    if submits == played.submits and played.heir == "try 2":
        last.append("without Spark")
    if "FencedError" in played.said:
        last.append("the driver, when it goes on, is fenced and commits nothing")
    return ", ".join(last)


_TASK_WORDS = {"up_for_retry": "up for retry", "failed": "failed", "success": "succeeded"}


def _finished(played: Played, runs: list[Run]) -> str:
    (left,) = played.left
    now = next(run for run in runs if run.key == left.key)
    if now.revision > left.revision:
        return f"published by the worker, then replayed by {played.heir}"
    if left.state is RunState.PUBLISHED:
        return "published by the worker"
    if now.state is RunState.PUBLISHED:
        return f"published by {played.heir}"
    assert now.state is RunState.ABANDONED
    return f"read again by {played.heir}"


# ---- the pairings

TASKS = {
    TaskFate.RETRIED: SUBMIT.format(arguments="retries=1"),
    TaskFate.CLEARED: SUBMIT.format(arguments="retries=0"),
    TaskFate.KILLED: SUBMIT.format(arguments="retries=1"),
    TaskFate.TIMED_OUT: SUBMIT.format(arguments="retries=1, execution_timeout=timedelta(hours=1)"),
    TaskFate.DEFERRED: LIVY.format(arguments="retries=1"),
}
# Each fate of a driver with one of a task; the matrix plays the other fates of a task, too,
# and `make test-all` each with each.
SHORT = {
    (DriverFate.DIED, TaskFate.RETRIED),
    (DriverFate.COMMITTED, TaskFate.KILLED),
    (DriverFate.RUNNING, TaskFate.CLEARED),
}
OF_TASKS = {(DriverFate.COMMITTED, TaskFate.DEFERRED), (DriverFate.RUNNING, TaskFate.TIMED_OUT)}


def marks_of(pairing: Pairing) -> list[pytest.MarkDecorator]:
    fates = (pairing.driver, pairing.task)
    if fates in SHORT:
        return []
    return [pytest.mark.seldom if fates in OF_TASKS else pytest.mark.thorough]


CASES = [pytest.param(pairing, "python", id=f"{pairing.name}", marks=marks_of(pairing)) for pairing in PAIRINGS]
# With spark-submit itself, and a driver that lives on when its JVM is killed.
SPARK_MARKS = [pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]
SPARK_TASKS = [*TaskFate] if IS_FULL else [TaskFate.KILLED]
CASES += [
    pytest.param(pairing, "spark", id=f"{pairing.name}-spark", marks=SPARK_MARKS)
    for pairing in PAIRINGS
    if pairing.driver is DriverFate.RUNNING and pairing.task in SPARK_TASKS and pairing.task is not TaskFate.DEFERRED
]


@pytest.mark.parametrize(("pairing", "engine"), CASES)
def test_each_row_is_there_once_when(
    pairing: Pairing, engine: str, request: pytest.FixtureRequest, world: World
) -> None:
    set_scene: Stage = request.getfixturevalue("livy_stage" if pairing.task is TaskFate.DEFERRED else "stage")
    scene = set_scene(pairing.name, TASKS[pairing.task])
    scene.world.shop.put("a.txt", "a", "a")
    scene.world.shop.put("b.txt", "b")

    played = ACTS[pairing.task](scene, pairing.driver, engine == "spark")

    scene.check_whole()
    assert ("try 1 of" in scene.said("is fenced")) == (pairing.task is not TaskFate.RETRIED)  # whose worker is gone
    assert ("FencedError" in played.said) == (pairing.driver is DriverFate.RUNNING)
    Result(pairing, engine, words_of(played, scene.runs, len(scene.submits))).save()
    scene.check_goes_on()


def test_try_is_fenced_whatever_the_provider_fails_with(world: World) -> None:
    world.shop.put("a.txt", "a")
    drivers: list[ActiveRun] = []

    def submit(_: object) -> None:
        drivers.append(begin(world))
        world.shop.copy(drivers[0])
        raise ConnectionError("the service that runs Spark does not answer")  # as requests, botocore and others do

    with pytest.raises(ConnectionError):
        play(operator(), context(), submit)

    with pytest.raises(FencedError):
        drivers[0].commit()
    assert world.shop.target_lines(JOB) == {}


def test_page_says_what_the_pairings_that_ran_say() -> None:
    table = read_table(PAGE.read_text())
    assert set(table) == set(PAIRINGS)
    texts = texts_of(load_results())
    assert {pairing: table[pairing] for pairing in texts} == texts


# ---- going back, and clearing

CHAIN = f"""
{SUBMIT.format(arguments="retries=0")}
    report = BookmarkSparkSubmitOperator(
        task_id="report", application={str(DRIVER)!r}, bookmark_upstream=["{{{{ dag.dag_id }}}}.copy"]
    )
    copy >> report
""".replace("    BookmarkSparkSubmitOperator(task_id='copy'", "    copy = BookmarkSparkSubmitOperator(task_id='copy'")


def test_driver_that_finished_after_its_worker_was_lost_is_enough(stage: Stage) -> None:
    scene = stage("finishes", SUBMIT.format(arguments="retries=1"))
    scene.world.shop.put("a.txt", "a")
    worker, held = scene.hold(Failpoint.BEFORE_COMMIT)
    worker.lose(held.pid)
    scene.flow.lose(TASK)
    assert scene.let_go(held) == ""

    assert scene.play() == "success"

    assert (len(scene.submits), len(scene.runs)) == (1, 1)
    scene.check_whole()


@pytest.mark.seldom
def test_task_that_failed_with_a_publish_due_and_is_cleared_publishes_it_and_reads_what_is_new(stage: Stage) -> None:
    scene = stage("due", SUBMIT.format(arguments="retries=0"))
    scene.world.shop.put("a.txt", "a")
    worker, held = scene.hold(Failpoint.COMMITTED)
    worker.lose(held.pid)
    scene.kill(held)
    scene.flow.lose(TASK)
    assert scene.flow.state(TASK) == "failed"
    scene.world.shop.put("b.txt", "b")
    scene.flow.clear(TASK)

    assert scene.play() == "success"

    assert [(run.state, run.revision) for run in scene.runs] == [(RunState.PUBLISHED, 0)] * 2
    scene.check_whole()


@pytest.mark.seldom
def test_deferred_task_that_is_marked_failed_fences_its_driver(livy_stage: Stage) -> None:
    scene = livy_stage("deferred", LIVY.format(arguments="retries=0"))
    scene.world.shop.put("a.txt", "a")
    scene.livy.patience = 1
    worker, held = scene.hold(Failpoint.BEFORE_COMMIT)
    worker.wait()
    trigger = scene.flow.trigger_of(TASK)

    asyncio.run(trigger.on_kill())

    assert "FencedError" in scene.let_go(held)
    assert scene.world.shop.target_lines(scene.job) == {}
    lines, _ = scene.world.shop.run(scene.job)
    assert lines == ["a"]
    scene.check_whole()


@pytest.mark.seldom
@pytest.mark.parametrize("to_run", [0, 1] if IS_FULL else [1])
def test_rewound_job_whose_task_is_cleared_reads_once_again_what_was_undone(stage: Stage, to_run: int) -> None:
    scene = stage("rewound", SUBMIT.format(arguments="retries=1"))
    shop, store = scene.world.shop, scene.world.store
    shop.put("a.txt", "a")
    if to_run:
        assert scene.play() == "success"
        scene.flow.trigger()
        shop.put("b.txt", "b")
    assert scene.play() == "success"
    if to_run:
        rewind(store, scene.job, to_run, clean=True, reason="wrong", who="test")
    else:
        reset(store, scene.job, clean=True, reason="wrong", who="test")
    scene.flow.clear(TASK)

    assert scene.play() == "success"

    assert len(scene.submits) == 2 + to_run
    assert store.head(scene.job).run_number == 2 + to_run
    scene.check_whole()


def chain_whose_first_task_is_replayed(stage: Stage, *, downstream: bool) -> tuple[Scene, str]:
    """Play copy -> report, clear copy, and play that again; return the scene and the job behind it."""
    scene = stage("chain", CHAIN)
    report = f"{scene.flow.dag_id}.report"
    scene.world.shop.put("a.txt", "a")
    assert (scene.play(), scene.play("report")) == ("success", "success")
    scene.check_whole(report)
    scene.flow.clear(TASK, downstream=downstream)
    assert scene.play() == "success"
    assert [run.revision for run in scene.runs] == [1]
    scene.check_whole()
    return scene, report


# Whether the task behind it is cleared along, or its next DAG run comes: it is the same news to it.
BEHIND = pytest.mark.parametrize(
    "is_cleared",
    [
        pytest.param(True, id="cleared-downstream"),
        *([pytest.param(False, id="in-the-next-dag-run")] if IS_FULL else []),
    ],
)


def play_behind(scene: Scene, *, is_cleared: bool) -> str:
    if not is_cleared:
        scene.flow.trigger()
        assert scene.play() == "success"
    return scene.play("report")


@BEHIND
@pytest.mark.seldom  # the one that goes back along is played each time
def test_job_behind_a_replayed_one_is_told_and_stops(stage: Stage, is_cleared: bool) -> None:
    scene, report = chain_whose_first_task_is_replayed(stage, downstream=is_cleared)

    state = play_behind(scene, is_cleared=is_cleared)

    assert "REPLAYED: run 1 of upstream" in scene.orders[-1].said.read_text()
    assert state in ("failed", "up_for_retry")
    scene.check_whole(report)


@pytest.mark.seldom
@BEHIND
def test_job_behind_a_replayed_one_goes_back_along_where_it_says_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_cleared: bool
) -> None:
    monkeypatch.setenv(ON_REWIND_VARIABLE, "rewind")
    scene, report = chain_whose_first_task_is_replayed(stage, downstream=is_cleared)

    assert play_behind(scene, is_cleared=is_cleared) == "success"

    assert scene.world.store.head(report).epoch == 2
    newest = scene.world.store.committed_run(report, 2)
    assert newest is not None
    assert newest.state is RunState.PUBLISHED


@BEHIND
@pytest.mark.seldom  # the one that goes back along is played each time
def test_job_behind_a_replayed_one_keeps_what_it_has_read_where_it_says_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, is_cleared: bool
) -> None:
    monkeypatch.setenv(ON_REWIND_VARIABLE, "ignore")
    scene, report = chain_whose_first_task_is_replayed(stage, downstream=is_cleared)

    assert play_behind(scene, is_cleared=is_cleared) == "success"

    scene.check_whole(report)


# ---- the id by which the provider's operator finds its Spark job again


class _Master(BaseHTTPRequestHandler):
    """Of a Spark master: the answer to what became of a driver."""

    def do_GET(self) -> None:
        told = {"driverState": "FINISHED", "submissionId": self.path.rpartition("/")[2], "success": True}
        content = json.dumps(told, indent=2, separators=(",", " : ")).encode()  # the provider takes it apart by lines
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def standalone_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the connection lead to a standalone cluster, where the provider's operator keeps the id of its driver."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Master) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        extra = {"deploy-mode": "cluster", "rest-port": server.server_address[1]}
        value = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(value))
        yield
        server.shutdown()
        thread.join()


@pytest.mark.seldom
@pytest.mark.skipif(not HAS_DURABLE, reason="this Airflow remembers no Spark job; that came with 3.3")
@pytest.mark.parametrize("durable", [True, False] if IS_FULL else [True])
def test_rewind_is_never_a_silent_no_op_whatever_the_provider_remembers(
    stage: Stage, remote: World, standalone_cluster: None, durable: bool
) -> None:
    scene = stage("durable", SUBMIT.format(arguments=f"{durable=}, status_poll_interval=1"), remote)
    remote.shop.put("a.txt", "a")
    assert scene.play() == "success"
    reset(remote.store, scene.job, clean=True, reason="wrong", who="test")
    scene.flow.clear(TASK)

    state = scene.play()

    if state == "success":
        assert len(scene.submits) == 2
        scene.check_whole()
    else:
        assert durable
        assert "NotCommittedError" in scene.log.read_text()
    assert (state == "success") == (remote.store.head(scene.job).run_number == 2)


@pytest.mark.seldom
@pytest.mark.skipif(not HAS_DURABLE, reason="this Airflow remembers no Spark job; that came with 3.3")
@pytest.mark.parametrize("durable", [True, False] if IS_FULL else [True])
def test_replay_is_never_a_silent_no_op_whatever_the_provider_remembers(
    stage: Stage, remote: World, standalone_cluster: None, durable: bool
) -> None:
    scene = stage("durable", SUBMIT.format(arguments=f"{durable=}, status_poll_interval=1"), remote)
    remote.shop.put("a.txt", "a")
    assert scene.play() == "success"
    scene.flow.clear(TASK)

    state = scene.play()

    assert (state == "success") == (scene.runs[0].revision == 1)
    assert state == "success" or "NotCommittedError" in scene.log.read_text()
    assert state == "success" or durable
    scene.check_whole()
