"""What the kinds of source have in common whose plans name files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.bound import READ_LATER
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.passed_over import PassedOver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.plan import PlanPart
    from airflow_bookmarks.core.run import PlanEntry, SourceRef
    from airflow_bookmarks.core.selection.listing import Listing
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class NamedFilesKind(SourceKind[FilePlan]):
    """A kind whose plans name files: they lie below the roots of the plan, and a page of them is read by itself."""

    has_files = True

    def locations(self, plan: FilePlan, source: SourceRef) -> Sequence[str]:
        """Return the roots of a plan; see `SourceKind.locations`."""
        return plan.roots

    def part_of(self, plan: FilePlan) -> PlanPart | None:
        """Return the partition whose files a plan reads; see `SourceKind.part_of`."""
        return plan.part

    def files_of(self, plan: FilePlan) -> Listing:
        """Return the files that a plan reads; see `SourceKind.files_of`."""
        return plan.files

    def page(self, body: bytes, offset: int, limit: int) -> tuple[int, Listing]:
        """Return some files of a stored plan, with no more of it unpacked than they lie in; see `SourceKind.page`."""
        return FilePlan.page(body, offset, limit)

    def passed_over(
        self, store: BookmarkStore, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput
    ) -> PassedOver:
        """Return the files that are read from one position and not from another; see `SourceKind.passed_over`."""
        then = self.source_of(store, job, entry).plan(before)
        from_there = self.source_of(store, job, entry).plan(after)
        unread, still = _unread(then), _unread(from_there)
        skipped = [size for path, size in unread.items() if path not in still]
        runs = tuple(number for number in _runs(then) if number not in _runs(from_there))
        return PassedOver(Amount(FILES, len(skipped), sum(skipped)), runs=runs)


def _unread(plan: FilePlan) -> dict[str, int]:
    """Return the files, with their sizes in bytes, that this run or a later one reads from where a plan began."""
    listings = [plan.files, *(files for reason, files in left_out(plan).items() if reason in READ_LATER)]
    return {file.path: file.size_bytes for files in listings for file in files}


def _runs(plan: FilePlan) -> tuple[int, ...]:
    return () if plan.edge is None else tuple(number for number, _ in plan.edge.runs)
