"""The kind `files`: a run stages in a folder of its own, and the publish moves each file into the target."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_bookmarks.core.files.file_list import decode_deletes, decode_moves
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.rules.territory import (
    SIDE_FOLDER,
    OutputBounds,
    StagingBounds,
    staged_key,
    staging_root,
)
from airflow_bookmarks.core.run import FILES_SINK, OutputEntry
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.clean import CleanedSink
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING, FileChanges, staged_folders
from airflow_bookmarks.sinks.files.clean import files_left, files_to_clean, published_files, removals
from airflow_bookmarks.sinks.files.publish import COMMITTED, Closing, delete_all, move_all
from airflow_bookmarks.sinks.files.registration import Registration
from airflow_bookmarks.sinks.sink import CollectedSink
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.core.run import RunKey
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.sinks.clean import CleanGround, CleanList
    from airflow_bookmarks.sinks.files.catalog import PartitionCatalog
    from airflow_bookmarks.sinks.files.clean import FilesRemoval
    from airflow_bookmarks.sinks.sink import PublishSteps, SideOutput, StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest


@dataclass(frozen=True, slots=True)
class FilesPublication:
    """The moves of one output, and the deletes and partitions that follow them; all of them checked.

    `listed` are those of the deletes that go only as they were listed.
    """

    output: StoredOutput
    changes: FileChanges
    registration: Registration | None = None
    listed: Sequence[FileInfo] = ()

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Move what the run lists, delete what it lists, add its partitions; return how many files were made visible.

        Before it deletes it makes sure that the job is still the publisher's: what a dropped publish meant to replace
        is living data.
        """
        moved = move_all(self.changes, str(self.output), steps)
        if self.changes.deletes:
            check_held(f"delete what run {self.output.run.key} replaced")
            delete_all(self.changes, str(self.output), steps, listed=self.listed)
        if self.registration is not None:
            self.registration.add(str(self.output), COMMITTED.failed)
        return moved


@dataclass(frozen=True, slots=True)
class SideFilesPublication:
    """The same of one output of a pause or disable run."""

    output: SideOutput
    changes: FileChanges
    registration: Registration | None = None

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """Do what `FilesPublication.publish` does; what is replaced there is not asked for again."""
        closing, what = _closing_of(self.output), str(self.output)
        moved = move_all(self.changes, what, steps, closing)
        delete_all(self.changes, what, steps, closing)
        if self.registration is not None:
            self.registration.add(what, closing.failed)
        return moved


def _closing_of(output: SideOutput) -> Closing:
    stays = (
        "The bookmark is where it was. What of this run was moved before stays in the targets, by names with "
        f"{output.token!r}; the rest of it is removed."
    )
    again = "run it again; of an append remove those files first, an overwrite replaces them."
    return Closing(
        failed=f"{stays} Mend the cause (disk, rights) and {again}",
        lost=f"{stays} Somebody else removed staged files: see to that and {again}",
    )


class FilesSink(CollectedSink, CleanedSink):
    """Files below a target; see `core.rules.territory` for the names of staged and published files.

    `catalogs` are those that this process reaches besides that of Glue, by their kind.
    """

    kind = FILES_SINK

    def __init__(self, catalogs: Mapping[str, PartitionCatalog] = MappingProxyType({})) -> None:
        self._catalogs = catalogs

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
        deletes = [] if entry.delete is None else decode_deletes(output.blobs.get(entry.delete))
        listed = [file for file in deletes if not isinstance(file, str)]
        bounds = OutputBounds.of(output.territory, output.run, output.name)
        changes = FileChanges.of_output(
            bounds, moves, [file if isinstance(file, str) else file.path for file in deletes]
        )
        files = [target for _, target in moves]
        registration = Registration.of_entry(entry, files, self._catalogs, str(output), COMMITTED.failed)
        return FilesPublication(output, changes, registration, listed)

    def is_unpublished(self, output: StoredOutput) -> bool:
        """See `StagedSink.is_unpublished`: none of the files is there, whose names no other run has."""
        paths = published_files(output).files
        return not paths or not any(open_filesystem(paths[0]).stat(paths))

    def check_root(self, territory: Territory, root: str) -> None:
        """See `StagedSink.check_root`."""
        territory.check_staging_root(HEAD_STAGING, root)

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """See `StagedSink.sweep`: remove the folders whose names have this fence or a lower one."""

        def is_over(folder: str) -> bool:
            key = staged_key(folder)
            return key is not None and key[1] <= fence

        staged_folders(StagingBounds(territory, HEAD_STAGING), root, is_over).remove()

    def stage_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        """See `SidewaysSink.stage_aside`: below a root that enabled runs neither use nor sweep."""
        root = staging_root(request.target, request.staging, territory.namespace, territory.job)
        return OutputEntry(self.kind, request.target, f"{root}{SIDE_FOLDER}/{run}/{output}", stats_of(request))

    def prepare_aside(self, output: SideOutput) -> SideFilesPublication:
        """See `SidewaysSink.prepare_aside`."""
        item, tokens = f"{output.item}, output {output.name!r}", frozenset([output.token])
        bounds = OutputBounds(output.territory, item, output.entry.target, output.entry.place, tokens)
        changes = FileChanges.of_output(bounds, output.staged.moves, output.staged.deletes)
        files = [target for _, target in output.staged.moves]
        then = _closing_of(output).failed
        registration = Registration.of_entry(output.entry, files, self._catalogs, str(output), then)
        return SideFilesPublication(output, changes, registration)

    def sweep_aside(self, output: SideOutput) -> None:
        """See `SidewaysSink.sweep_aside`: the folder of the run, with all its outputs there."""
        folder = output.entry.place.rpartition("/")[0]
        FileChanges.of_staging(StagingBounds(output.territory, output.item), [folder]).remove()

    def left_aside(self, territory: Territory, root: str) -> Mapping[str, str]:
        """See `CollectedSink.left_aside`: a folder for each run."""
        territory.check_staging_root(HEAD_STAGING, root)
        side = f"{root}{SIDE_FOLDER}"
        return {name: f"{side}/{name}" for name in open_filesystem(root).folders(side)}

    def remove_aside(self, territory: Territory, root: str, run: str) -> None:
        """See `CollectedSink.remove_aside`."""
        FileChanges.of_staging(StagingBounds(territory, HEAD_STAGING), [f"{root}{SIDE_FOLDER}/{run}"]).remove()

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """See `Sink.holds_rows_once`: where an overwrite replaces all files, or those of the same partitions."""
        return not entry.metadata.is_append and entry.metadata.mode != Mode.PURGE

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return None: each published file carries the name of its run, so a clean removes exactly these."""
        return None

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        """See `CleanedSink.list_clean`."""
        return files_to_clean(output, replaced)

    def left(self, output: StoredOutput) -> CleanList:
        """See `CleanedSink.left`."""
        return files_left(output)

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[FilesRemoval]:
        """See `CleanedSink.prepare_clean`."""
        return removals(ground, listed)

    def check_visible(self, output: StoredOutput) -> None:
        """See `CleanedSink.check_visible`: by the names of its files."""
        bounds = OutputBounds.of(output.territory, output.run, output.name)
        for path in published_files(output).files:
            bounds.check_own(path)

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return None: the commit of a revision lists the former files of its run, which its publish deletes."""
        return None
