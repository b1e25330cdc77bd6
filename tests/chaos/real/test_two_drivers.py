"""Two drivers of one job at the same time."""

from __future__ import annotations

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import WAITING, CommitPath, Gate
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import Scene

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-real")]


@pytest.mark.parametrize("path", CommitPath)
def test_second_driver_is_told_who_works_on_the_job_and_changes_nothing(
    scene: Scene, gate: Gate, path: CommitPath
) -> None:
    scene.path = path
    scene.land_first()
    with DriverProcess(scene.order(holds=(Failpoint.PLANNED,), gate=gate.port)) as first:
        held = gate.next(first.pid)
        with DriverProcess(scene.order(run_id="second")) as second:
            assert second.wait() == 1
            assert "JobBusyError" in second.said
            assert "worked on by 'task' (attempt 1)" in second.said
        held.go_on()
        assert first.wait() == 0
    scene.check_whole()
    assert len(scene.runs()) == 1


def test_driver_that_waits_does_its_own_after_the_first(scene: Scene, gate: Gate) -> None:
    scene.land_first()
    with DriverProcess(scene.order(holds=(Failpoint.STAGED,), gate=gate.port)) as first:
        held = gate.next(first.pid)
        waits = scene.order(run_id="second", on_conflict="wait", holds=(WAITING,), gate=gate.port)
        with DriverProcess(waits) as second:
            waiting = gate.next(second.pid)
            assert waiting.place == WAITING
            scene.land_more()
            held.go_on()
            assert first.wait() == 0
            waiting.go_on()
            assert second.wait() == 0
    scene.check_whole()
    assert [run.run_id for run in scene.runs()] == ["task", "second"]


def test_of_drivers_that_begin_at_once_each_works_alone_or_is_told(scene: Scene) -> None:
    scene.land_first()
    drivers = [DriverProcess(scene.order(run_id=f"racer{number}")) for number in range(4)]
    codes = [driver.wait() for driver in drivers]
    assert 0 in codes
    for driver, code in zip(drivers, codes, strict=True):
        assert code == 0 or "JobBusyError" in driver.said
    scene.check_whole()


def test_retry_takes_over_from_a_driver_that_lives_and_the_first_is_told(scene: Scene, gate: Gate) -> None:
    scene.land_first()
    with DriverProcess(scene.order(holds=(Failpoint.BEFORE_COMMIT,), gate=gate.port)) as first:
        held = gate.next(first.pid)
        assert scene.drive(2) == 0
        held.go_on()
        assert first.wait() == 1
        assert "FencedError" in first.said
        assert "taken over by 'task' (attempt 2)" in first.said
    scene.check_whole()
