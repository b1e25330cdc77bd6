"""A driver that stands still past its lease, by SIGSTOP, and wakes when another run has done the work."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import CommitPath, Gate
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import Scene
from tests.thorough import each_once

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-real")]

LEASE_S = 0.4
UNCOMMITTED = [Failpoint.TAKEN, Failpoint.PLANNED, Failpoint.STAGED, Failpoint.BEFORE_COMMIT]
COMMITTED = [Failpoint.COMMITTED, Failpoint.MOVED, Failpoint.PUBLISHED]
PUBLISHES = [
    case
    for case in each_once(COMMITTED, CommitPath)
    if case.values != (Failpoint.MOVED, CommitPath.BY_ITSELF)  # which moves nothing
]


def freeze_and_overtake(scene: Scene, gate: Gate, point: Failpoint) -> DriverProcess:
    """Freeze a driver at a point, let another run of the job do all the work, and let the first go on."""
    scene.land_first()
    scene.run_first()
    scene.land_more()
    driver = DriverProcess(scene.order(holds=(point,), gate=gate.port, lease_s=LEASE_S))
    held = gate.next(driver.pid)
    scene.freeze(driver)
    scene.outlast_lease()
    scene.land("late", "late")
    assert scene.drive(run_id="another") == 0
    driver.thaw()
    held.go_on()
    return driver


@pytest.mark.parametrize(("point", "path"), each_once(UNCOMMITTED, CommitPath))
def test_driver_that_slept_through_its_lease_commits_nothing_and_says_who_has_the_job(
    scene: Scene, gate: Gate, point: Failpoint, path: CommitPath
) -> None:
    scene.path = path
    with freeze_and_overtake(scene, gate, point) as driver:
        before = scene.target(), [run.state for run in scene.runs()], scene.head.version
        assert driver.wait() == 1
        assert "FencedError" in driver.said
        assert "taken over by 'another' (attempt 1)" in driver.said
    assert (scene.target(), [run.state for run in scene.runs()], scene.head.version) == before
    assert scene.drive(run_id="next") == 0  # sweeps what the first one staged after it had lost the job
    scene.check_whole()


@pytest.mark.parametrize(("point", "path"), PUBLISHES)
def test_driver_that_slept_between_commit_and_mark_repeats_a_publish_and_moves_nothing_twice(
    scene: Scene, gate: Gate, point: Failpoint, path: CommitPath
) -> None:
    scene.path = path
    with freeze_and_overtake(scene, gate, point) as driver:
        before = scene.target(), scene.head
        driver.wait()  # its run is committed and published, by whomever: both ends are true
        assert (scene.target(), scene.head) == before
    scene.check_whole()
    assert [run.state for run in scene.runs()] == [RunState.PUBLISHED] * 3
