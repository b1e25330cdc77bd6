"""The kind `files`: a run stages in a folder of its own, and the publish moves each file into the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.plan import decode_moves, decode_paths
from airflow_bookmarks.core.rules.territory import OutputBounds, StagingBounds, staged_key, staging_root
from airflow_bookmarks.core.run import FILES_SINK, OutputEntry
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING, FileChanges, staged_folders
from airflow_bookmarks.sinks.files.publish import delete_all, move_all
from airflow_bookmarks.sinks.sink import StagedSink
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest


@dataclass(frozen=True, slots=True)
class FilesPublication:
    """The moves of one output, and the deletes that follow them; all of them checked."""

    output: StoredOutput
    changes: FileChanges

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Move what the run lists, then delete what it lists; return the number of files made visible.

        Before it deletes it makes sure that the job is still the publisher's: what a dropped publish meant to replace
        is living data.
        """
        moved = move_all(self.changes, str(self.output), steps)
        if self.changes.deletes:
            check_held(f"delete what run {self.output.run.key} replaced")
            delete_all(self.changes, str(self.output), steps)
        return moved


class FilesSink(StagedSink):
    """Files below a target; see `core.rules.territory` for the names of staged and published files."""

    kind = FILES_SINK

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """See `StagedSink.stage`: a folder for each run item and output, below one root for each target."""
        root = staging_root(request.target, request.staging, territory.namespace, territory.job)
        return OutputEntry(self.kind, request.target, f"{root}/{key}/{output}", stats_of(request)), root

    def prepare(self, output: StoredOutput) -> FilesPublication | None:
        """See `StagedSink.prepare`: the lists are those of the run item as the publisher first saw it."""
        entry = output.entry
        if entry.publish is None and entry.delete is None:
            return None
        moves = [] if entry.publish is None else decode_moves(output.blobs.get(entry.publish))
        deletes = [] if entry.delete is None else decode_paths(output.blobs.get(entry.delete))
        bounds = OutputBounds.of(output.territory, output.run, output.name)
        return FilesPublication(output, FileChanges.of_output(bounds, moves, deletes))

    def check_root(self, territory: Territory, root: str) -> None:
        """See `StagedSink.check_root`."""
        territory.check_staging_root(HEAD_STAGING, root)

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """See `StagedSink.sweep`: remove the folders whose names have this fence or a lower one."""

        def is_over(folder: str) -> bool:
            key = staged_key(folder)
            return key is not None and key[1] <= fence

        staged_folders(StagingBounds(territory, HEAD_STAGING), root, is_over).remove()

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return None: each published file carries the name of its run, so a clean removes exactly these."""
        return None
