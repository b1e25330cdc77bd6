"""What the tests with real processes rely on: they wait for what happens, however long a busy machine takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import Gate
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import Scene

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-real")]


def states_of(pid: int) -> set[str]:
    """Return the states of all threads of a process, as the kernel names them."""
    return {stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")}


def test_who_waits_at_the_gate_is_told_at_once_that_the_driver_has_ended(scene: Scene, gate: Gate) -> None:
    with (
        DriverProcess(scene.order(fault=Failpoint.TAKEN, holds=(Failpoint.PLANNED,), gate=gate.port)) as driver,
        pytest.raises(ConnectionError, match="have ended"),
    ):
        gate.next(driver.pid)


def test_frozen_driver_stands_still_with_all_its_threads(scene: Scene, gate: Gate) -> None:
    scene.land_first()
    with DriverProcess(scene.order(holds=(Failpoint.PLANNED,), gate=gate.port, lease_s=0.1)) as driver:
        held = gate.next(driver.pid)
        for _ in range(50):
            driver.freeze()
            assert states_of(driver.pid) == {"T"}
            driver.thaw()
        held.go_on()
        assert driver.wait() == 0
    scene.check_whole()
