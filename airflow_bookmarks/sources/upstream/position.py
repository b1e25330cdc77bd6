"""Where a consumer stands in the runs of its upstream, and where a plan leads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import JobUnknownError, MisuseError
from airflow_bookmarks.core.position import Position, UpstreamPosition
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.timeline import living_runs

if TYPE_CHECKING:
    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.rules.start import Start
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def position_at(store: BookmarkStore, upstream: str, start: Start) -> UpstreamPosition | None:
    """Return the position after the last run that `upstream` has published by then; None where that is no run."""
    try:
        head = store.head(upstream)
    except JobUnknownError:
        return None  # its source says so, with advice
    living = store.ancestry(upstream, head.epoch)
    last = 0
    for run in living_runs(store.runs(upstream, until=head.run_number), living):
        # By the commit: a replay publishes anew.
        is_later = start.time is not None and from_text(run.committed_at or run.planned_at) >= start.time
        if run.state is not RunState.PUBLISHED or is_later:
            break
        last = run.key.number
    return UpstreamPosition(upstream, "", last, head.epoch, head.changes) if last else None


def advance_upstream(plan: FilePlan, found: PlanInput) -> Position | None:
    """Return the position after a stored plan that started from `found`."""
    before = None if found.position is None else UpstreamPosition.decode(found.position)
    return position_after(before, plan)


def position_after(before: UpstreamPosition | None, plan: FilePlan) -> Position | None:
    """Return the position after the window of a plan; None where it is the one `before`."""
    window = plan.edge
    if window is None:
        raise MisuseError("the plan of an upstream context has no window")
    after = UpstreamPosition(window.job, window.output, window.until, window.epoch, window.changes)
    return None if after == before else Position(after.encode(), str(after.run_number))
