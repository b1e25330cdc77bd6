"""What a run reads of the snapshots since a position: appends alone, or all changes; within a bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.sources.tables.versioned import REMOVED, REWRITTEN, total

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.sources.iceberg.snapshots import TableSnapshotInfo
    from airflow_bookmarks.sources.tables.versioned import VersionOptions


@dataclass(frozen=True, slots=True)
class SnapshotWindow:
    """The snapshots that a run covers, all or the first ones of those since a position.

    Attributes:
        snapshots: The snapshots.
        reads: Those of them whose rows are read.
        skipped: How many files of snapshots that changed rows it leaves out, by reason.
        left: How many files a bound leaves to the next run, as far as the writers have counted them.
        has_more: Whether a bound leaves anything to the next run.
        change: The first snapshot that did more than append, as far as the window goes; None: none did.
    """

    snapshots: Sequence[TableSnapshotInfo]
    reads: Sequence[TableSnapshotInfo] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    has_more: bool = False
    change: TableSnapshotInfo | None = None


def window_of(snapshots: Sequence[TableSnapshotInfo], options: VersionOptions) -> SnapshotWindow:
    """Return what a run reads of the snapshots since a position.

    A bound ends it between two snapshots, and after the first one that has anything to read. Where files or bytes are
    bounded, a snapshot of which these are not known is read by itself.

    Args:
        snapshots: all of them, oldest first.
        options: those of the script.
    """
    reads: list[TableSnapshotInfo] = []
    skipped: dict[str, int] = {}
    change, end = None, len(snapshots)
    for place, each in enumerate(snapshots):
        is_read = is_to_read(each, options)
        if is_read and reads and _is_over(options, [*reads, each]):
            end = place
            break
        if is_read:
            reads.append(each)
        elif each.changes_rows:
            change = change or each
            for reason, name in ((REWRITTEN, "added-data-files"), (REMOVED, "deleted-data-files")):
                if each.count(name):
                    skipped[reason] = skipped.get(reason, 0) + each.count(name)
    rest = [each for each in snapshots[end:] if is_to_read(each, options)]
    left = sum(each.files or 0 for each in rest)
    return SnapshotWindow(snapshots[:end], reads, skipped, left, bool(rest), change)


def is_to_read(snapshot: TableSnapshotInfo, options: VersionOptions) -> bool:
    """Whether a snapshot has rows that a run with these options reads."""
    return snapshot.has_news and (options.changes or not snapshot.changes_rows)


def added_by(snapshots: Sequence[TableSnapshotInfo], options: VersionOptions) -> list[TableSnapshotInfo]:
    """Return the snapshots with rows that no run reads any more, once all of these count as read.

    One that changed rows is among them if it wrote files, unless runs leave it out anyway.

    Args:
        snapshots: those behind a position, oldest first.
        options: those of the script; a bound does not matter.
    """
    leaves_out = options.on_change == "ignore"
    return [
        each
        for each in snapshots
        if is_to_read(each, options) or (each.changes_rows and not leaves_out and each.adds_files)
    ]


def files_of(snapshots: Sequence[TableSnapshotInfo]) -> int | None:
    """Return how many files hold what snapshots did; None where one does not tell."""
    return total([each.files for each in snapshots])


def bytes_of(snapshots: Sequence[TableSnapshotInfo]) -> int | None:
    """Return how many bytes the files have that snapshots have added; None where one does not tell."""
    return total([each.size_bytes for each in snapshots])


def _is_over(options: VersionOptions, reads: Sequence[TableSnapshotInfo]) -> bool:
    bound = options.bound
    return (
        (options.max_versions is not None and len(reads) > options.max_versions)
        or (bound.max_files is not None and _exceeds(files_of(reads), bound.max_files))
        or (bound.max_bytes is not None and _exceeds(bytes_of(reads), bound.max_bytes))
    )


def _exceeds(amount: int | None, most: int) -> bool:
    return amount is None or amount > most
