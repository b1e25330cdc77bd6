"""The kind of source that reads files below folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.plan import FilePlan, union
from airflow_bookmarks.sources.files.planner import OPTIONS, FileSource, advance_files, recorded_files
from airflow_bookmarks.sources.kind import Kind
from airflow_bookmarks.sources.relocation import MOVES, moved_path
from airflow_bookmarks.sources.seek import files_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.sources.source import PlanInput, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.reader import StateReader


class FileKind(Kind[FilePlan]):
    """Files: progress is a ledger of the versions that were read."""

    name = FileSource.kind

    def decode(self, body: bytes) -> FilePlan:
        """Return a stored plan; see `Kind.decode`."""
        return FilePlan.decode(body)

    def advance(self, plan: FilePlan, found: PlanInput) -> Position | None:
        """Return the ledger with what a stored plan reads; see `Kind.advance`."""
        return advance_files(plan, found)

    def union(self, plans: Sequence[FilePlan]) -> FilePlan:
        """Return one plan that reads what `plans` read; see `Kind.union`."""
        return union(plans)

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> Source:
        """Return the source with its recorded folders and options; see `Kind.source_of`."""
        if OPTIONS not in entry.facts:
            raise OptionError(
                "the last run was made by a version that did not record how it read these files. Nothing was read or "
                "changed. From the next run on it is known."
            )
        roots, options = self.decode(store.blobs.get(entry.body)).roots, entry.facts[OPTIONS]
        moves = entry.facts.get(MOVES, ())
        if moves:
            options = options | {
                name: [moved_path(path, moves) for path in options[name]]
                for name in ("roots", "globs")
                if name in options
            }
        return recorded_files([moved_path(root, moves) for root in roots], options, store.now)

    def seek(self, store: StateReader, found: PlanInput, plan: FilePlan, value: str) -> Position:
        """Return the ledger at "now", at a time, or with files let out of quarantine; see `files_at`."""
        return files_at(store, found, plan, value)
