"""The part of an unsharded source that one virtual shard reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.rules.virtual_shard import virtual_shards
from airflow_bookmarks.core.selection.reason import OTHER_SHARDS

if TYPE_CHECKING:
    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.shard import VirtualShard
    from airflow_bookmarks.core.run import SourceRef
    from airflow_bookmarks.sources.source import PlanInput, Recheck
    from airflow_bookmarks.sources.upstream.source import UpstreamSource


class ShardedUpstream:
    """The published output of an upstream that belongs to a virtual shard. Progress is runs, as without shards.

    The hash is of the path of the published file, which never changes.
    """

    def __init__(self, source: UpstreamSource, shard: VirtualShard) -> None:
        self._source, self._shard = source, shard
        self.kind, self.format = source.kind, source.format

    def ref(self) -> SourceRef:
        """Return that of the upstream: each shard follows its runs, and all by the same rule."""
        return self._source.ref()

    def plan(self, found: PlanInput) -> FilePlan:
        """Plan the whole window, and keep the files of this shard; the others are counted."""
        whole = self._source.plan(found)
        is_own = virtual_shards(whole.files.paths, self._shard.by) == self._shard.number
        files = whole.files.take(np.flatnonzero(is_own))
        others = len(whole.files) - len(files)
        skipped = {**whole.skipped, OTHER_SHARDS: others} if others else whole.skipped
        return replace(whole, files=files, skipped=skipped)

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the position after the window; see `Source.advance`."""
        return self._source.advance(plan)

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the planned files and runs again; see `Source.recheck`."""
        return self._source.recheck(plan)
