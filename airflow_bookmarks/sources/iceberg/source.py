"""Iceberg tables as a source. What is new is told by the snapshots of the table, without Spark."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceError, SourceSwitchedError
from airflow_bookmarks.core.run import SourceRef
from airflow_bookmarks.core.selection.reason import BEFORE_START, OVER_BOUND
from airflow_bookmarks.sources.iceberg.position import (
    AppendedRows,
    ChangedRows,
    IcebergPlan,
    IcebergPosition,
    IcebergRecipe,
    TablePiece,
    WholeTable,
)
from airflow_bookmarks.sources.iceberg.window import SnapshotWindow, bytes_of, files_of, window_of
from airflow_bookmarks.sources.source import PlanInput, Recheck
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, total

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
    from airflow_bookmarks.sources.source import OnSourceChange

log = logging.getLogger(__name__)

KIND = "iceberg"


class IcebergSource:
    """What is new in one Iceberg table.

    Args:
        recipe: the table, and how it is read.
        label: what messages begin with.
        look: returns the snapshots of the table as they are now.
        on_source_change: what to do where the table is another one than before, under the same name.
        job: the name of the job, and `ctx` of its context, for messages.
    """

    kind = KIND
    format: str | None = None

    def __init__(
        self,
        recipe: IcebergRecipe,
        label: str,
        look: Callable[[], SnapshotLog],
        on_source_change: OnSourceChange = "error",
        job: str = "",
        ctx: str = "",
    ) -> None:
        self.recipe, self._label, self._look = recipe, label, look
        self._on_source_change, self._job, self._ctx = on_source_change, job, ctx
        self._found: bytes | None = None

    def ref(self) -> SourceRef:
        """Return the full name of the table; see `Source.ref`."""
        return SourceRef(self.kind, self.recipe.name)

    def plan(self, found: PlanInput) -> IcebergPlan:
        """Fix the snapshots that a run reads; see `Source.plan`.

        Raises:
            SourceSwitchedError: it is another table than that of the position. RowsChangedError: rows were changed
                since, and appends are read. VersionGoneError: snapshots since have expired.
            SourceMissingError: there is no table.
        """
        before = None if found.position is None else IcebergPosition.decode(found.position)
        if before is not None and before.parts is not None:
            raise before.parts.refused(self._label, "no per=")
        _, plan = self._planned(found)
        self._found = found.position
        return plan

    def _planned(self, found: PlanInput) -> tuple[SnapshotLog, IcebergPlan]:
        """Return the snapshots of the table, and a plan over all that is new in it."""
        table = self._look()
        before = None if found.position is None else IcebergPosition.decode(found.position)
        if before is None and not found.start.is_beginning:
            return table, self._from_start(table, found)
        if before is None or before.snapshot is None or not self._is_same(table, before.snapshot):
            return table, self._from_beginning(table)
        return table, self._since(table, before, before.snapshot)

    # ---- the table whole

    def _from_beginning(self, table: SnapshotLog) -> IcebergPlan:
        """Return a plan over the table as it is; within a bound as it was when so much had been appended.

        Where snapshots have expired, or have changed rows, there is no such time, and a first read is whole.
        """
        line = list(table.line(table.current))[::-1]
        if table.has_all_since_the_first() and not any(each.changes_rows for each in line):
            window = window_of(line, self.recipe.options)
            if window.has_more:
                plan = self._whole(window.snapshots[-1])
                return replace(plan, skipped=_over_bound(window), has_more=True)
        return self._whole(table.newest)

    def _whole(self, snapshot: TableSnapshotInfo | None) -> IcebergPlan:
        if snapshot is None:
            return IcebergPlan(self.recipe, (), position_at(None))
        deletes = snapshot.count("total-position-deletes")
        rows = None if snapshot.count("total-equality-deletes") else snapshot.told("total-records")
        return IcebergPlan(
            self.recipe,
            () if snapshot.told("total-data-files") == 0 else (WholeTable(snapshot.id),),
            position_at(snapshot),
            None,
            snapshot.told("total-data-files"),
            snapshot.told("total-files-size"),
            None if rows is None else rows - deletes,
        )

    def _from_start(self, table: SnapshotLog, found: PlanInput) -> IcebergPlan:
        """Return a plan over what came behind a start: the table as it was then counts as read."""
        time = found.start.time
        before = table.newest if time is None else table.last_before(_ms(time))
        if before is None:
            if not table.has_all_since_the_first():
                raise SourceError(
                    f"{self._label}: start={found.start.text!r}, and the snapshots of the Iceberg table "
                    f"{self.recipe.name!r} that are kept are all later. Nothing was read or changed. Begin at "
                    "'beginning', 'now' or at a later time."
                )
            return self._from_beginning(table)
        plan = self._since(table, position_at(before), before.id)
        files = before.count("total-data-files")
        return replace(plan, skipped={**plan.skipped, **({BEFORE_START: files} if files else {})})

    # ---- what came since a snapshot

    def _since(self, table: SnapshotLog, before: IcebergPosition, start: int) -> IcebergPlan:
        snapshots, change, is_rollback = table.since(start), "", False
        if snapshots is None and start in table.snapshots:
            snapshots, start, change = self._rolled_back(table, start)
            is_rollback = bool(change)
        if snapshots is None:
            return self._expired(table, before)
        window = window_of(snapshots, self.recipe.options)
        if window.change is not None and not change:
            change = window.change.in_words()
        on_change = self.recipe.options.on_change
        if change and on_change == "error":
            raise self._changed(change, window, start, is_rollback=is_rollback)
        if change and on_change == "reload":
            log.warning("%s: %s of the Iceberg table %r changed rows: the table is read anew.", *self._of(change))
            return self._anew(table, before)
        if change:
            # Who only looks is told by the counts.
            level = logging.WARNING if self._ctx else logging.DEBUG
            log.log(
                level, "%s: %s of the Iceberg table %r changed rows, which on_change='ignore' leaves out.",
                *self._of(change),
            )  # fmt: skip
        if not window.snapshots:
            end = before if start == before.snapshot else position_at(table.snapshots[start])
            return IcebergPlan(self.recipe, (), end, before)
        return self._windowed(before, start, window)

    def _windowed(self, before: IcebergPosition, start: int, window: SnapshotWindow) -> IcebergPlan:
        end, changes = window.snapshots[-1], self.recipe.options.changes
        if changes:
            self._check_changes(window.reads)
        piece: TablePiece = ChangedRows(start, end.id) if changes else AppendedRows(start, end.id)
        return IcebergPlan(
            self.recipe,
            (piece,) if window.reads else (),
            position_at(end),
            before,
            files_of(window.reads),
            bytes_of(window.reads),
            None if changes else total([each.told("added-records") for each in window.reads]),
            {**window.skipped, **_over_bound(window)},
            has_more=window.has_more,
        )

    def _rolled_back(
        self, table: SnapshotLog, start: int
    ) -> tuple[list[TableSnapshotInfo] | None, int, str]:  # fmt: skip
        """Return what is behind the snapshot at which a table that was rolled back leaves what was read; and say it."""
        fork = table.forked_at(start)
        if fork is None:
            return None, start, ""
        if self.recipe.options.changes:
            raise SourceError(
                f"{self._label}: the Iceberg table {self.recipe.name!r} was rolled back to snapshot {fork}, which lies "
                f"below the position {start}, and no change feed tells which rows went. Nothing was read or changed. "
                f"Set the context to {fork}, which counts what went as read; or reset it, and the next run reads the "
                "table whole."
            )
        said = f"a rollback to snapshot {fork} (below the position {start}: rows that were read are gone)"
        return table.since(fork), fork, said

    def _expired(self, table: SnapshotLog, before: IcebergPosition) -> IcebergPlan:
        if self.recipe.options.on_change == "reload":
            log.warning("%s: snapshots behind %s have expired: the table is read anew.", self._label, before)
            return self._anew(table, before)
        raise self._gone(before)

    def _gone(self, before: IcebergPosition) -> VersionGoneError:
        return VersionGoneError(
            f"{self._label}: snapshots of the Iceberg table {self.recipe.name!r} behind {before}, up to which it was "
            "read, have expired. Nothing was read or changed. Reset the context, which then reads the table whole; or "
            "read with on_change='reload', which does so by itself. Let the job run more often than snapshots expire "
            "(history.expire.max-snapshot-age-ms, or who calls expire_snapshots), or tag what is still to be read."
        )

    def _anew(self, table: SnapshotLog, before: IcebergPosition) -> IcebergPlan:
        plan = self._whole(table.newest)
        return replace(plan, after=before, read_again=plan.files or 0, is_anew=True)

    def _of(self, change: str) -> tuple[str, str, str]:
        return self._label, change, self.recipe.name

    def _changed(self, change: str, window: SnapshotWindow, start: int, *, is_rollback: bool) -> RowsChangedError:
        did = "" if window.change is None else f" ({window.change.files_in_words()})"
        to = start if window.change is None else window.change.id
        # No feed tells which rows a rollback took away.
        first = "Read with" if is_rollback else "Read the changes (changes=True); or with"
        return RowsChangedError(
            f"{self._label}: {change} of the Iceberg table {self.recipe.name!r} changed rows{did}, and what is read "
            f"are appends. Nothing was read or changed. {first} on_change='ignore' only what was appended, with "
            f"on_change='reload' the whole table anew; or set the context to {to}, which counts this as read."
        )

    def _check_changes(self, snapshots: Sequence[TableSnapshotInfo]) -> None:
        """Make sure that Iceberg can tell what snapshots have changed.

        Raises:
            SourceError: one marks rows as deleted without writing their files anew, which its change feed can't read.
        """
        marked = next((each for each in snapshots if each.count("added-delete-files")), None)
        if marked is not None:
            raise SourceError(
                f"{self._label}: {marked.in_words()} of the Iceberg table {self.recipe.name!r} deletes rows by files "
                "of their own (merge-on-read), and Iceberg tells no changes of these. Nothing was read or changed. Let "
                "writers write files anew: ALTER TABLE ... SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write', "
                "'write.update.mode' = 'copy-on-write', 'write.merge.mode' = 'copy-on-write'); and set the context to "
                f"{marked.id}, which counts this snapshot as read, or reset it."
            )

    # ---- whether it is the same table

    def _is_same(self, table: SnapshotLog, snapshot: int) -> bool:
        """Whether a table is that of a position; False where it is another one, and the script says "reset".

        A table that has all its snapshots since the first, and not that of the position, was made anew: an id is a
        random number.

        Raises:
            SourceSwitchedError: it is another one.
        """
        if snapshot in table.snapshots or not table.has_all_since_the_first():
            return True
        if table.since(snapshot) is not None:
            return True
        if self._on_source_change == "reset":
            return False
        raise SourceSwitchedError(
            self._job,
            self._ctx,
            f"{self.ref()} (at snapshot {snapshot})",
            f"{self.ref()} (which never had that snapshot: it was dropped and made again)",
            keeps_elsewhere=False,
        )

    # ---- after it

    def advance(self, plan: IcebergPlan) -> Position | None:
        """Return the position behind a plan; see `Source.advance`."""
        return plan.position_from(self._found)

    def recheck(self, plan: IcebergPlan) -> Recheck:
        """Look whether the snapshots of a plan are still kept; see `Source.recheck`."""
        if plan.is_empty:
            return Recheck()
        gone = why_gone(self._look(), plan)
        return Recheck() if gone is None else Recheck(missing=(gone,), moved=gone)

    # ---- see `BoundedSource`

    @property
    def bounds(self) -> frozenset[str]:
        """Files and bytes."""
        return frozenset({"max_files", "max_bytes"})

    def bounded(self, bound: Bound) -> IcebergSource:
        """Return the same source that plans no more than `bound`."""
        recipe = replace(self.recipe, options=self.recipe.options.bounded(bound))
        return IcebergSource(recipe, self._label, self._look, self._on_source_change, self._job, self._ctx)


def _over_bound(window: SnapshotWindow) -> dict[str, int]:
    return {OVER_BOUND: window.left} if window.left else {}


def why_gone(table: SnapshotLog, plan: IcebergPlan) -> str | None:
    """Return why a plan can't be read any more; None if it can."""
    for piece in plan.pieces:
        if piece.needed not in table.snapshots:
            return f"snapshot {piece.needed} of the Iceberg table {plan.recipe.name!r} has expired"
        if not isinstance(piece, WholeTable) and not leads(table, piece.start, piece.end):
            return f"snapshots of the Iceberg table {plan.recipe.name!r} behind {piece.start} have expired"
    return None


def leads(table: SnapshotLog, start: int, end: int) -> bool:
    """Whether the snapshots behind one, up to another, are kept; the first one itself need not be."""
    return any(start in (each.id, each.parent) for each in table.line(end))


def position_at(snapshot: TableSnapshotInfo | None) -> IcebergPosition:
    """Return the position behind a snapshot; None: behind none."""
    return IcebergPosition(None) if snapshot is None else IcebergPosition(snapshot.id, snapshot.time_ms)


def _ms(time: datetime) -> float:
    return time.timestamp() * 1000
