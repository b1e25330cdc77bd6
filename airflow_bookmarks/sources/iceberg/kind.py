"""The kind of source that reads Iceberg tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.sources.iceberg.look import PyIcebergTable, look
from airflow_bookmarks.sources.iceberg.partitions import IcebergPartitionsSource, PartAmount
from airflow_bookmarks.sources.iceberg.position import IcebergPlan, IcebergPosition, WholeTable, united
from airflow_bookmarks.sources.iceberg.source import KIND, IcebergSource, position_at
from airflow_bookmarks.sources.iceberg.window import added_by, bytes_of, files_of
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.passed_over import PassedOver
from airflow_bookmarks.sources.tables.versioned import total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class IcebergKind(SourceKind[IcebergPlan]):
    """Iceberg tables: progress is the snapshot up to which a table was read, shown by the time of its commit."""

    name: ClassVar[str] = KIND
    order: ClassVar[Order | None] = TIME

    def decode(self, body: bytes) -> IcebergPlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return IcebergPlan.decode(body)

    def advance(self, plan: IcebergPlan, found: PlanInput) -> Position | None:
        """Return the position behind a stored plan; see `SourceKind.advance`."""
        return plan.position_from(found.position)

    def knows(self, found: PlanInput, plan: IcebergPlan) -> bool:
        """Whether the position lies behind where a plan begins; see `SourceKind.knows`.

        Snapshots are in order by the time of their commits.
        """
        if found.position is None or plan.is_empty or plan.leads_to is None:
            return False
        before = IcebergPosition.decode(found.position)
        if before.snapshot is None:
            return False
        if plan.part is not None:
            is_left = before.parts is not None and plan.part.value in before.parts.marks
            return before.time_ms >= plan.leads_to.time_ms and not is_left
        return isinstance(plan.pieces[0], WholeTable) or plan.after is None or before.time_ms > plan.after.time_ms

    def union(self, plans: Sequence[IcebergPlan]) -> IcebergPlan:
        """Return one plan that reads what some have read, piece by piece; see `SourceKind.union`."""
        return united(plans)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> IcebergSource:
        """Return the source of the recorded table, looked at by pyiceberg; see `SourceKind.source_of`."""
        recipe = self.decode(store.blobs.get(entry.body)).recipe
        if recipe.options.per is None:
            return IcebergSource(recipe, f"job {job!r}", lambda: look(recipe), job=job)
        table = PyIcebergTable(recipe.name, recipe.location)
        parts = partial(table.parts, recipe.options.per)
        return IcebergPartitionsSource(recipe, f"job {job!r}", table.log, job=job, parts=parts)

    def part_of(self, plan: IcebergPlan) -> PlanPart | None:
        """Return the value whose rows a plan reads; see `SourceKind.part_of`."""
        return plan.part

    def parts_left(self, position: bytes, execution: str) -> Sequence[PlanPart]:
        """Return the values that an execution has left; see `SourceKind.parts_left`."""
        left = IcebergPosition.decode(position).parts
        if left is None or left.looked_by != execution:
            return ()
        return [PlanPart(left.column, value) for value in left.marks]

    def reached(self, stats: Mapping[str, Any]) -> str | None:
        """Return the snapshot; see `SourceKind.reached`."""
        until = stats.get("snapshot_until")
        return None if until is None else f"snapshot {until}"

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the time of the snapshot; see `SourceKind.watermark`."""
        return IcebergPosition.decode(position).position().watermark

    def locations(self, plan: IcebergPlan, source: SourceRef) -> Sequence[str]:
        """Return the folder of the table; see `SourceKind.locations`."""
        return (plan.recipe.location,)

    def seek(self, store: BookmarkStore, found: PlanInput, plan: IcebergPlan, value: str) -> Position:
        """Return the position at a snapshot, at the last one before a time, or at the latest ("now").

        Raises:
            OptionError: the value is none of these, or the table keeps no such snapshot.
            SourceError: the table can't be looked at.
        """
        snapshot = _snapshot_at(look(plan.recipe), plan.recipe.name, value)
        return position_at(snapshot).position()

    def passed_over(
        self, store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
    ) -> PassedOver:
        """Return the files that the snapshots between two positions have added; see `SourceKind.passed_over`."""
        source = self.source_of(store, job, entry)
        recipe = source.recipe
        at = IcebergPosition(None) if before.position is None else IcebergPosition.decode(before.position)
        end = IcebergPosition(None) if after.position is None else IcebergPosition.decode(after.position)
        if end.snapshot is None:
            return PassedOver(Amount(FILES, 0, 0, 0), commits=Amount("snapshots", 0))
        table = look(recipe)
        if at.snapshot is None:
            return _all_of(table.snapshots[end.snapshot])
        between = _between(table, recipe.name, at.snapshot, end.snapshot)
        left: Sequence[PartAmount] = ()
        if isinstance(source, IcebergPartitionsSource) and at.parts is not None:
            left = source.left_until(table, at, at if between else end)
        elif at.parts is not None:
            raise at.parts.refused(f"job {job!r}", "no per= of that column")
        added = added_by(between, recipe.options)
        sizes = bytes_of(added)
        # Of changes each row that was updated is read as it was, too.
        rows = None if recipe.options.changes else total([each.told("added-records") for each in added])
        files = files_of(added)
        amount = Amount(
            FILES,
            None if files is None else files + sum(part.files for part in left),
            None if left else sizes,
            None if rows is None else rows + sum(part.rows for part in left),
        )
        return PassedOver(amount, commits=Amount("snapshots", len(added)))


