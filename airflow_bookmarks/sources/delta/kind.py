"""The kind of source that reads Delta tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.commit import key_of
from airflow_bookmarks.sources.delta.excerpt import path_of
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.partitions import DeltaPartitionsSource
from airflow_bookmarks.sources.delta.position import Added, DeltaPlan, DeltaPosition, Whole, united
from airflow_bookmarks.sources.delta.snapshot import snapshot_at
from airflow_bookmarks.sources.delta.source import KIND, DeltaSource
from airflow_bookmarks.sources.delta.window import added_by, bytes_of, total_rows
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.passed_over import PassedOver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.sources.delta.commit import Action
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class DeltaKind(SourceKind[DeltaPlan]):
    """Delta tables: progress is the version up to which a table was read."""

    name: ClassVar[str] = KIND
    order: ClassVar[Order | None] = NUMBER
    is_totally_ordered: ClassVar[bool] = True
    keeps_elsewhere: ClassVar[bool] = True  # a table that moved is known again by its commits

    def decode(self, body: bytes) -> DeltaPlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return DeltaPlan.decode(body)

    def advance(self, plan: DeltaPlan, found: PlanInput) -> Position | None:
        """Return the position behind a stored plan; see `SourceKind.advance`."""
        return plan.position_from(found.position)

    def knows(self, found: PlanInput, plan: DeltaPlan) -> bool:
        """Whether the position lies behind where a plan begins; see `SourceKind.knows`."""
        if found.position is None or plan.is_empty or plan.leads_to is None:
            return False
        before = DeltaPosition.decode(found.position)
        if plan.part is not None:
            is_left = before.parts is not None and plan.part.value in before.parts.marks
            return before.version >= plan.leads_to.version and not is_left
        if before.state.id != plan.leads_to.state.id:
            return False
        first = plan.pieces[0]
        if isinstance(first, Whole):
            return True
        if isinstance(first, Added) and first.start is not None:  # a part of a first read
            return before.files_read is None or before.version != first.version or before.files_read > first.start
        return plan.after is None or before.version > plan.after

    def union(self, plans: Sequence[DeltaPlan]) -> DeltaPlan:
        """Return one plan that reads what some have read, piece by piece; see `SourceKind.union`."""
        return united(plans)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> DeltaSource:
        """Return the source of the recorded table; see `SourceKind.source_of`."""
        plan = self.decode(store.blobs.get(entry.body))
        kind = DeltaSource if plan.recipe.options.per is None else DeltaPartitionsSource
        return kind(plan.recipe, f"job {job!r}", arrow(), job=job)

    def part_of(self, plan: DeltaPlan) -> PlanPart | None:
        """Return the value whose files a plan reads; see `SourceKind.part_of`."""
        return plan.part

    def parts_left(self, position: bytes, execution: str) -> Sequence[PlanPart]:
        """Return the values that an execution has left; see `SourceKind.parts_left`."""
        left = DeltaPosition.decode(position).parts
        if left is None or left.looked_by != execution:
            return ()
        return [PlanPart(left.column, value) for value in left.marks]

    def reached(self, stats: Mapping[str, Any]) -> str | None:
        """Return the version; see `SourceKind.reached`."""
        until = stats.get("version_until")
        return None if until is None else f"version {until}"

    def page(self, body: bytes, offset: int, limit: int) -> tuple[int, Listing] | None:
        """Return the data files that a plan names; None where it names versions alone. See `SourceKind.page`."""
        plan = DeltaPlan.decode(body)
        found: list[Action] = []
        for piece in plan.pieces:
            if not isinstance(piece, Added):
                return None
            found += piece.files
        files = [_file_info(file, plan.recipe.path) for file in found[offset : offset + limit]]
        return len(found), Listing.of(files)

    def roots_of(self, source: SourceRef) -> Sequence[str]:
        """Return the folder of the table; see `SourceKind.roots_of`."""
        return (source.name,)

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the version; see `SourceKind.watermark`."""
        return DeltaPosition.decode(position).position().watermark

    def locations(self, plan: DeltaPlan, source: SourceRef) -> Sequence[str]:
        """Return the folder of the table; see `SourceKind.locations`."""
        return (source.name,)

    def seek(self, store: BookmarkStore, found: PlanInput, plan: DeltaPlan, value: str) -> Position:
        """Return the position at a version, at the last one before a time, or at the latest ("now"); see `SourceKind`.

        Raises:
            OptionError: the value is none of these, or the log does not know such a version.
            SourceError: the log can't be read.
        """
        table = DeltaLog.open(plan.recipe.path)
        version = _version_at(table, value)
        if not table.has(version):
            raise OptionError(
                f"{value}: the log of the Delta table {plan.recipe.name!r} has the versions {table.oldest} to "
                f"{table.latest}, not {version}. Nothing was changed. Name one of these; or reset the context, and the "
                "next run reads the table whole."
            )
        state = snapshot_at(table, version, arrow()).state
        return DeltaPosition(version, table.fingerprint(version), state).position()

    def passed_over(
        self, store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
    ) -> PassedOver:
        """Return the files that the commits between two positions have added; see `SourceKind.passed_over`."""
        source = self.source_of(store, job, entry)
        recipe, table = source.recipe, DeltaLog.open(source.recipe.path)
        at = None if before.position is None else DeltaPosition.decode(before.position)
        end = self._version_of(after)
        if at is None or at.parts is None:
            left = _left_of_first_read(table, at, end)
        elif isinstance(source, DeltaPartitionsSource) and recipe.options.per == at.parts.column:
            left = source.left_until(table, at, end)
        else:
            raise at.parts.refused(f"job {job!r}", "no per= of that column")
        commits: list[tuple[Action, ...]] = []
        if at is not None and end > at.version:
            _check_same(table, recipe.name, at)
            commits = added_by(table.commits(at.version + 1, end), at.state.id, recipe.options)
        files = [*left, *(file for each in commits for file in each)]
        rows = None if recipe.options.changes and commits else total_rows(files)  # a feed has a row as it was, too
        return PassedOver(Amount(FILES, len(files), bytes_of(files), rows), commits=Amount("versions", len(commits)))

    def _version_of(self, found: PlanInput) -> int:
        if found.position is None:
            raise SourceError("the position has no version. Nothing was read or changed.")
        return DeltaPosition.decode(found.position).version


