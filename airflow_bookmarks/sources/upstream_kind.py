"""The kind of source that reads what another job has published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.plan import FilePlan, UpstreamPlan, union
from airflow_bookmarks.sources.kind import Kind
from airflow_bookmarks.sources.seek import upstream_at
from airflow_bookmarks.sources.upstream import UpstreamSource, advance_upstream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader


class UpstreamKind(Kind[FilePlan]):
    """Other jobs: progress is the number of the last published run that was read."""

    name = UpstreamSource.kind

    def decode(self, body: bytes) -> UpstreamPlan:
        """Return a stored plan; see `Kind.decode`."""
        return UpstreamPlan.decode(body)

    def advance(self, plan: FilePlan, found: PlanInput) -> Position | None:
        """Return the position after the window of a stored plan; see `Kind.advance`."""
        return advance_upstream(plan, found)

    def union(self, plans: Sequence[FilePlan]) -> FilePlan:
        """Return one plan that reads what `plans` read, as of the window of the last; see `Kind.union`."""
        window = plans[-1].edge if plans else None
        return union(plans) if window is None else UpstreamPlan.of(union(plans), window)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
        """Return the source of the recorded job and output; see `Kind.source_of`."""
        window = entry.facts["upstream"]
        return UpstreamSource(store, job, window["job"], output=window["output"] or None)

    def seek(self, store: StateReader, found: PlanInput, plan: FilePlan, value: str) -> Position:
        """Return the position at "now" or at a run of the upstream; see `upstream_at`."""
        return upstream_at(store, found, plan, value)
