"""Tell of each partition what is read of it, in the lines that Glue logs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.listing_log import LoggedPartition
from airflow_bookmarks.sources.files.recorded_plan import known_files, left_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.files.listed_partitions import ListedPartitions


@dataclass(slots=True)
class _Counts:
    """Of one folder: files that are read, that were read before, and that wait or are left out."""

    read: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)


def log_partitions(
    plan: FilePlan, *, roots: Sequence[str], listed: ListedPartitions | None, created_ms: Mapping[str, int]
) -> None:
    """Log what is read of each partition, or of each folder that is loaded where there are none.

    Args:
        plan: what this run reads, just made.
        roots: the folders that are loaded, in canonical spelling.
        listed: the partitions of a table; None: it has none.
        created_ms: by location, when the catalog got the partition.
    """
    counts = _Counts()

    def add(to: Counter[str], paths: Iterable[str]) -> None:
        for path in paths:
            folder = _folder_of(path, roots) if listed is None else listed.folder_of(path)
            if folder is not None:
                to[folder] += 1

    add(counts.read, plan.files.paths)
    add(counts.known, known_files(plan).paths)
    for files in left_out(plan).values():
        add(counts.left, files.paths)
    for folder in roots if listed is None else listed.folders:
        values = {} if listed is None else dict(zip(listed.types, listed.folders[folder], strict=True))
        _log(LoggedPartition(folder, values, created_ms.get(folder, 0)), folder, counts)


def _log(partition: LoggedPartition, folder: str, counts: _Counts) -> None:
    read, known, left = counts.read[folder], counts.known[folder], counts.left[folder]
    if not read:
        partition.log_skipped()
    elif not known and not left:
        partition.log_new(read)
    else:
        partition.log_initial(read + left, read + left + known)
        partition.log_final(read, read + left)


def _folder_of(path: str, roots: Sequence[str]) -> str | None:
    return max((root for root in roots if f"{path}/".startswith(f"{root.rstrip('/')}/")), key=len, default=None)