def _all_of(snapshot: TableSnapshotInfo) -> PassedOver:
    """Return what a table has as of a snapshot, of which nothing was read."""
    has_deletes = snapshot.count("total-position-deletes") or snapshot.count("total-equality-deletes")
    rows = None if has_deletes else snapshot.told("total-records")
    return PassedOver(Amount(FILES, snapshot.told("total-data-files"), snapshot.told("total-files-size"), rows))


def _between(table: SnapshotLog, name: str, start: int, end: int) -> Sequence[TableSnapshotInfo]:
    """Return the snapshots that count as read at one of them and not at another; none where it lies before that.

    Raises:
        SourceError: some of them have expired.
    """
    found = table.since(start, end)
    if found is None and start in table.snapshots:
        if table.since(end, start) is not None:
            return ()  # it goes back
        fork = table.forked_at(start)  # the table was rolled back since it was read
        found = None if fork is None else table.since(fork, end)
    if found is None:
        raise SourceError(
            f"snapshots of the Iceberg table {name!r} between {start} and {end} have expired. Nothing was read or "
            "changed."
        )
    return found


def _snapshot_at(table: SnapshotLog, name: str, value: str) -> TableSnapshotInfo | None:
    if value == "now":
        return table.newest
    if value.isascii() and value.isdigit():
        found = next((each for each in table.line(table.current) if each.id == int(value)), None)
        if found is None:
            raise OptionError(
                f"{value}: the Iceberg table {name!r} has no such snapshot on the way to its current one. Nothing was "
                "changed. Name one of these; or reset the context, and the next run reads the table whole."
            )
        return found
    try:
        time = Start.of(value).time
    except OptionError:
        time = None
    if time is None:
        raise OptionError(
            f"{value!r} is neither 'now' nor the id of a snapshot nor a time such as 2013-01-31T00:00:00Z. A context "
            "of an Iceberg table can be set to these. Nothing was changed."
        )
    found = table.last_before(time.timestamp() * 1000)
    if found is None:
        raise OptionError(
            f"{value}: the Iceberg table {name!r} keeps no snapshot from before that time. Nothing was changed. Reset "
            "the context, and the next run reads the table whole."
        )
    return found
