"""What a driver reads by: a source for each context, and what the batches of its loop share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.sources.files.backlog import Backlog
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import Source
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.sim.record import Intent
from tests.chaos.sim.scheduler import Process
from tests.chaos.sim.world import JobSpec, World


@dataclass
class Inputs:
    """The inputs of one driver of a job."""

    world: World
    process: Process
    spec: JobSpec
    store: BookmarkStore
    policy: Any
    _backlogs: dict[str, Backlog] = field(default_factory=dict)

    def source(self, ctx: str) -> Source[Any]:
        """Return the source of a context, as a script makes it anew for each batch."""
        self.process.notes.pop("listed", None)
        habit, spec = self.spec.habit, self.spec
        if spec.upstream is not None:
            self.process.notes["along"] = Intent("rewind", clean=self.policy == "rewind")
            until = self._backlog(ctx).last_run if habit.in_batches else None
            return UpstreamSource(
                self.store, spec.name, spec.upstream, on_rewind=self.policy, bound=habit.bound, until=until
            )
        return FileSource(
            self.world.faulty_files,
            [self.world.root(ctx)],
            habit.options,
            clock=self.world.scheduler.clock(self.process),
            backlog=self._backlog(ctx) if habit.in_batches else None,
        )

    def planned(self, ctx: str, source: Source[Any]) -> None:
        """Note how far a loop over an upstream goes: to what its first batch finds published."""
        backlog = self._backlog(ctx)
        if isinstance(source, UpstreamSource) and backlog.last_run is None:
            backlog.last_run = source.last_published

    def read(self, path: str) -> tuple[str, ...]:
        """Return the rows of a planned file; none, where it may be gone and is."""
        try:
            return self.world.faulty_files.read(path)
        except FileNotFoundError:
            if self.spec.upstream is not None or self.spec.habit.on_missing == "error":
                raise
            return ()

    def _backlog(self, ctx: str) -> Backlog:
        return self._backlogs.setdefault(ctx, Backlog())
