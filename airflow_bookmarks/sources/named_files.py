"""What the kinds of source have in common whose plans name files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.sources.kind import SourceKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.plan import PlanPart
    from airflow_bookmarks.core.run import SourceRef
    from airflow_bookmarks.core.selection.listing import Listing


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
