"""Find what an overwrite removes of living runs, and whether this run has read all of it again.

An overwrite that each run makes of everything is normal, so what it removes is only counted and named. Where a
partition is replaced that this run has read only in part, rows may be lost: that is a warning.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceMissingError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.selection.group import BY_PARTITION, partition_key
from airflow_bookmarks.core.selection.partition import partition_values
from airflow_bookmarks.core.text.count import (
    MAYBE_PARTLY_READ,
    PARTLY_READ,
    REPLACED_FILES,
    REPLACED_ROWS,
    REPLACED_RUNS,
    replaced_in_words,
    runs_in_words,
)
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.recorded_plan import read_before, reread_by
from airflow_bookmarks.sources.registry import has_ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.sinks.staging import Staged
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant

log = logging.getLogger(__name__)

_PUBLISHED_NAME = re.compile(r"run-(\d+)\.(\d+)-.+")
_AT_ONCE = 100  # run items of one request
_NAMED = 50  # folders that facts name
_SHOWN = 3  # folders that the log names

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """What an output of a run removes: files of living runs, their rows (None: not known), the numbers of these runs.

    `partly_read` are the folders of the target of which files of a source that were read before are not read now.
    `is_uncertain` says that a source does not tell partitions, so that it can't be said of which folder its files are.
    """

    files: int = 0
    rows: int | None = 0
    runs: tuple[int, ...] = ()
    partly_read: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    is_uncertain: bool = False
    folders: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        store: BookmarkStore,
        grant: LeaseGrant,
        entry: OutputEntry,
        staged: Staged,
        plans: Mapping[str, tuple[str, Plan]],
    ) -> Replacement:
        """Return what publishing `staged` removes of what living runs of this job published.

        Args:
            plans: the kind of source, and the plan, of each context of the run.
        """
        found = dict(_living_runs(store, grant, staged.deletes))
        if not found:
            return cls()
        gone = [path for path in staged.deletes if _key_of(path) in found]
        counts = Counter(map(_key_of, gone))
        rows = [_rows_of(run, entry.target, counts, found) for run in {run.key: run for run in found.values()}.values()]
        numbers = tuple(sorted({run.key.number for run in found.values()}))
        whole = cls(len(gone), None if None in rows else sum(row or 0 for row in rows), numbers)
        if entry.metadata.mode != Mode.OVERWRITE_PARTITIONS:
            return whole
        folders = tuple(dict.fromkeys(path.rpartition("/")[0] for path in gone))
        return _held_against(whole, entry.target, folders, plans)

    def stats(self) -> dict[str, Any]:
        """Return it as stats of the output; empty if nothing is removed."""
        if not self.files:
            return {}
        told: dict[str, Any] = {
            REPLACED_FILES: self.files,
            REPLACED_ROWS: self.rows,
            REPLACED_RUNS: runs_in_words(self.runs),
        }
        if self.partly_read:
            told[PARTLY_READ] = list(self.partly_read[:_NAMED])
        return told | ({MAYBE_PARTLY_READ: True} if self.is_uncertain else {})

    def log(self, job: str, output: str) -> None:
        """Log what is removed, and warn if rows of it may be missing then."""
        if not self.files:
            return
        log.info("bookmark %s, output %s: %s", job, output, replaced_in_words(self.stats()))
        if self.partly_read or self.is_uncertain:
            folders = self.partly_read or self.folders
            more = f" and {len(folders) - _SHOWN} more" if len(folders) > _SHOWN else ""
            log.warning(
                "bookmark %s, output %s: replaces partitions (%s%s) of which this run %s read a part only: files of "
                "context %s that were read before are not in its plan, so rows that came from them are gone. Read with "
                "reread=, so that all files of a partition are read again; an upstream has to replace whole partitions "
                "itself, else append what is read of it",
                job,
                output,
                ", ".join(escaped(folder) or "the target itself" for folder in folders[:_SHOWN]),
                more,
                "has" if self.partly_read else "may have",
                ", ".join(map(repr, self.contexts)),
            )


# ---- the runs that the files belong to


def _key_of(path: str) -> RunKey | None:
    match = _PUBLISHED_NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else RunKey(int(match[1]), int(match[2]))


def _living_runs(store: BookmarkStore, grant: LeaseGrant, paths: Iterable[str]) -> Iterator[tuple[RunKey, Run]]:
    """Yield by the names of files the living runs of this job that published them; a replay gives another fence."""
    keys = sorted({key for path in paths if (key := _key_of(path)) is not None})
    living = store.ancestry(grant.job, grant.base.epoch) if keys else None
    for start in range(0, len(keys), _AT_ONCE):
        found = store.run_items(grant.job, keys[start : start + _AT_ONCE])
        for key in keys[start : start + _AT_ONCE]:
            run = found.get(key) or store.committed_run(grant.job, key.number)
            if run is None or living is None:
                continue
            if key.fence in (run.key.fence, *run.fences) and living.has(run):
                yield key, run


def _rows_of(run: Run, target: str, counts: Mapping[RunKey | None, int], found: Mapping[RunKey, Run]) -> int | None:
    """Return the removed rows of a run; None if that is a part of what it wrote, or was not counted."""
    outputs = [output.metadata for output in run.outputs.values() if output.target == target]
    removed = sum(counts[key] for key, owner in found.items() if owner.key == run.key)
    if removed != sum(output.files or 0 for output in outputs):
        return None
    rows = [output.rows for output in outputs]
    return None if None in rows else sum(row or 0 for row in rows)


# ---- whether it is all read again


def _held_against(
    found: Replacement, target: str, folders: Sequence[str], plans: Mapping[str, tuple[str, Plan]]
) -> Replacement:
    values = {folder: partition_key(partition_values(f"{folder}/file", target).items()) for folder in folders}
    partly: dict[str, None] = {}
    contexts: list[str] = []
    is_uncertain = False
    for ctx, (kind, plan) in sorted(plans.items()):
        if not isinstance(plan, FilePlan):
            continue  # a source without files has no partitions either
        if _may_hold_pruned(values, plan):
            contexts.append(ctx)
            is_uncertain = True
            continue
        unread = _partitions_unread(kind, plan)
        if not unread:
            continue
        hit, is_told = _matching(values, unread)
        if hit:
            contexts.append(ctx)
            is_uncertain = is_uncertain or not is_told
            partly |= dict.fromkeys(hit if is_told else ())
    named = tuple(folder[len(target) :].strip("/") for folder in partly)
    shown = tuple(folder[len(target) :].strip("/") for folder in folders)
    return Replacement(found.files, found.rows, found.runs, named, tuple(contexts), is_uncertain, shown)


def _may_hold_pruned(values: Mapping[str, Values], plan: FilePlan) -> bool:
    """Whether a folder of the target may have rows of partitions of the source that were not even listed.

    It has none where it tells all columns by which the source is partitioned: then it is of one that is in the plan.
    """
    if plan.partitions is None or not plan.partitions.pruned:
        return False
    columns = {name.lower() for name in plan.partition_types}
    return not all(columns <= {name for name, _ in each} for each in values.values())


def _matching(values: Mapping[str, Values], unread: set[Values]) -> tuple[list[str], bool]:
    """Return the folders that files of these partitions may have gone into, and whether partition columns tell it."""
    columns = {name for each in unread for name, _ in each}
    common = {name for each in values.values() for name, _ in each} & columns
    projected = {_only(each, common) for each in unread}
    return [folder for folder, each in values.items() if _only(each, common) in projected], bool(common)


def _only(values: Values, columns: set[str]) -> Values:
    return tuple(pair for pair in values if pair[0] in columns)


def _partitions_unread(kind: str, plan: FilePlan) -> set[Values]:
    """Return the partitions of files that were read before, are there, and are not in the plan."""
    if plan.edge is not None:
        return {partition_key(partition_values(path, "").items()) for path in _consumed_beside(plan, plan.edge.after)}
    reread = reread_by(plan)
    if not has_ledger(kind) or (reread is not None and reread != BY_PARTITION):
        return set()  # by an expression: the user decides which files belong together
    found: set[Values] = set()
    for listing in read_before(plan):
        paths = (listing.paths[row] for row in listing.in_folders().first_files())
        found |= {partition_key(partition_values(path, "").items()) for path in paths}
    return found


def _consumed_beside(plan: FilePlan, after: int) -> Iterator[str]:
    """Yield a file of each folder of the plan in which runs up to `after` of the upstream, consumed before, left some.

    An upstream that replaces whole partitions leaves none: then its new files are all of a partition.
    """
    planned = set(plan.files.paths)
    for folder in sorted(plan.files.in_folders().in_use() if after else ()):
        files = open_filesystem(folder)
        with suppress(SourceMissingError):
            for path in files.list(folder, recursive=True).files.paths:
                key = _key_of(path)
                if path not in planned and key is not None and key.number <= after:
                    yield path
                    break
