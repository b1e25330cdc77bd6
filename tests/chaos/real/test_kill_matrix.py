"""Killed by SIGKILL at any point of the protocol, on any commit path, in any try: each row is in the target once."""

from __future__ import annotations

import signal
from collections.abc import Iterable

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.cell import Cell, Result, Tries, load_results, play
from tests.chaos.real.matrix import PAGE, read_table, texts_of
from tests.chaos.real.order import CommitPath
from tests.chaos.real.process import run_driver
from tests.chaos.real.scene import IS_FULL, Scene

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos-real")]

CELLS = [Cell(point, path, tries) for path in CommitPath for tries in Tries for point in Failpoint]
HEIR_POINTS = [point for point in Failpoint if point is not Failpoint.MOVED]
DYNAMODB = pytest.mark.dynamodb_local


def id_of(backend: str, cell: Cell) -> str:
    return "-".join((backend, cell.path, cell.tries, cell.point)).replace(" ", "_")


AROUND_COMMIT = (Failpoint.STAGED, Failpoint.BEFORE_COMMIT, Failpoint.COMMITTED)  # each on a path of its own


def marks_of(cell: Cell, points: Iterable[Failpoint] = Failpoint) -> list[pytest.MarkDecorator]:
    """Let `make test` play each of some points, and each path; `make test-all` each path at each point, in each try."""
    at = list(Failpoint).index(cell.point)
    is_sample = cell.tries is Tries.FIRST and cell.path is list(CommitPath)[at % len(CommitPath)]
    is_sample = is_sample and cell.point in points
    return [] if is_sample else [pytest.mark.thorough]


@pytest.mark.parametrize(
    ("backend", "cell"),
    [
        *(pytest.param("sqlite", cell, id=id_of("sqlite", cell), marks=marks_of(cell)) for cell in CELLS),
        *(
            pytest.param("dynamodb", cell, id=id_of("dynamodb", cell), marks=[DYNAMODB, *marks_of(cell, AROUND_COMMIT)])
            for cell in CELLS
            if IS_FULL or cell.tries is Tries.FIRST
        ),
    ],
)
def test_driver_killed_at_a_point_loses_and_doubles_no_row(scene: Scene, backend: str, cell: Cell) -> None:
    attempts, finished = play(cell, scene, run_driver, run_driver)
    Result(cell, "python", backend, attempts, scene.lost, scene.doubled, finished).save()
    scene.check_whole()


@pytest.mark.parametrize("backend", ["sqlite", *([pytest.param("dynamodb", marks=DYNAMODB)] if IS_FULL else [])])
@pytest.mark.parametrize("point", HEIR_POINTS)
def test_rows_that_landed_are_taken_over_wherever_the_heir_is_killed(scene: Scene, point: Failpoint) -> None:
    scene.path = CommitPath.BY_ITSELF
    scene.land_first()
    assert scene.drive(1, fault=Failpoint.STAGED) == -signal.SIGKILL
    scene.land_more()
    assert scene.drive(2, fault=point) == -signal.SIGKILL
    assert scene.drive(3) == 0
    scene.check_whole()


def test_committed_table_says_what_the_cells_that_ran_say() -> None:
    table = read_table(PAGE.read_text())
    assert set(table) == set(CELLS)
    texts = texts_of(load_results())
    assert texts
    assert {cell: table[cell] for cell in texts} == texts
