"""What a pause or disable run without a window reads: what is new to the bookmark, or all there is."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import UpstreamRewoundError
from airflow_bookmarks.lifecycle.history.relocation import found_moved
from airflow_bookmarks.lifecycle.state.positions import log_start, with_place
from airflow_bookmarks.lifecycle.state.summary import log_found
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.rewind import RewindWanted
from airflow_bookmarks.sources.upstream.way_back import way_back

if TYPE_CHECKING:
    from airflow_bookmarks.lifecycle.run.side.walk import BatchWalk
    from airflow_bookmarks.lifecycle.state.positions import ContextReader
    from airflow_bookmarks.sources.source import OnSourceChange, P, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewInput:
    """What is new to a run after where its loop stands; `is_blind`: it does not look at the bookmark (disable)."""

    store: BookmarkStore
    job: str
    reader: ContextReader
    walk: BatchWalk | None
    is_blind: bool

    def plan(
        self, ctx: str, source: Source[P], on_change: OnSourceChange, moved_from: str | None
    ) -> tuple[PlanInput, P]:
        """Return from where a context is planned, and its plan.

        Raises:
            UpstreamRewoundError: its upstream went back, and this run can't take the bookmark back along.
            SourceError: it can't be planned.
        """
        found = self._found(ctx, source, on_change, moved_from)
        if self.is_blind:
            log.info("bookmark %s, context %s: option disable, the bookmark is not looked at", self.job, ctx)
        elif not self.reader.start.is_beginning:
            log_start(log, self.job, ctx, source.kind, self.reader.start)
        else:
            log_found(log, self.job, ctx, source.kind, self.reader.watermark(ctx), self.reader.head)
        try:
            # What it keeps beside its plan no position names: a collection removes it.
            return found, source.plan(with_place(found, self.store, self.job))
        except RewindWanted as wanted:
            consumed = int(self.reader.watermark(ctx) or 0)
            way = way_back(self.store, self.job, wanted.upstream, wanted.target)
            raise UpstreamRewoundError(self.job, wanted.upstream, consumed, wanted.target, way) from wanted

    def _found(self, ctx: str, source: Source[P], on_change: OnSourceChange, moved_from: str | None) -> PlanInput:
        walked = None if self.walk is None else self.walk.found(ctx)
        if self.is_blind:
            return walked or PlanInput()
        moved = found_moved(self.store, self.job, self.reader, ctx, source, moved_from)
        found = moved or self.reader.found_for(ctx, source, on_change)
        return found if walked is None else walked
