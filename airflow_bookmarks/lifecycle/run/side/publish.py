"""Publish what a paused or disabled run has staged: without a commit, so at least once.

check what it replaces, and all that its sinks change -> publish -> sweep the staging of this run
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, PublishError, SinkUnknownError
from airflow_bookmarks.core.files.file_list import encode_paths
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.lifecycle.protocol.publish import steps_of
from airflow_bookmarks.lifecycle.state.discard import is_published, log_discarded
from airflow_bookmarks.sinks.entry import discarded_stats
from airflow_bookmarks.sinks.failure import named_failure, own_errors
from airflow_bookmarks.sinks.sink import SideOutput
from airflow_bookmarks.sinks.staging import Staged, published_by_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow_bookmarks.core.option import Option
    from airflow_bookmarks.core.rules.emptiness import Increment
    from airflow_bookmarks.core.run import Payload
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.run.use.outputs import RunOutputs
    from airflow_bookmarks.sinks.registry import SinkRegistry
    from airflow_bookmarks.sinks.sink import Publication, SidewaysSink
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_PARTLY_PUBLISHED = (
    "What was published before stays, and no run publishes the rest. Mend the cause, remove what is visible, and run "
    "it again."
)


@dataclass(frozen=True, slots=True)
class DetachedPublish:
    """The publish of one paused or disabled run.

    `file_token` is part of the names of its files; `overwriting` are the outputs that may replace what runs published.
    """

    store: BookmarkStore
    job: str
    option: Option
    file_token: str
    environment: RunEnvironment
    outputs: RunOutputs
    overwriting: Collection[str]
    sinks: SinkRegistry

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

    def prepared(self, increment: Increment) -> dict[str, Publication]:
        """Return what publishing changes, by output, all of it checked before the first change.

        Raises:
            OutOfBoundsError: a link leads out of a target, or a whole file system or bucket is overwritten.
            PublishError: a sink of a user's own failed.
        """
        return {
            name: self._prepare(name)
            for name in self.outputs.staged
            if self.outputs.placed[name].is_staged and self._is_published(name, increment)
        }

    def _prepare(self, name: str) -> Publication:
        sink, output = self._sink(name), self._output(name)
        with named_failure(sink.kind, output, "Nothing was published. Mend the cause, and run it again.", PublishError):
            return sink.prepare_aside(output)

    def publish(self, increment: Increment, prepared: Mapping[str, Publication]) -> dict[str, dict[str, Any]]:
        """Publish what is prepared; return the figures of each output.

        Raises:
            PublishError: an output can't be published.
        """
        return {name: self._publish(name, prepared.get(name)) for name in self.outputs.staged}

    def sweep(self) -> None:
        """Remove what was staged; a failure is logged, because the user has to see how the run ended."""
        for name, entry in self.outputs.placed.items():
            if not entry.is_staged:
                continue
            try:
                sink = self._sink(name)
                with own_errors(sink.kind):
                    sink.sweep_aside(self._output(name))
            except (BookmarkError, OSError) as error:
                log.warning(
                    "bookmark %s: what the %s run staged could not be removed: %s. Readers don't see it; remove %s",
                    self.job,
                    self.option.value,
                    error,
                    entry.place.rpartition("/")[0] if entry.lies_in_files else entry.place,
                )

    def _publish(self, name: str, prepared: Publication | None) -> dict[str, Any]:
        entry, staged = self.outputs.placed[name], self.outputs.staged[name]
        if prepared is None and (entry.is_staged or entry.is_left_out):
            stats = discarded_stats(entry, staged)
            log_discarded(self.job, name, stats, when_empty=entry.metadata.when_empty)
            return stats
        if prepared is not None:
            with named_failure(entry.sink, self._output(name), _PARTLY_PUBLISHED, PublishError):
                prepared.publish(lambda what: None, steps_of(self.environment))
        if not entry.lies_in_files:
            return {"rows": staged.rows, "files": None, "bytes": None}
        return {"rows": staged.rows, "files": len(staged.moves), "bytes": staged.bytes}

    def _sink(self, name: str) -> SidewaysSink:
        """Return the sink of a staged output, which was known when it was placed."""
        kind = self.outputs.placed[name].sink
        sink = self.sinks.reaching(self.store.databases).find_sideways(kind)
        if sink is None:
            raise SinkUnknownError(
                f"job {self.job!r}: output {name!r} was staged in a sink of kind {kind!r}, which is not known here any "
                "more. Nothing was published."
            )
        return sink

    def _output(self, name: str) -> SideOutput:
        territory, staged = Territory(self.store.namespace, self.job), self.outputs.staged.get(name, Staged(()))
        return SideOutput(territory, self.option.value, self.file_token, name, self.outputs.placed[name], staged)

    def _is_published(self, name: str, increment: Increment) -> bool:
        return is_published(increment, self.outputs.placed[name], self.outputs.staged[name])
