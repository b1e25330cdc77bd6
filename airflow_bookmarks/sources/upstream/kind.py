"""The kind of source that reads what another job has published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan, UpstreamPlan, union
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.sources.named_files import NamedFilesKind
from airflow_bookmarks.sources.seek import upstream_at
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.position import advance_upstream, position_at
from airflow_bookmarks.sources.upstream.source import UpstreamSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.sources.kind import SetBy
    from airflow_bookmarks.sources.source import Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class UpstreamKind(NamedFilesKind):
    """Other jobs: progress is the number of the last published run that was read."""

    name = UpstreamSource.kind
    reads_jobs = True
    order = NUMBER

    def decode(self, body: bytes) -> UpstreamPlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return UpstreamPlan.decode(body)

    def advance(self, plan: FilePlan, found: PlanInput) -> Position | None:
        """Return the position after the window of a stored plan; see `SourceKind.advance`."""
        return advance_upstream(plan, found)

    def knows(self, found: PlanInput, plan: FilePlan) -> bool:
        """Whether the position is beyond where the window of a plan begins; see `SourceKind.knows`."""
        if found.position is None or plan.edge is None:
            return False
        return min(self.consumed(found.position).run_number, plan.edge.until) > plan.edge.after

    def union(self, plans: Sequence[FilePlan]) -> FilePlan:
        """Return one plan that reads what `plans` read; see `SourceKind.union`.

        Its window is the one that ends last, since a set may have led back between the plans: by it the runs are found
        that wrote the files.
        """
        windows = [plan.edge for plan in reversed(plans) if plan.edge is not None]
        window = max(windows, key=lambda each: each.until, default=None)
        return union(plans) if window is None else UpstreamPlan.of(union(plans), window)

    def begin(self, store: BookmarkStore, source: SourceRef, start: Start) -> PlanInput:
        """Begin after the last run that the upstream has published by then; see `SourceKind.begin`."""
        if start.is_beginning:
            return PlanInput(start=start)
        position = position_at(store, self.upstream_of(source), start)
        return PlanInput() if position is None else PlanInput(position.encode())

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source[FilePlan]:
        """Return the source of the recorded job and output; see `SourceKind.source_of`."""
        window = entry.metadata.upstream
        if window is None:
            raise StateCorruptError(
                f"job {job!r}: a stored plan of an upstream does not say which job it reads. Nothing was changed."
            )
        return UpstreamSource(store, job, window.job, output=window.output or None)

    def upstream_of(self, source: SourceRef) -> str:
        """Return the job that is read, which names the source."""
        return source.name

    def consumed(self, position: bytes) -> UpstreamPosition:
        """Return up to which run the position has read; see `SourceKind.consumed`."""
        return UpstreamPosition.decode(position)

    def watermark(self, position: bytes, load: Load) -> str:
        """Return the number of the last run that was read; see `SourceKind.watermark`."""
        return str(self.consumed(position).run_number)

    @property
    def set_by(self) -> SetBy:
        """A run of the upstream; see `SourceKind.set_by`."""
        return "run"

    def seek(self, store: BookmarkStore, found: PlanInput, plan: FilePlan, value: str) -> Position:
        """Return the position at "now" or at a run of the upstream; see `upstream_at`."""
        return upstream_at(store, found, plan, value)
