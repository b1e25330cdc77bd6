"""What a run read of one context, held against what there was: nothing twice, nothing left out that is not counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.reason import EXPIRED, LATE, MISSING, OVER_BOUND
from tests.chaos.sim.files import SimFiles
from tests.chaos.sim.habit import Habit

Seen = Mapping[str, tuple[str, int]]  # of a listing, per path: version, and time in ms


@dataclass
class Reading:
    """What one run item plans to read of one context, from which listing (`seen`; None: of an upstream).

    `planned` has a version per path, or a revision per run; `read` is what is left of it at the commit; `files` are the
    files in any case. `rows` are those that the driver got.
    """

    planned: Mapping[str, str]
    habit: Habit
    files: Mapping[str, str]
    seen: Seen | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    read: Mapping[str, str] = field(default_factory=dict)
    rows: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, plan: FilePlan, habit: Habit, seen: Seen | None) -> Reading:
        """Return what a plan says."""
        files = {file.path: file.version for file in plan.files}
        window = plan.edge
        planned = files if window is None else {str(number): str(revision) for number, revision in window.runs}
        return cls(planned, habit, files, seen if window is None else None, plan.skipped, planned)

    def settle(self, final: FilePlan) -> None:
        """Take over what the plan that was stored last has left of it."""
        self.skipped = final.skipped
        if final.edge is None:
            self.files = self.read = {file.path: file.version for file in final.files}

    @property
    def dropped(self) -> Mapping[str, str]:
        """What was planned, and left to a later run."""
        return {name: version for name, version in self.planned.items() if name not in self.read}


def faults(reading: Reading, known: Mapping[str, str], newest_ms: int | None, files: SimFiles) -> Iterator[str]:
    """Yield what is wrong with a reading, where `known` was read before and `newest_ms` is the latest time of that."""
    for name, version in reading.planned.items():
        if known.get(name) == version:
            yield f"reads {name} ({version}) again"
    yield from _faults_of_dropped(reading, files)
    if reading.seen is None:
        return
    left = {
        name: at
        for name, (version, at) in reading.seen.items()
        if known.get(name) != version and reading.planned.get(name) != version
    }
    line = _line(reading, newest_ms)
    waiting = {name: at for name, at in left.items() if line is None or at >= line}
    over, late = reading.skipped.get(OVER_BOUND, 0), reading.skipped.get(LATE, 0)
    if len(waiting) > over:
        named = [f"{name} ({reading.seen[name][0]})" for name in sorted(waiting)]
        yield f"leaves out {', '.join(named)}, and counts {over} over its bound"
    if not over + late <= len(left) <= over + late + reading.skipped.get(EXPIRED, 0):
        yield f"leaves out {sorted(left)}, and counts {dict(reading.skipped)}"
    yield from _faults_of_bound(reading, waiting, files)


def _line(reading: Reading, newest_ms: int | None) -> int | None:
    """Return from which time on a file is not late; in a first run none is."""
    margin = reading.habit.late_after_ms
    return None if margin is None or newest_ms is None else newest_ms - margin


def _faults_of_dropped(reading: Reading, files: SimFiles) -> Iterator[str]:
    dropped = reading.dropped
    if dropped and reading.habit.on_missing == "error":
        yield f"leaves {sorted(dropped)} to the next run, and may not"
    if len(dropped) != reading.skipped.get(MISSING, 0):
        yield f"leaves {sorted(dropped)} to the next run, and counts {dict(reading.skipped)}"
    for name, version in dropped.items():
        info = files.info(name)
        if info is not None and info.version == version:
            yield f"leaves {name} ({version}) to the next run, and it is there as planned"


def _faults_of_bound(reading: Reading, waiting: Mapping[str, int], files: SimFiles) -> Iterator[str]:
    bound, over = reading.habit.bound, reading.skipped.get(OVER_BOUND, 0)
    taken = [files.written[name, version] for name, version in reading.planned.items()]
    if over and not bound.is_given:
        yield f"counts {over} files over a bound that it has not"
    if over and not taken:
        yield f"reads nothing, and leaves {over} files to the next run"
    if bound.max_files is not None and (len(taken) > bound.max_files or (over and len(taken) < bound.max_files)):
        yield f"reads {len(taken)} files of {len(taken) + over} under a bound of {bound.max_files}"
    size = sum(file.size_bytes for file in taken)
    if bound.max_bytes is not None and len(taken) > 1 and size > bound.max_bytes:
        yield f"reads {size} bytes under a bound of {bound.max_bytes}"
    window = bound.window_ms
    if window is not None and len({file.modified_ms // window for file in taken}) > 1:
        yield f"reads files of several windows: {sorted(reading.planned)}"
    if over and waiting and taken and min(waiting.values()) < max(file.modified_ms for file in taken):
        yield f"reads {sorted(reading.planned)} before {min(waiting, key=waiting.__getitem__)}, which is older"
