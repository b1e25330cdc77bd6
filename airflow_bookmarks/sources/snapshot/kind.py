"""The kind of source that compares snapshots of a table."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.snapshot.position import SnapshotPlan, SnapshotPosition
from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts
from airflow_bookmarks.sources.snapshot.source import KIND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import SourceRef
    from airflow_bookmarks.sources.source import PlanInput


class SnapshotKind(SourceKind[SnapshotPlan]):
    """Tables that are compared whole: progress is the last snapshot.

    Whether one has changed is known when Spark has read it, so nothing can be said without its script; and a position
    can't be set, because there is no other snapshot to go to.
    """

    name: ClassVar[str] = KIND
    order: ClassVar[Order] = TIME

    def decode(self, body: bytes) -> SnapshotPlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return SnapshotPlan.decode(body)

    def advance(self, plan: SnapshotPlan, found: PlanInput) -> Position | None:
        """Return the position at the later snapshot of a stored plan; see `SourceKind.advance`."""
        return plan.position_from(found.position)

    def knows(self, found: PlanInput, plan: SnapshotPlan) -> bool:
        """Whether the position is at a snapshot no older than the later one of a plan; see `SourceKind.knows`."""
        if found.position is None or plan.is_empty or plan.after is None:
            return False
        return SnapshotPosition.decode(found.position).snapshot.name >= plan.after.name

    def union(self, plans: Sequence[SnapshotPlan]) -> SnapshotPlan:
        """Return one plan from the first snapshot to the last: a row that came and went is not in it.

        Raises:
            OptionError: between the runs the table was read from its beginning.
        """
        moving = [plan for plan in plans if plan.after != plan.before]
        if not moving:
            last = plans[-1] if plans else SnapshotPlan(None, None, None)
            return SnapshotPlan(last.before, last.leads_to, ChangeCounts())
        for one, other in itertools.pairwise(moving):
            if one.after != other.before:
                raise OptionError(
                    "between these runs the context was reset, so that no two snapshots cover what they have read. "
                    "Nothing was read or changed. Name runs between which it was not."
                )
        counts = moving[0].counts if len(moving) == 1 else None
        return SnapshotPlan(moving[0].before, moving[-1].leads_to, counts)

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the time of the snapshot; see `SourceKind.watermark`."""
        return SnapshotPosition.decode(position).snapshot.taken_at

    def locations(self, plan: SnapshotPlan, source: SourceRef) -> Sequence[str]:
        """Return database and table; see `SourceKind.locations`."""
        return (source.name,)
