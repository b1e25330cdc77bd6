"""Killed at any time at all, also where no point has a name: each row is in the target once."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.chaos.real.order import CommitPath
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import IS_FULL, Scene

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-real")]

KILLS = 50 if IS_FULL else 6
FILES = 40  # enough that staging and publishing take a share of the time


def how_long_a_run_takes(scene: Scene) -> float:
    """Measure a run without a kill, in seconds: what comes later than that meets no driver."""
    for number in range(FILES):
        scene.land(f"first{number}", f"first {number}")
    began = time.monotonic()
    scene.run_first()
    return time.monotonic() - began


@pytest.mark.parametrize("path", CommitPath)
def test_driver_killed_at_a_random_time_loses_and_doubles_no_row(scene: Scene, path: CommitPath) -> None:
    scene.path = path
    longest_s = how_long_a_run_takes(scene)
    chance = random.Random(path)
    for kill in range(-(-KILLS // len(CommitPath))):
        for number in range(FILES):
            scene.land(f"kill{kill}-{number}", f"kill {kill}, {number}")
        with DriverProcess(scene.order(run_id=f"task{kill}")) as driver:
            time.sleep(chance.uniform(0, longest_s))  # the time of the kill is what is drawn here, not what is awaited
            driver.kill()
            assert driver.wait() in (-signal.SIGKILL, 0)
        assert scene.drive(2, run_id=f"task{kill}") == 0
        scene.check_whole()