def _left_of_first_read(table: DeltaLog, before: DeltaPosition | None, end: int) -> Sequence[Action]:
    """Return the files of a version that count as read with it, and that a first read has not come to."""
    if before is None:
        return snapshot_at(table, end, arrow()).files
    if before.files_read is None:
        return ()
    left = snapshot_at(table, before.version, arrow()).files[before.files_read :]
    if end >= before.version:
        return left
    there = {key_of(file) for file in snapshot_at(table, end, arrow()).files}
    return [file for file in left if key_of(file) in there]


def _check_same(table: DeltaLog, name: str, before: DeltaPosition) -> None:
    """Make sure that a position is of the table that is there.

    Raises:
        SourceError: it is another one.
    """
    if table.has(before.version) and table.fingerprint(before.version) != before.fingerprint:
        raise SourceError(
            f"the Delta table {name!r} was replaced by another one since version {before.version}, so how much of it "
            "was read is not known. Nothing was read or changed."
        )


def _file_info(file: Action, table: str) -> FileInfo:
    return FileInfo(path_of(file, table)[0], int(file["size"]), int(file["modificationTime"]))


def _version_at(table: DeltaLog, value: str) -> int:
    if value == "now":
        return table.latest
    if value.isascii() and value.isdigit():
        return int(value)
    try:
        time = Start.of(value).time
    except OptionError:
        time = None
    if time is None:
        raise OptionError(
            f"{value!r} is neither 'now' nor a version such as 12 nor a time such as 2013-01-31T00:00:00Z. A context "
            "of a Delta table can be set to these. Nothing was changed."
        )
    version = table.last_before(time)
    if version is None:
        raise OptionError(
            f"{value}: the log of the Delta table {table.table!r} has no version before that time. Nothing was "
            "changed. Reset the context, and the next run reads the table whole."
        )
    return version
