"""The kind of source that reads files below folders."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan, union
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.selection.listing import instant
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.sources.files.commit import advance_files
from airflow_bookmarks.sources.files.planner import FileSource, recorded_files, roots_in
from airflow_bookmarks.sources.named_files import NamedFilesKind
from airflow_bookmarks.sources.relocation import moved_path
from airflow_bookmarks.sources.seek import files_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.ledger.file_ledger import Load
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.sources.kind import SetBy
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class FileKind(NamedFilesKind):
    """Files: progress is a ledger of the versions that were read."""

    name = FileSource.kind
    has_ledger = True
    keeps_elsewhere = True  # it knows files by their paths, so those of another folder are new

    def only_script_knows(self, source: Source[FilePlan]) -> str | None:
        """Say so of listed partitions: those of the last run are recorded; see `SourceKind.only_script_knows`."""
        if isinstance(source, FileSource) and source.listed is not None:
            return "a catalog lists its partitions, and only the script, in Spark, asks it for new ones"
        return None

    def decode(self, body: bytes) -> FilePlan:
        """Return a stored plan; see `SourceKind.decode`."""
        return FilePlan.decode(body)

    def advance(self, plan: FilePlan, found: PlanInput) -> Position | None:
        """Return the ledger with what a stored plan reads; see `SourceKind.advance`."""
        return advance_files(plan, found)

    def knows(self, found: PlanInput, plan: FilePlan) -> bool:
        """Whether the ledger knows a planned file that is no companion; see `SourceKind.knows`."""
        if found.position is None:
            return False
        verdicts = self.ledger(found.position, found.load).classify(plan.files)
        is_companion = np.array([path in plan.companions for path in plan.files.paths], np.bool_)
        return bool(np.any((verdicts == Known.KNOWN) & ~is_companion))

    def unlearned(self, found: PlanInput, plan: FilePlan) -> Position | None:
        """Return the ledger in which planned files that it knows have another version; see `SourceKind.unlearned`."""
        if found.position is None:
            return None
        ledger = self.ledger(found.position, found.load)
        files = plan.files.take(np.flatnonzero(ledger.has_entry(plan.files)))
        if not len(files):
            return None
        after = ledger.with_other_versions(files, files)
        held = len(after.quarantine)
        return Position(after.root(), None, after.unsaved(), keeps_watermark=True, set_aside=held)

    def union(self, plans: Sequence[FilePlan]) -> FilePlan:
        """Return one plan that reads what `plans` read; see `SourceKind.union`."""
        return union(plans)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source[FilePlan]:
        """Return the source with its recorded folders and options; see `SourceKind.source_of`."""
        metadata = entry.file_metadata
        read, moves = metadata.read, metadata.moves
        if read is None:
            raise OptionError(
                "the last run was made by a version that did not record how it read these files. Nothing was read or "
                "changed. From the next run on it is known."
            )

        def now(paths: Sequence[str]) -> Sequence[str]:
            return [moved_path(path, moves) for path in paths]

        plan = self.decode(store.blobs.get(entry.body))
        roots, listed = plan.roots, plan.listed_partitions
        moved = replace(read, roots=None if read.roots is None else now(read.roots), globs=now(read.globs))
        if listed is None:
            return recorded_files(now(roots), moved, store.now)
        return recorded_files(
            now(roots[:1]), moved, store.now, listed.spelled(lambda folder: moved_path(folder, moves))
        )

    def roots_of(self, source: SourceRef) -> Sequence[str] | None:
        """Return the roots and patterns in the name of a source, unless it was too long; see `SourceKind.roots_of`."""
        return roots_in(source)

    def ledger(self, position: bytes, load: Load) -> Ledger:
        """Return the ledger, which is the position; see `SourceKind.ledger`."""
        return Ledger.from_root(position, load)

    def watermark(self, position: bytes, load: Load) -> str | None:
        """Return the time of the newest file that the ledger knows; see `SourceKind.watermark`."""
        newest = self.ledger(position, load).newest_ms
        return None if newest is None else to_text(instant(newest))

    @property
    def set_by(self) -> SetBy:
        """A time; see `SourceKind.set_by`."""
        return "time"

    def seek(self, store: BookmarkStore, found: PlanInput, plan: FilePlan, value: str) -> Position:
        """Return the ledger at "now", at a time, or with files let out of quarantine; see `files_at`."""
        return files_at(store, found, plan, value)
