"""Look whether the upstream has undone or replayed what its consumer has read, and say what follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from airflow_bookmarks.core.errors import SourceMissingError, UpstreamReplayedError, UpstreamRewoundError
from airflow_bookmarks.core.position import lowest_replayed
from airflow_bookmarks.core.timeline import Ancestry, last_common_run
from airflow_bookmarks.sources.upstream.way_back import way_back

if TYPE_CHECKING:
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import UpstreamPosition
    from airflow_bookmarks.sources.upstream.job import UpstreamJob

OnRewind = Literal["fail", "rewind", "rewind_keep", "ignore"]


class RewindWanted(Exception):
    """Asks the lifecycle to take the consumer back, because its upstream went back to run `target` (no error).

    `keeps`: what the consumer's undone runs published stays where it is.
    """

    def __init__(self, upstream: str, target: int, *, keeps: bool = False) -> None:
        super().__init__(f"upstream {upstream!r} went back to run {target}")
        self.upstream, self.target, self.keeps = upstream, target, keeps


def check_rewound(job: UpstreamJob, before: UpstreamPosition, head: Head, on_rewind: OnRewind) -> None:
    """Look whether a run at or below the edge is undone or has a newer revision; if so, `on_rewind` decides.

    Where nothing of that is so, or it is to be ignored, the commit notes the new numbers. An edge above all that the
    upstream has made is never ignored: an older state of it was brought back, and its next runs would count as read.

    Raises:
        RewindWanted: the consumer is to go back along.
        UpstreamRewoundError, UpstreamReplayedError: a person is to decide.
    """
    is_above = before.epoch == head.epoch and before.run_number > head.run_number
    is_unchanged = (before.epoch, before.changes) == (head.epoch, head.changes)
    if not is_above and (is_unchanged or on_rewind == "ignore"):
        return
    target = head.run_number if is_above else None
    if before.epoch != head.epoch:
        lines = job.store.lines(job.name)
        target = last_common_run(before.epoch, head.epoch, before.run_number, lines)
    replayed = replayed_below(job, before) if before.changes != head.changes else None
    if target is None and replayed is None:
        return
    if on_rewind in ("rewind", "rewind_keep"):
        goals = [goal for goal in (target, None if replayed is None else replayed - 1) if goal is not None]
        raise RewindWanted(job.name, min(goals), keeps=on_rewind == "rewind_keep")
    if target is not None:
        raise _rewound(job, before, target)
    number = replayed or 0
    way = way_back(job.store, job.consumer, job.name, max(number - 1, 0))
    raise UpstreamReplayedError(job.consumer, job.name, before.run_number, number, way)


def replayed_below(job: UpstreamJob, before: UpstreamPosition) -> int | None:
    """Return the lowest consumed run that was replayed since it was read."""
    run = lowest_replayed(job.store.runs(job.name, until=before.run_number), before.changes)
    return None if run is None else run.key.number


def living_until(
    job: UpstreamJob, until: int | None, before: UpstreamPosition, head: Head, on_rewind: OnRewind
) -> int | None:
    """Return the run up to which is to be read: `until`, or None where that is undone and the rewind does not fail.

    Raises:
        SourceMissingError: that run is not published.
        UpstreamRewoundError: it is undone, and `on_rewind` says to fail.
    """
    if until is None or until <= before.run_number:
        return until
    run = job.store.committed_run(job.name, until)
    if run is None or until > head.published:
        raise SourceMissingError(
            f"job {job.consumer!r} is to read upstream {job.name!r} up to run {until}, and that has published up to "
            f"run {head.published}. Nothing was read or changed. Give the run that the upstream reports."
        )
    lines = job.store.lines(job.name)
    if Ancestry.of(head.epoch, lines).has(run):
        return until
    target = last_common_run(run.epoch, head.epoch, until, lines) or 0
    if on_rewind == "fail":
        raise _rewound(job, before, target)
    return None  # what is published now is all that can be read


def _rewound(job: UpstreamJob, before: UpstreamPosition, target: int) -> UpstreamRewoundError:
    way = way_back(job.store, job.consumer, job.name, target)
    return UpstreamRewoundError(job.consumer, job.name, before.run_number, target, way)
