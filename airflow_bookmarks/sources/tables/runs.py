"""What the runs of an upstream have written to tables with versions: the data files that their own commits have added.

They stay where they are for a while, also when a compaction or an overwrite has taken them out of the table. So a
consumer reads what a run wrote, whatever others have done to the table since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.run import OutputEntry


class TableRuns(Protocol):
    """What runs of one upstream have written to tables of one format, each table looked at once."""

    def folder(self, entry: OutputEntry) -> str:
        """Return where the table of an output lies."""
        ...

    def files(self, number: int, entry: OutputEntry) -> Collection[str]:
        """Return the paths of the files that a run has added.

        Raises:
            SourceError: what it wrote can't be told any more; or it was no append and no overwrite.
        """
        ...

    def removed(self, number: int, entry: OutputEntry) -> Collection[str]:
        """Return the paths of the files that a run has taken out of the table.

        Raises:
            SourceError: see `files`.
        """
        ...


def check_not_by_key(what: str, entry: OutputEntry, method: str) -> None:
    """Make sure that an output was no upsert.

    Args:
        what: what wrote what, for the error.
        method: how a script reads such a table.

    Raises:
        SourceError: it was one.
    """
    if entry.metadata.upsert_keys:
        raise SourceError(
            f"{what} by key, so its files hold rows of other runs as well. Nothing was read or changed. Read the table "
            f"itself with .{method}(..., changes=True), which tells what became of each row."
        )


def advice(method: str) -> str:
    """Say what to do where that which a run wrote can't be told any more; `method` reads such a table in a script."""
    return (
        f"Nothing was read or changed. Read the table itself under another context with .{method}(...), or move this "
        "one past the run with a set."
    )
