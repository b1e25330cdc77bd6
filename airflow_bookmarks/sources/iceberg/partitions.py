"""Plan an Iceberg table value by value of a partition column: each is a run of its own; one that failed is read alone.

One look fixes, for all values, up to which snapshot the table is read: the plan that a read without `per` would have is
split by the values of the rows that it reads.

    position before          snapshot 10
    the look                 ends at 14; the snapshots behind 10 have rows of eu, us, asia
    after the run of eu      snapshot 14, left: us from 10, asia from 10
    after the run of asia    snapshot 14, left: us from 10               us has failed
    the retry of it          reads the rows of us behind 10, up to 14, and no others
    after the run of us      snapshot 14

`sources.delta.partitions` does the same by the log of a table, `sources.jdbc.partitions` with rows of a database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.sources.iceberg.position import AppendedRows, IcebergPlan, IcebergPosition, WholeTable
from airflow_bookmarks.sources.iceberg.source import IcebergSource, leads, position_at
from airflow_bookmarks.sources.part_loop import PartsLeft, check_not_too_many, in_order
from airflow_bookmarks.sources.tables.versioned import total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog
    from airflow_bookmarks.sources.part_loop import PartLoop
    from airflow_bookmarks.sources.source import PlanInput


@dataclass(frozen=True, slots=True)
class PartAmount:
    """How many files and rows there are of one value of a column."""

    files: int
    rows: int


# Returns what a piece has of each value of a column, which it names by its text; None is NULL.
LookAtParts: TypeAlias = "Callable[[WholeTable | AppendedRows], Mapping[str | None, PartAmount]]"
_Marks: TypeAlias = "dict[str | None, IcebergPosition | None]"


class IcebergPartitionsSource(IcebergSource):
    """What is new in the partitions of one Iceberg table.

    Args:
        parts: looks at the values of a piece.
        loop: what the runs of a loop share; None: all that a loop would read is planned, to be looked at and counted.
        execution: the name of the execution, which goes on with its own look.
    """

    def __init__(
        self, *args: Any, parts: LookAtParts, loop: PartLoop | None = None, execution: str = "", **given: Any
    ) -> None:
        super().__init__(*args, **given)
        self._parts, self._loop, self._execution = parts, loop, execution
        self._column = self.recipe.options.per or ""
        # Snapshots never change, so each piece is looked at once for all runs of the loop.
        self._seen: dict[WholeTable | AppendedRows, Mapping[str | None, PartAmount]] = {} if loop is None else loop.seen

    @property
    def bounds(self) -> frozenset[str]:
        """None: each value is read whole."""
        return frozenset()

    def plan(self, found: PlanInput) -> IcebergPlan:
        """Fix the rows of the next value that a run reads; see `IcebergSource.plan`."""
        before = None if found.position is None else IcebergPosition.decode(found.position)
        left = None if before is None else before.parts
        if left is not None and left.column != self._column:
            raise left.refused(self._label, f"per={self._column!r}")
        if self._loop is not None and before is not None and left is not None and left.looked_by == self._execution:
            self._found = found.position
            whole = IcebergPlan(self.recipe, (), before, before)
            return self._next(self._look(), whole, before, dict(left.marks), self._loop)
        bare = None if before is None else replace(before, parts=None)
        table, whole = self._planned(replace(found, position=None if bare is None else bare.encode()))
        self._found = found.position
        end = whole.leads_to or IcebergPosition(None)
        marks = {} if left is None or whole.after is None else self._on_line(table, left.marks)
        for value, mark in self._news(table, whole).items():
            marks.setdefault(value, mark)
        check_not_too_many(self._label, self._column, marks, "new rows")
        if self._loop is not None:
            return self._next(table, whole, end, marks, self._loop)
        return self._all(table, whole, end, marks)

    # ---- the look

    def _news(self, table: SnapshotLog, whole: IcebergPlan) -> _Marks:
        """Return the values that have rows in a plan over all of them, with the position behind which these are."""
        found: _Marks = {}
        for piece in whole.pieces:
            if isinstance(piece, AppendedRows):
                start = whole.after
                if start is None or start.snapshot != piece.start:  # the table was rolled back
                    start = position_at(table.snapshots[piece.start])
                found |= dict.fromkeys(self._values_of(piece), start)
            elif isinstance(piece, WholeTable):
                found |= dict.fromkeys(self._values_of(piece))
        return found

    def _on_line(self, table: SnapshotLog, marks: Mapping[str | None, IcebergPosition | None]) -> _Marks:
        """Return marks; of a table that was rolled back below one, that where it went on."""
        found: _Marks = {}
        for value, mark in marks.items():
            at, fork = None if mark is None else mark.snapshot, None
            if at is not None and at in table.snapshots and table.since(at) is None:
                fork = table.forked_at(at)
            found[value] = mark if fork is None else position_at(table.snapshots[fork])
        return found

    def _values_of(self, piece: WholeTable | AppendedRows) -> Mapping[str | None, PartAmount]:
        if piece not in self._seen:
            self._seen[piece] = self._parts(piece)
        return self._seen[piece]

    def _piece(
        self, table: SnapshotLog, end: IcebergPosition, mark: IcebergPosition | None
    ) -> WholeTable | AppendedRows | None:
        """Return what reads the rows from a mark up to a position; None where there can be none.

        Raises:
            VersionGoneError: snapshots of these have expired.
        """
        if end.snapshot is None or (mark is not None and mark.snapshot == end.snapshot):
            return None
        if end.snapshot not in table.snapshots:
            raise self._gone(end)
        if mark is None or mark.snapshot is None:
            return WholeTable(end.snapshot)
        if not leads(table, mark.snapshot, end.snapshot):
            raise self._gone(mark)
        return AppendedRows(mark.snapshot, end.snapshot)

    # ---- what a set passes over

    def left_until(self, table: SnapshotLog, at: IcebergPosition, end: IcebergPosition) -> list[PartAmount]:
        """Return how much the values that a position has left have, each from its mark up to a snapshot.

        Args:
            end: where the table counts as read then: at the position, or at a snapshot before it.

        Raises:
            VersionGoneError: snapshots of these have expired.
        """
        marks = {} if at.parts is None or end.snapshot is None else at.parts.marks
        found = [
            self._of_value(table, replace(end, parts=None), value, mark)
            for value, mark in marks.items()
            if mark is None or mark.snapshot is None or table.since(end.snapshot or 0, mark.snapshot) is None
        ]
        return [each[1] for each in found if each is not None]

    # ---- the plans

    def _next(
        self, table: SnapshotLog, whole: IcebergPlan, end: IcebergPosition, marks: _Marks, loop: PartLoop
    ) -> IcebergPlan:
        """Return the plan of the first value that the loop has not taken on and that has rows, or one over nothing."""
        free = [value for value in in_order(marks) if PlanPart(self._column, value) not in loop.taken]
        pieces = {value: self._of_value(table, end, value, marks[value]) for value in free}
        while free:
            value = free.pop(0)
            mark, own = marks.pop(value), pieces[value]
            if own is not None:
                part = PlanPart(self._column, value)
                loop.take(part, is_last=not any(pieces[each] for each in free))
                plan = self._plan(whole, self._left(end, marks), [own])
                return replace(plan, part=part, after=mark)
        loop.take(None, is_last=True)
        return self._plan(whole, self._left(end, marks), [])

    def _all(self, table: SnapshotLog, whole: IcebergPlan, end: IcebergPosition, marks: _Marks) -> IcebergPlan:
        """Return the plan of all that the runs of a loop would read."""
        pieces = [self._of_value(table, end, value, marks[value]) for value in in_order(marks)]
        return self._plan(whole, end, [each for each in pieces if each is not None])

    def _of_value(
        self, table: SnapshotLog, end: IcebergPosition, value: str | None, mark: IcebergPosition | None
    ) -> tuple[WholeTable | AppendedRows, PartAmount] | None:
        """Return what reads the rows of a value from its mark on, and how many these are; None for none."""
        piece = self._piece(table, end, mark)
        amount = None if piece is None else self._values_of(piece).get(value)
        if piece is None or amount is None:
            return None
        return replace(piece, part=PlanPart(self._column, value)), amount

    def _plan(
        self,
        whole: IcebergPlan,
        leads_to: IcebergPosition,
        pieces: Iterable[tuple[WholeTable | AppendedRows, PartAmount]],
    ) -> IcebergPlan:
        read = list(pieces)
        return replace(
            whole,
            pieces=tuple(piece for piece, _ in read),
            leads_to=leads_to,
            files=sum(amount.files for _, amount in read),
            size_bytes=None if read else 0,
            rows=total([amount.rows for _, amount in read]),
        )

    def _left(self, end: IcebergPosition, marks: _Marks) -> IcebergPosition:
        parts = PartsLeft(self._column, self._execution, dict(marks)) if marks else None
        return replace(end, parts=parts)
