"""The driver and those who started it, each dying without the other: the JVM of spark-submit, the Airflow worker."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import psutil
import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import CommitPath, Gate, Order
from tests.chaos.real.scene import IS_FULL, Scene
from tests.chaos.real.submission import spark_submit, started, submit
from tools.patience import STUCK_S

DRIVER = [sys.executable, "-m", "tests.chaos.real.driver"]

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.parametrize("backend", ["sqlite"]),
    pytest.mark.xdist_group("chaos-real-spark"),
]


@pytest.fixture(autouse=True)
def airflow_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give workers an Airflow home of their own; they need no database."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))


@contextmanager
def worker(order: Order, command: Sequence[str] = DRIVER) -> Iterator[Popen[bytes]]:
    """Start a worker that plays one try; it and its driver say what they say to one file."""
    with started([sys.executable, "-m", "tests.chaos.real.worker", order.to_text(), *command], order.said) as leader:
        yield leader


def work(order: Order) -> None:
    """Play one try to its good end, in this process."""
    from tests.chaos.real import worker as here  # Airflow looks for its home when it is imported

    here.work(order, DRIVER)


def wait_for_end(pid: int) -> None:
    """Wait for a process that is no child of this one."""
    try:
        psutil.Process(pid).wait(STUCK_S)
    except psutil.NoSuchProcess:
        return


# ---- the worker is killed, the driver goes on


@pytest.mark.thorough
def test_retry_takes_over_from_the_driver_of_a_worker_that_was_killed(scene: Scene, gate: Gate) -> None:
    scene.land_first()
    first = scene.order(holds=(Failpoint.STAGED,), gate=gate.port)
    with worker(first) as leader:
        held = gate.next(leader.pid)
        leader.kill()
        assert leader.wait(STUCK_S) == -signal.SIGKILL
        assert psutil.pid_exists(held.pid)
        work(scene.order(2))
        held.go_on()
        wait_for_end(held.pid)
    assert "FencedError" in first.said.read_text()
    assert "taken over by 'task' (attempt 2)" in first.said.read_text()
    assert scene.drive(run_id="next") == 0
    scene.check_whole()


@pytest.mark.thorough
def test_retry_needs_no_spark_when_the_driver_of_a_killed_worker_went_on_and_published(
    scene: Scene, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.land_first()
    with worker(scene.order(holds=(Failpoint.STAGED,), gate=gate.port)) as leader:
        held = gate.next(leader.pid)
        leader.kill()
        leader.wait(STUCK_S)
        held.go_on()
        wait_for_end(held.pid)
    scene.check_whole()
    work(scene.order(2))
    assert "Spark was not needed" in capsys.readouterr().out
    assert [run.attempt for run in scene.runs()] == [1]
    scene.check_whole()


@pytest.mark.thorough
def test_retry_publishes_what_driver_and_worker_left_when_both_were_killed(
    scene: Scene, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.land_first()
    with worker(scene.order(holds=(Failpoint.MOVED,), gate=gate.port)) as leader:
        held = gate.next(leader.pid)
        leader.kill()
        psutil.Process(held.pid).kill()
        wait_for_end(held.pid)
    assert scene.runs()[0].state is RunState.COMMITTED
    work(scene.order(2))
    assert "Spark was not needed" in capsys.readouterr().out
    scene.check_whole()


# ---- the JVM of spark-submit is killed, the Python driver goes on


@pytest.mark.thorough  # test_stopped.py and test_two_drivers.py play drivers that live on, without Spark
@pytest.mark.spark
def test_driver_that_outlives_the_jvm_commits_nothing_once_the_worker_has_seen_spark_fail(
    scene: Scene, gate: Gate
) -> None:
    scene.land_first()
    first = scene.order(holds=(Failpoint.STAGED,), gate=gate.port)
    with worker(first, spark_submit("spark_driver.py")) as leader:
        held = gate.next(leader.pid)
        jvm = psutil.Process(held.pid).parent()
        assert jvm is not None
        assert jvm.name() == "java"
        jvm.kill()
        assert leader.wait(STUCK_S) == 1  # it has fenced this try by now
        assert psutil.pid_exists(held.pid)
        held.go_on()
        wait_for_end(held.pid)
    said = first.said.read_text()
    assert "FencedError" in said
    assert "nothing was committed" in said
    assert scene.target().total() == 0
    work(scene.order(2))
    scene.check_whole()


@pytest.mark.seldom
@pytest.mark.spark
def test_driver_killed_in_its_own_spark_submit_fails_that_and_the_next_one_finishes(scene: Scene) -> None:
    scene.path = CommitPath.OVERWRITE
    scene.land_first()
    scene.run_first()
    scene.land_more()
    assert submit(scene.order(1, fault=Failpoint.MOVED)) != 0
    assert scene.runs()[-1].state is RunState.COMMITTED
    assert (submit(scene.order(2)) if IS_FULL else scene.drive(2)) == 0
    scene.check_whole()
