"""Publish what a paused or disabled run has staged: without a commit, so at least once.

check what it replaces, and every path that changes -> move -> delete -> sweep the staging of this run
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, PublishError
from airflow_bookmarks.core.plan import encode_paths
from airflow_bookmarks.core.rules.territory import OutputBounds, StagingBounds, Territory
from airflow_bookmarks.lifecycle.protocol.publish import steps_of
from airflow_bookmarks.lifecycle.state.discard import is_published, log_discarded
from airflow_bookmarks.sinks.entry import discarded_stats
from airflow_bookmarks.sinks.files.changes import FileChanges
from airflow_bookmarks.sinks.files.publish import Closing, delete_all, move_all
from airflow_bookmarks.sinks.staging import published_by_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow_bookmarks.core.option import Option
    from airflow_bookmarks.core.rules.emptiness import Increment
    from airflow_bookmarks.core.run import Payload
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.run.outputs import RunOutputs
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DetachedPublish:
    """The publish of one paused or disabled run.

    `file_token` is part of the names of its files; `overwriting` are the outputs that may replace what runs published.
    """

    store: BookmarkStore
    job: str
    option: Option
    file_token: str
    machine: RunEnvironment
    outputs: RunOutputs
    overwriting: Collection[str]

    def replaced(self, increment: Increment) -> dict[str, Payload]:
        """Return the published files that this run replaces, by output.

        Raises:
            PublishError: there are such files in an output that was not asked to replace them.
        """
        replaced: dict[str, Payload] = {}
        for name, staged in self.outputs.staged.items():
            paths = published_by_runs(staged.deletes) if self._is_published(name, increment) else []
            if paths and name not in self.overwriting:
                target = self.outputs.placed[name].target
                raise PublishError(
                    f"job {self.job!r}, {self.option.value} run, output {name!r}: to overwrite {target!r} would "
                    f"delete {len(paths)} file(s) that runs have published, the first: {paths[0]!r}. Such a run is "
                    "part of no history, so nothing brings them back, and consumers that have not read them lose their "
                    "rows. Nothing was published or deleted, and the bookmark is where it was. Write to another "
                    f"target, or ask for it: job.write(df, {name!r}, overwrite_published=True); consumers then see "
                    "those files as replaced."
                )
            if paths:
                replaced[name] = self.store.blobs.payload(encode_paths(paths))
        return replaced

    def changes(self, increment: Increment) -> dict[str, FileChanges]:
        """Return what publishing changes, all of it checked before the first change.

        Raises:
            OutOfBoundsError: a link leads out of a target, or a whole file system or bucket is overwritten.
        """
        changes: dict[str, FileChanges] = {}
        for name, staged in self.outputs.staged.items():
            entry = self.outputs.placed[name]
            if entry.is_staged and self._is_published(name, increment):
                item, tokens = f"{self._item}, output {name!r}", frozenset([self.file_token])
                bounds = OutputBounds(self._territory, item, entry.target, entry.place, tokens)
                changes[name] = FileChanges.of_output(bounds, staged.moves, staged.deletes)
        return changes

    def publish(self, increment: Increment, changes: Mapping[str, FileChanges]) -> dict[str, dict[str, Any]]:
        """Move and delete what `changes` says; return the facts of each output.

        Raises:
            PublishError: an output can't be moved.
        """
        return {name: self._publish(name, increment, changes) for name in self.outputs.staged}

    def sweep(self) -> None:
        """Remove what was staged; a failure is logged, because the user has to see how the run ended."""
        for entry in self.outputs.placed.values():
            if not entry.is_staged:
                continue
            staging = entry.place.rpartition("/")[0]
            try:
                FileChanges.of_staging(StagingBounds(self._territory, self._item), [staging]).remove()
            except (BookmarkError, OSError) as error:
                log.warning(
                    "bookmark %s: what the %s run staged could not be removed: %s. Readers don't see it; remove %s",
                    self.job,
                    self.option.value,
                    error,
                    staging,
                )

    def _publish(self, name: str, increment: Increment, changes: Mapping[str, FileChanges]) -> dict[str, Any]:
        entry, staged = self.outputs.placed[name], self.outputs.staged[name]
        if not entry.is_staged:
            return {"rows": staged.rows, "files": None, "bytes": None}
        if not self._is_published(name, increment):
            stats = discarded_stats(staged)
            log_discarded(self.job, name, stats, when_empty=entry.metadata.when_empty)
            return stats
        what, closing = f"job {self.job!r}, {self._item}, output {name!r}", self._closing()
        move_all(changes[name], what, steps_of(self.machine), closing)
        delete_all(changes[name], what, steps_of(self.machine), closing)
        return {"rows": staged.rows, "files": len(staged.moves), "bytes": staged.bytes}

    def _is_published(self, name: str, increment: Increment) -> bool:
        return is_published(increment, self.outputs.placed[name].metadata, self.outputs.staged[name])

    @property
    def _item(self) -> str:
        return f"{self.option.value} run"

    @property
    def _territory(self) -> Territory:
        return Territory(self.store.namespace, self.job)

    def _closing(self) -> Closing:
        stays = (
            "The bookmark is where it was. What of this run was moved before stays in the targets, by names with "
            f"{self.file_token!r}; the rest of it is removed."
        )
        again = "run it again; of an append remove those files first, an overwrite replaces them."
        return Closing(
            failed=f"{stays} Mend the cause (disk, rights) and {again}",
            lost=f"{stays} Somebody else removed staged files: see to that and {again}",
        )
