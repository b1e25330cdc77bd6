"""Plan a Delta table value by value of a partition column: each is a run of its own, and one that failed is read alone.

One look fixes, for all values, up to which version the table is read, and which values have news before that:

    position before          version 10
    the look                 ends at 14; versions 11 to 14 have files of eu, us, asia
    after the run of eu      version 14, left: us from 10, asia from 10
    after the run of asia    version 14, left: us from 10                us has failed
    the retry of it          reads the files of us in versions 11 to 14, and no others
    after the run of us      version 14

The first look takes the table as it is: values are then left from no version. `sources.jdbc.partitions` does the same
with rows of a database.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.sources.delta.position import Added, DeltaPlan, DeltaPosition
from airflow_bookmarks.sources.delta.source import DeltaSource, position_of
from airflow_bookmarks.sources.delta.window import bytes_of, changed, total_rows, window_of
from airflow_bookmarks.sources.part_loop import PartsLeft, check_not_too_many, in_order
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.sources.delta.commit import Action
    from airflow_bookmarks.sources.delta.log import DeltaLog
    from airflow_bookmarks.sources.delta.snapshot import TableState
    from airflow_bookmarks.sources.delta.window import CommitWindow
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.sources.source import PlanInput


class DeltaPartitionsSource(DeltaSource):
    """What is new in the partitions of one Delta table.

    Args:
        loop: what the runs of a loop share; None: all that a loop would read is planned, to be looked at and counted.
        execution: the name of the execution, which goes on with its own look.
    """

    def __init__(self, *args: Any, loop: PartLoop | None = None, execution: str = "", **given: Any) -> None:
        super().__init__(*args, **given)
        self._loop, self._execution = loop, execution
        self._column = self.recipe.options.per or ""

    @property
    def bounds(self) -> frozenset[str]:
        """None: each value is read whole."""
        return frozenset()

    def _planned(self, table: DeltaLog, found: PlanInput, before: DeltaPosition | None) -> DeltaPlan:
        if before is not None and before.files_read is not None:
            raise SourceError(
                f"{self._label}: a first read of the Delta table {self.recipe.name!r} in several runs is not at its "
                f"end, and this read has per={self._column!r}. Nothing was read or changed. Finish it without per=."
            )
        if before is not None and before.parts is not None and before.parts.column != self._column:
            raise before.parts.refused(self._label, f"per={self._column!r}")
        left = None if before is None else before.parts
        if self._loop is not None and before is not None and left is not None and left.looked_by == self._execution:
            return self._next(table, before, None, self._loop)
        looked, window = self._look(table, found, before)
        if self._loop is not None:
            return self._next(table, looked, window, self._loop)
        marks = {} if looked.parts is None else looked.parts.marks
        files = [file for each in self._files(table, looked, marks).values() for file in each]
        return self._plan(looked, None, files, window, None if before is None else before.version)

    # ---- the look

    def _look(
        self, table: DeltaLog, found: PlanInput, before: DeltaPosition | None
    ) -> tuple[DeltaPosition, CommitWindow | None]:
        """Return the position with a new end, and with the values that have files before it; and what lies between."""
        start = before
        if start is None and not found.start.is_beginning:
            begun = self._start(table, found)
            start = None if begun is None else position_of(table, begun)
        if start is None:
            snapshot = self._looks.snapshot = self._snapshot(table, table.latest)
            end = position_of(table, snapshot)
            return self._with(end, dict.fromkeys(self._values(end.state, snapshot.files))), None
        window = self._since_position(table, start)
        marks: dict[str | None, int | None] = {} if start.parts is None else dict(start.parts.marks)
        if not window.commits:
            return self._with(start, marks), window
        last, state = window.commits[-1], start.state.after(window.commits)
        state.check_log(self.recipe.name)
        for value in self._values(state, window.files):
            marks.setdefault(value, start.version)
        return self._with(DeltaPosition(last.version, last.fingerprint, state), marks), window

    def _since_position(self, table: DeltaLog, start: DeltaPosition) -> CommitWindow:
        try:
            commits = table.commits(start.version + 1, table.latest)
        except VersionGoneError as error:
            raise self._gone(error, start) from error
        window = window_of(commits, start.state.id, self.recipe.options)
        if window.change is not None and self.recipe.options.on_change == "error":
            raise changed(self.recipe.name, self._label, window.change, start.version)
        return window

    def _with(self, end: DeltaPosition, marks: Mapping[str | None, int | None]) -> DeltaPosition:
        check_not_too_many(self._label, self._column, marks, "new files")
        return replace(end, parts=PartsLeft(self._column, self._execution, marks) if marks else None)

    # ---- what a set passes over

    def left_until(self, table: DeltaLog, at: DeltaPosition, version: int) -> list[Action]:
        """Return the files of the values that a position has left, each from its mark up to a version.

        Args:
            version: up to which the table counts as read then; what lies behind the position is not among them.

        Raises:
            VersionGoneError: the log does not tell any more.
        """
        until = replace(at, version=min(at.version, version))
        marks = {} if at.parts is None else at.parts.marks
        return [
            file
            for value, mark in marks.items()
            if mark is None or mark < until.version
            for file in self._of_mark(table, until, mark).get(value, ())
        ]

    # ---- the plans

    def _next(self, table: DeltaLog, looked: DeltaPosition, window: CommitWindow | None, loop: PartLoop) -> DeltaPlan:
        """Return the plan of the first value that the loop has not taken on and that has files, or one over nothing."""
        left, marks = looked.parts, {} if looked.parts is None else dict(looked.parts.marks)
        free = [value for value in in_order(marks) if PlanPart(self._column, value) not in loop.taken]
        files = self._files(table, looked, {value: marks[value] for value in free})
        while free:
            value = free.pop(0)
            mark = marks.pop(value)
            if files[value]:
                part = PlanPart(self._column, value)
                loop.take(part, is_last=not any(files[each] for each in free))
                plan = self._plan(looked, left and left.without(marks), files[value], window, mark)
                return replace(plan, part=part)
        loop.take(None, is_last=True)
        return self._plan(looked, left and left.without(marks), (), window, looked.version)

    def _plan(
        self,
        looked: DeltaPosition,
        left: PartsLeft[int] | None,
        files: Sequence[Action],
        window: CommitWindow | None,
        after: int | None,
    ) -> DeltaPlan:
        piece = Added(looked.version, looked.state, tuple(files))
        return DeltaPlan(
            self.recipe,
            (piece,) if files else (),
            replace(looked, parts=left),
            after,
            len(files),
            bytes_of(files),
            total_rows(files),
            {} if window is None else dict(window.skipped),
        )

    def _files(
        self, table: DeltaLog, looked: DeltaPosition, marks: Mapping[str | None, int | None]
    ) -> Mapping[str | None, Sequence[Action]]:
        """Return the files of values, each from its mark up to the version of a position.

        Raises:
            VersionGoneError: the log does not tell any more, or files of them are gone.
        """
        found = {value: self._of_mark(table, looked, mark).get(value, ()) for value, mark in marks.items()}
        self._check_there(table, looked, [file for files in found.values() for file in files], marks)
        return found

    def _of_mark(
        self, table: DeltaLog, looked: DeltaPosition, mark: int | None
    ) -> Mapping[str | None, Sequence[Action]]:
        """Return the files of all values that came after a mark, by their value."""
        known = self._looks.by_value
        if (looked.version, mark) not in known:
            name = self._physical(looked.state)
            found: dict[str | None, list[Action]] = {}
            for file in self._added(table, looked, mark):
                found.setdefault(_value(file, name), []).append(file)
            known[looked.version, mark] = found
        return known[looked.version, mark]

    def _added(self, table: DeltaLog, looked: DeltaPosition, mark: int | None) -> Sequence[Action]:
        try:
            if mark is not None:
                commits = table.commits(mark + 1, looked.version)
                return window_of(commits, looked.state.id, self.recipe.options).files
            snapshot = self._looks.snapshot
            if snapshot is None or snapshot.version != looked.version:
                snapshot = self._looks.snapshot = self._snapshot(table, looked.version)
        except VersionGoneError as error:
            raise self._gone(error, looked) from error
        return snapshot.files

    def _check_there(
        self,
        table: DeltaLog,
        looked: DeltaPosition,
        files: Sequence[Action],
        marks: Mapping[str | None, int | None],
    ) -> None:
        """Make sure that files which later commits have taken out of the table were not vacuumed since."""
        first = min((looked.version if mark is None else mark for mark in marks.values()), default=looked.version)
        gone = {path for commit in table.commits(first + 1, table.latest) for path in commit.gone}
        missing = self._missing(table, [file for file in files if file["path"] in gone])
        if missing:
            raise self._no_longer_there(missing, looked)

    def _values(self, state: TableState, files: Iterable[Action]) -> list[str | None]:
        name = self._physical(state)
        return list(dict.fromkeys(_value(file, name) for file in files))

    def _physical(self, state: TableState) -> str:
        """Return how files name the column: by an id of its own, where the table maps its columns.

        Raises:
            OptionError: it is no partition column of the table.
        """
        columns = list(state.metadata.get("partitionColumns") or ())
        if self._column not in columns:
            raise OptionError(
                f"{self._label}: per={self._column!r}, and the Delta table {self.recipe.name!r} is partitioned by "
                f"{columns or 'nothing'}. Nothing was read or changed. Name one of its partition columns."
            )
        fields = json.loads(state.metadata["schemaString"])["fields"]
        metadata = next((field.get("metadata") or {} for field in fields if field["name"] == self._column), {})
        return str(metadata.get("delta.columnMapping.physicalName", self._column))


def _value(file: Action, name: str) -> str | None:
    """Return the value of a file in a partition column; empty text is NULL, by the protocol of Delta."""
    return (file.get("partitionValues") or {}).get(name) or None
