"""One cell of the kill matrix: where a driver is killed, how that is played, and what became of its rows."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from airflow_bookmarks.core.run import Run, RunState
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.order import TASK, CommitPath, Order
from tests.chaos.real.scene import Scene

RESULTS = Path(__file__).parents[3] / "build" / "kill_matrix"


class Tries(StrEnum):
    """Which attempts of the execution are killed; the one after them is let alone."""

    FIRST = "first try"
    RETRY = "first try and retry"

    @property
    def killed(self) -> tuple[int, ...]:
        return (1,) if self is Tries.FIRST else (1, 2)


@dataclass(frozen=True, slots=True)
class Cell:
    """Where the driver is killed: the point, how its output is committed, and in which tries."""

    point: Failpoint
    path: CommitPath
    tries: Tries

    @property
    def occurs(self) -> bool:
        """Whether a driver comes by: a sink that commits by itself leaves nothing to move."""
        return not (self.point is Failpoint.MOVED and self.path is CommitPath.BY_ITSELF)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a cell: rows lost and doubled in the end, tries needed, and who finished what the killed left.

    `engine` is "python" or "spark"; `backend` what kept the state.
    """

    cell: Cell
    engine: str
    backend: str
    attempts: int
    lost: int
    doubled: int
    finished: str

    @property
    def text(self) -> str:
        """What the table says."""
        whole = "" if self.lost == self.doubled == 0 else f"**{self.lost} lost, {self.doubled} doubled**, "
        return f"{whole}{self.finished}"

    def save(self) -> None:
        """Write it to a file of its own, at once and whole: several processes run cells."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        names = (self.engine, self.backend, self.cell.path, self.cell.tries, self.cell.point)
        path = RESULTS / f"{'-'.join(names).replace(' ', '_')}.json"
        beside = path.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(asdict(self), indent=1))
        os.replace(beside, path)


def load_results() -> Iterator[Result]:
    """Yield the results of all cells that ran."""
    for path in sorted(RESULTS.glob("*.json")):
        given = json.loads(path.read_text())
        at = given.pop("cell")
        yield Result(Cell(Failpoint(at["point"]), CommitPath(at["path"]), Tries(at["tries"])), **given)


def play(
    cell: Cell, scene: Scene, drive: Callable[[Order], int], drive_last: Callable[[Order], int]
) -> tuple[int, str]:
    """Kill the tries of a cell by `drive`, and let the one after them alone by `drive_last`; both return exit codes.

    Returns how many tries it took, and who finished what the killed ones left.
    """
    scene.path = cell.path
    scene.land_first()
    scene.run_first()
    scene.land_more()
    for attempt in cell.tries.killed:
        assert drive(scene.order(attempt, fault=cell.point)) == (-signal.SIGKILL if cell.occurs else 0)
        if attempt != cell.tries.killed[-1]:
            scene.land("e", "e")  # so that the retry too has something of its own
    left = _last_killed(scene.runs(), cell.tries)
    last = cell.tries.killed[-1] + 1
    assert drive_last(scene.order(last)) == 0
    return last, _finished_by(left, scene.runs(), last) if cell.occurs else "no such point"


def _last_killed(runs: Sequence[Run], tries: Tries) -> Run | None:
    """Return the newest run item that a killed attempt left; None where none had one."""
    items = [run for run in runs if run.attempt in tries.killed and run.run_id == TASK]
    return max(items, key=lambda run: run.key.fence, default=None)


def _finished_by(left: Run | None, runs: Sequence[Run], attempt: int) -> str:
    """Say what `attempt`, the one that was let alone, did with what the killed attempts left (`left`).

    `runs` are all run items in the end.
    """
    if left is None:
        return f"read by try {attempt}"
    if left.state is RunState.PUBLISHED:
        return "was published"
    now = next(run for run in runs if run.key == left.key)
    if now.state is RunState.PUBLISHED:
        return f"published by try {attempt}"
    if any(left.key.fence in run.fences for run in runs if run.key != left.key):
        return f"taken over by try {attempt}"
    assert now.state is RunState.ABANDONED
    return f"read again by try {attempt}"
