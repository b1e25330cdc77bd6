"""What a run reads of the commits since a position: appends alone, or all changes; within a bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sources.delta.commit import rows_of
from airflow_bookmarks.sources.tables.versioned import REMOVED, REWRITTEN, RowsChangedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit
    from airflow_bookmarks.sources.tables.versioned import VersionOptions


@dataclass(frozen=True, slots=True)
class CommitWindow:
    """The commits that a run covers, all or the first ones of those since a position.

    Attributes:
        commits: The commits.
        files: The files that it reads.
        skipped: How many files of commits that changed rows it leaves out, by reason.
        left: How many files a bound leaves to the next run.
        change: The first commit that did more than append, as far as the window goes; None: none did.
    """

    commits: Sequence[DeltaCommit]
    files: tuple[Action, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    change: DeltaCommit | None = None


def window_of(commits: Sequence[DeltaCommit], table_id: str, options: VersionOptions) -> CommitWindow:
    """Return what a run reads of the commits since a position.

    A bound ends it between two commits, and after the first one that has anything to read.

    Args:
        commits: all of them.
        table_id: the id that the table had before.
    """
    reads = list(_reads(commits, table_id, options))
    taken: list[Action] = []
    skipped: dict[str, int] = {}
    change, versions, end = None, 0, len(commits)
    for place, (commit, files, is_left_out) in enumerate(reads):
        if files and versions and _is_over(options, versions + 1, [*taken, *files]):
            end = place
            break
        if is_left_out:
            change = change or commit
            _count(skipped, commit)
        taken += files
        versions += bool(files)
    left = sum(len(files) for _, files, _ in reads[end:])
    return CommitWindow(commits[:end], tuple(taken), skipped, left, change)


def _reads(
    commits: Iterable[DeltaCommit], table_id: str, options: VersionOptions
) -> Iterator[tuple[DeltaCommit, tuple[Action, ...], bool]]:
    """Return each commit with the files that are read of it, and whether it is left out because it changed rows."""
    for commit in commits:
        is_left_out = not options.changes and commit.changes_rows(table_id)
        table_id = table_id if commit.metadata is None else commit.metadata["id"]
        yield commit, () if is_left_out else commit.reads(changes=options.changes), is_left_out


def added_by(commits: Sequence[DeltaCommit], table_id: str, options: VersionOptions) -> list[tuple[Action, ...]]:
    """Return by commit the files with rows that no run reads any more, once all of the commits count as read.

    A commit that changed rows is among them with the files that it wrote, unless runs leave it out anyway. Commits
    without such files are none of the list.

    Args:
        commits: those behind a position, oldest first.
        table_id: the id that the table had before.
        options: those of the script; a bound does not matter.
    """
    found = [
        commit.adds if is_left_out and options.on_change != "ignore" else files
        for commit, files, is_left_out in _reads(commits, table_id, options)
    ]
    return [files for files in found if files]


def _is_over(options: VersionOptions, versions: int, files: Sequence[Action]) -> bool:
    bound = options.bound
    return (
        (options.max_versions is not None and versions > options.max_versions)
        or (bound.max_files is not None and len(files) > bound.max_files)
        or (bound.max_bytes is not None and (bytes_of(files) or 0) > bound.max_bytes)
    )


def _count(skipped: dict[str, int], commit: DeltaCommit) -> None:
    for reason, number in ((REWRITTEN, len(commit.adds)), (REMOVED, len(commit.removes))):
        if number:
            skipped[reason] = skipped.get(reason, 0) + number


def changed(table: str, label: str, commit: DeltaCommit, position: int) -> RowsChangedError:
    """Return the error for a commit that did more than append rows, behind a position."""
    did = [f"{counted(len(files), 'file')} {what}" for files, what in (
        (commit.adds, "written"), (commit.removes, "removed")
    ) if files]  # fmt: skip
    return RowsChangedError(
        f"{label}: {commit.in_words(position)} of the Delta table {table!r} changed rows ({' and '.join(did)}), and "
        "what is read are appends. Nothing was read or changed. Read the change feed (changes=True); or with "
        "on_change='ignore' only what was appended, with on_change='reload' the whole table anew; or set the context "
        f"to {commit.version}, which counts this version as read."
    )


def bytes_of(files: Iterable[Action]) -> int | None:
    """Return how many bytes files have; None where one does not tell."""
    sizes = [file.get("size") for file in files]
    return None if None in sizes else sum(int(size or 0) for size in sizes)


def total_rows(files: Iterable[Action]) -> int | None:
    """Return how many rows files have; None where one does not tell."""
    counts = [rows_of(file) for file in files]
    return None if None in counts else sum(count or 0 for count in counts)


def part_of(files: Sequence[Action], start: int, options: VersionOptions) -> tuple[Action, ...]:
    """Return the files, from `start` on, that one run of a first read takes: at least one, if any is left."""
    most = len(files) if options.bound.max_files is None else start + options.bound.max_files
    part, size = list(files[start:most]), 0
    if options.bound.max_bytes is not None:
        for place, file in enumerate(part):
            size += int(file["size"])
            if place and size > options.bound.max_bytes:
                return tuple(part[:place])
    return tuple(part)
