"""Drivers of one job that start, hang, wake and die at random, with leases too short for any of them."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest

from tests.chaos.real.order import CommitPath
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import IS_FULL, Scene

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.parametrize("backend", ["sqlite"]),
    pytest.mark.xdist_group("chaos-real"),
]

ROUNDS = 30 if IS_FULL else 3
DRIVERS = 3
FILES = 20
LEASE_S = 0.02
LONGEST_S = 0.1  # about what a run takes
# The last: what a driver stages is swept under it by the one that has the job, so that its write may fail first.
ENDS = ("FencedError", "JobBusyError", "taken over by")


def trouble(driver: DriverProcess, chance: random.Random) -> None:
    """Let a driver hang or die, or let it be."""
    time.sleep(chance.uniform(0, LONGEST_S))  # when it happens is what is drawn here
    match chance.choice(["freeze", "freeze", "kill", "leave"]):
        case "freeze":
            driver.freeze()
        case "kill":
            driver.kill()


def weather(scene: Scene, chance: random.Random, turn: int) -> None:
    """Let some drivers work at once, each in trouble, and wait until all have ended."""
    with ExitStack() as ends:
        drivers = []
        for number in range(DRIVERS):
            order = scene.order(run_id=f"turn{turn}-{number}", lease_s=LEASE_S)
            drivers.append(ends.enter_context(DriverProcess(order)))
            trouble(drivers[-1], chance)
        chance.shuffle(drivers)
        for driver in drivers:
            driver.thaw()
        for driver in drivers:
            assert driver.wait() <= 0 or any(end in driver.said for end in ENDS), driver.said


@pytest.mark.parametrize("path", CommitPath)
def test_drivers_that_hang_wake_and_die_at_random_lose_and_double_no_row(scene: Scene, path: CommitPath) -> None:
    scene.path = path
    chance = random.Random(path)
    for turn in range(ROUNDS):
        for number in range(FILES):
            name = number if path is CommitPath.OVERWRITE else turn * FILES + number
            scene.land(f"file{name}", f"turn {turn}, {number}")
        weather(scene, chance, turn)
        scene.outlast_lease()
        assert scene.drive(run_id=f"turn{turn}-end") == 0
        scene.check_whole()
