"""Killed by SIGKILL at any point, with files and two tables as outputs of one run: each row is in each target once."""

from __future__ import annotations

import signal

import pytest

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import JOB, TASK
from tests.chaos.tables.order import NOT_COMMITTED
from tests.chaos.tables.scene import TablesScene

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-tables")]

OUTPUTS = 3  # in its publish the step of two tables, and that of each of two files
OF_EACH_OUTPUT = {Failpoint.PLACED: OUTPUTS, Failpoint.STAGED: OUTPUTS, Failpoint.MOVED: 3}
CELLS = [(point, nth) for point in Failpoint for nth in range(1, OF_EACH_OUTPUT.get(point, 1) + 1)]
DUE = (Failpoint.COMMITTED, Failpoint.PUBLISHING, Failpoint.MOVED, Failpoint.PUBLISHED)
OVER = (Failpoint.MARKED, Failpoint.SWEPT)
OF_PUBLISH = [cell for cell in CELLS if cell[0] in DUE[1:]]


def marks_of(point: Failpoint, nth: int) -> list[pytest.MarkDecorator]:
    """Let `make test` play what is about tables: from the last stage to the mark; `make test-all` all of it."""
    return [] if point in DUE and nth in (1, OUTPUTS) else [pytest.mark.thorough]


@pytest.mark.parametrize("finisher", ["next_run", "worker"])
@pytest.mark.parametrize(
    ("point", "nth"), [pytest.param(*cell, id=f"{cell[0]}-{cell[1]}", marks=marks_of(*cell)) for cell in CELLS]
)
def test_driver_of_three_sinks_killed_at_a_point_loses_and_doubles_no_row(
    scene: TablesScene, point: Failpoint, nth: int, finisher: str
) -> None:
    assert scene.drive(fault=point, nth=nth) == -signal.SIGKILL
    if finisher == "worker":
        assert scene.work() == (0 if point in (*DUE, *OVER) else NOT_COMMITTED)
        if point in (*DUE, *OVER):
            assert scene.targets() == scene.expected()
    scene.finish()
    scene.check_whole()
    assert committed_items(scene) == 1


@pytest.mark.thorough
@pytest.mark.parametrize(("point", "nth"), OF_PUBLISH, ids=lambda value: str(value))
def test_worker_killed_at_a_point_of_its_publish_leaves_it_to_the_next_run(
    scene: TablesScene, point: Failpoint, nth: int
) -> None:
    assert scene.drive(fault=Failpoint.COMMITTED) == -signal.SIGKILL
    assert scene.work(fault=point, nth=nth) == -signal.SIGKILL
    scene.finish()
    scene.check_whole()
    assert committed_items(scene) == 1


def committed_items(scene: TablesScene) -> int:
    """Return how many runs of the execution that was killed have input: what was committed is not read again."""
    runs = [run for run in scene.store.runs(JOB) if run.run_id == TASK and not run.is_empty]
    return sum(run.state is RunState.PUBLISHED for run in runs)
