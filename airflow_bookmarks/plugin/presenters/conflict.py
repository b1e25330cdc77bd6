"""Present a conflict: how a job differs from the version that a user saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import Run, watermarks
from airflow_bookmarks.lifecycle.inspect.runs import row
from airflow_bookmarks.plugin.presenters.bookmark import event_row, run_row
from airflow_bookmarks.plugin.schemas.refusal import Difference, Seen

if TYPE_CHECKING:
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.plugin.schemas.responses import Watermarks
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_LOOKED_AT = 200  # runs; who saw a version that is older than these looks at the whole page again


def difference(store: BookmarkStore, job: str, seen: int) -> Difference:
    """Return what happened to a job since its version `seen`: runs, changes, and the watermarks then and now.

    Raises:
        JobUnknownError: it is gone.
    """
    head = store.head(job)
    runs, seen_run = _runs_since(store, job, seen)
    events = [event for event in store.events(job) if _version_before(event) >= seen]
    now = watermarks(head.contexts)
    # Sharing moves no version.
    then = now if seen == head.version else _watermarks_at(seen, seen_run, events)
    living = store.ancestry(job, head.epoch)
    return Difference(
        version_seen=seen,
        version_now=head.version,
        epoch_now=head.epoch,
        run_number_now=head.run_number,
        runs=[run_row(row(run, living)) for run in runs],
        events=[event_row(event) for event in reversed(events)],
        watermarks={ctx: Seen(seen=then.get(ctx), now=now.get(ctx)) for ctx in sorted({*then, *now})},
    )


def _runs_since(store: BookmarkStore, job: str, seen: int) -> tuple[list[Run], Run | None]:
    """Return the runs that committed after a version, newest first, and the one that made it, if a run did."""
    since: list[Run] = []
    for _, run in store.runs_or_damage(job, reverse=True, limit=_LOOKED_AT):
        if not isinstance(run, Run) or run.version is None or not run.state.is_committed:
            continue
        if run.version <= seen:
            return since, run if run.version == seen else None
        since.append(run)
    return since, None


def _watermarks_at(seen: int, seen_run: Run | None, events: list[AuditEvent]) -> Watermarks:
    """Return the watermarks of a version: of the run that made it, or those recorded by the change that ended it."""
    if seen_run is not None:
        return watermarks(seen_run.contexts)
    kept = (event.get("watermarks_before") for event in events if _version_before(event) == seen)
    return next((before for before in kept if isinstance(before, dict)), {})  # type: ignore[misc]


def _version_before(event: AuditEvent) -> int:
    version = event.get("version_before")
    return version if isinstance(version, int) else -1
