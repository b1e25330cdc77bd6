"""How far a job goes back with what it reads: by what its runs have read of that, and not by where it stands alone.

A position that a person has set says nothing of the rows that earlier runs have published, nor does one to which the
job went back without a clean. So a job whose history was ever changed is looked at run by run, and one that only ever
went ahead by where it stands.
"""

from __future__ import annotations

from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.core.position import lowest_replayed
from airflow_bookmarks.core.timeline import last_common_run, living_runs
from airflow_bookmarks.lifecycle.history.rewind import input_put_away
from airflow_bookmarks.sources.upstream.way_back import highest_read, newest_at_or_below, only_a_reset_fits
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def still_shared(store: BookmarkStore, upstream: str, head: Head, edge: Edge) -> int | None:
    """Return the last run that a reader shares with its upstream; None: all that it has read.

    The upstream may have gone back, or a run of it may have been replayed, without the reader.
    """
    found: list[int] = []
    if head.epoch != edge.epoch:
        common = last_common_run(edge.epoch, head.epoch, edge.highest, store.lines(upstream))
        found += [] if common is None else [common]
    if head.changes != edge.changes:
        replayed = lowest_replayed(store.runs(upstream, until=edge.highest), edge.changes)
        found += [] if replayed is None else [replayed.key.number - 1]
    return min(found, default=None)


class ReaderHistory:
    """What the runs of a job have read of its upstreams."""

    def __init__(self, store: BookmarkStore, job: str, head: Head) -> None:
        self._store, self._job, self._head = store, job, head

    @property
    def _only_went_ahead(self) -> bool:
        return self._head.epoch == 1

    @cached_property
    def _living(self) -> tuple[Run, ...]:
        return tuple(self._backwards())[::-1]

    def _backwards(self) -> Iterator[Run]:
        living = self._store.ancestry(self._job, self._head.epoch)
        return living_runs(self._store.runs(self._job, until=self._head.run_number, reverse=True), living)

    def has_read_above(self, upstream: str, last: int, edge: Edge) -> bool:
        """Whether the job stands above a run of an upstream, or a living run of it has read further."""
        if edge.highest > last or self._only_went_ahead:
            return edge.highest > last
        return any((highest_read(run, upstream) or 0) > last for run in self._living)

    def last_below(self, targets: Mapping[str, int]) -> int:
        """Return the last run up to which no run has read an upstream further than its target; 0: there is none.

        Raises:
            ChangeRefusedError: that run was collected, or may have been.
        """
        gone = collected_until(self._store, self._job)
        found = self._by_position(targets) if self._only_went_ahead else self._by_runs(targets)
        # To go back to the beginning of what an upstream has published needs no run.
        if gone and found <= gone and any(targets.values()):
            raise ChangeRefusedError(f"job {self._job!r}: {only_a_reset_fits(self._job, gone)}. Nothing was changed.")
        return found

    def _by_position(self, targets: Mapping[str, int]) -> int:
        found = [newest_at_or_below(self._store, self._job, self._head, job, last) for job, last in targets.items()]
        return min(0 if run is None else run.key.number for run in found)

    def _by_runs(self, targets: Mapping[str, int]) -> int:
        last = 0
        for run in self._living:
            if any((highest_read(run, upstream) or 0) > target for upstream, target in targets.items()):
                return last
            last = run.key.number
        return last

    def newest(self) -> int:
        """Return the number of the newest living run; 0: there is none."""
        return next((run.key.number for run in self._backwards()), 0)

    def put_away_above(self, kept: int) -> str:
        """Name a living run after `kept` whose input may be deleted or archived by now; empty where there is none."""
        return input_put_away(takewhile(lambda run: run.key.number > kept, self._backwards()))

    def lost_by(self, kept: int) -> Iterator[str]:
        """Say what going back to a run takes with it that no figure of undone runs tells."""
        for event in self._store.events(self._job):
            last = event.get("last_kept")
            if event.get("kind") == "set" and isinstance(last, int) and last >= kept:
                ctx = event.get("ctx")
                yield f"context {ctx!r} was set by hand after run {kept}: that is lost, and more may be read"
        first = next(iter(self._living), None) if kept == 0 else None
        for plan in {} if first is None else first.plans.values():
            window = plan.metadata.upstream
            if window is not None and window.after > 0:
                yield f"it began after run {window.after} of {window.job!r}: from the beginning it may read all before"
