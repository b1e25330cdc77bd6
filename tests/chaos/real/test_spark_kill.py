"""The kill matrix with real Spark drivers.

One is killed at each point, over all commit paths, and a driver without Spark is the retry: it finds the same state.
`make test-all` plays the whole matrix with Spark alone (CHAOS=full).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.cell import Cell, Result, Tries, play
from tests.chaos.real.order import STARTED, CommitPath, Gate
from tests.chaos.real.process import run_driver
from tests.chaos.real.scene import IS_FULL, Scene
from tests.chaos.real.submission import SparkHost, spark_host

SAMPLE = [Cell(point, list(CommitPath)[i % len(CommitPath)], Tries.FIRST) for i, point in enumerate(Failpoint)]
CELLS = (
    [Cell(point, path, tries) for path in CommitPath for tries in Tries for point in Failpoint] if IS_FULL else SAMPLE
)

RANDOM_KILLS = 10
LONGEST_S = 4.0  # about what a driver takes once its session is there
full_only = pytest.mark.skipif(
    not IS_FULL, reason="each starts a Spark of its own, minutes in all: CHAOS=full plays them"
)

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.parametrize("backend", ["sqlite"]),
    pytest.mark.xdist_group("chaos-real-spark"),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkHost]:
    """Start one spark-submit for the drivers of this module."""
    with spark_host(tmp_path_factory.mktemp("host") / "said.log") as started:
        yield started


@pytest.mark.thorough  # the same cells as in test_kill_matrix.py, with Spark
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.path}-{cell.tries}-{cell.point}".replace(" ", "_"))
def test_spark_driver_killed_at_a_point_loses_and_doubles_no_row(
    scene: Scene, host: SparkHost, backend: str, cell: Cell
) -> None:
    attempts, finished = play(cell, scene, host.drive, host.drive if IS_FULL else run_driver)
    Result(cell, "spark", backend, attempts, scene.lost, scene.doubled, finished).save()
    scene.check_whole()


@full_only
def test_spark_driver_killed_at_a_random_time_loses_and_doubles_no_row(
    scene: Scene, host: SparkHost, gate: Gate
) -> None:
    scene.land_first()
    chance = random.Random(1)
    for kill in range(RANDOM_KILLS):
        scene.land(f"kill{kill}", f"kill {kill}")
        host.start(scene.order(run_id=f"task{kill}", holds=(STARTED,), gate=gate.port))
        held = gate.next()
        driver = psutil.Process(held.pid)
        held.go_on()
        time.sleep(chance.uniform(0, LONGEST_S))  # the time of the kill is what is drawn here, not what is awaited
        with contextlib.suppress(psutil.NoSuchProcess):  # it was faster
            driver.kill()
        assert host.wait() in (-signal.SIGKILL, 0)
        assert host.drive(scene.order(2, run_id=f"task{kill}")) == 0
        scene.check_whole()


@full_only
def test_spark_driver_that_slept_through_its_lease_commits_nothing(scene: Scene, host: SparkHost, gate: Gate) -> None:
    scene.path = CommitPath.BY_ITSELF
    scene.land_first()
    order = scene.order(holds=(Failpoint.BEFORE_COMMIT,), gate=gate.port, lease_s=0.4)
    host.start(order)
    held = gate.next()
    os.kill(held.pid, signal.SIGSTOP)
    scene.outlast_lease()
    assert scene.drive(run_id="another") == 0
    os.kill(held.pid, signal.SIGCONT)
    held.go_on()
    assert host.wait() == 1
    assert "FencedError" in order.said.read_text()
    assert "taken over by 'another' (attempt 1)" in order.said.read_text()
    scene.check_whole()
