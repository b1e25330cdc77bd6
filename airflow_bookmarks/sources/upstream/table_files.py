"""What a run of an upstream has written to a Delta table: the data files that its own commit of the table has added.

They stay where they are until they are vacuumed, also when a compaction or an overwrite has taken them out of the
table. So a run reads what that run wrote, whatever others have done to the table since.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.sources.delta.excerpt import path_of
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.position import Added
from airflow_bookmarks.sources.delta.snapshot import snapshot_at
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.delta.checkpoint import ReadParquet
    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit

_ADVICE = (
    "Nothing was read or changed. Read the table itself under another context with .delta(...), or move this one past "
    "the run with a set."
)


class TableLogs:
    """The logs of the Delta tables to which runs of one upstream have written, each listed once.

    Args:
        what: consumer and upstream, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._logs: dict[str, DeltaLog] = {}

    def files(self, number: int, entry: OutputEntry) -> Mapping[str, Action]:
        """Return the files that a run has added, as the log has them, by their paths.

        Raises:
            SourceError: what it wrote can't be told any more; or it was no append and no overwrite.
        """
        folder, commit = table_folder(entry), self._commit(number, entry)
        return {path_of(file, folder)[0]: file for file in commit.adds}

    def removed(self, number: int, entry: OutputEntry) -> Collection[str]:
        """Return the paths of the files that a run has taken out of the table."""
        folder, commit = table_folder(entry), self._commit(number, entry)
        return {path_of(file, folder)[0] for file in commit.removes}

    def added(
        self, written: Iterable[tuple[int, OutputEntry]], wanted: Collection[str], read: ReadParquet | None
    ) -> Added:
        """Return what reads those of the files of some runs, at least one, that are wanted: all of one table.

        Columns are those of the newest of these runs.
        """
        runs = list(written)
        files = [file for number, entry in runs for path, file in self.files(number, entry).items() if path in wanted]
        version = max(self._commit(number, entry).version for number, entry in runs)
        log = self._log(table_folder(runs[0][1]))
        return Added(version, snapshot_at(log, version, read).state, tuple(files))

    def _commit(self, number: int, entry: OutputEntry) -> DeltaCommit:
        version, folder = entry.metadata.version_after, table_folder(entry)
        what = f"{self._what}: run {number} wrote to the Delta table {folder!r}"
        if entry.metadata.upsert_keys:
            raise SourceError(
                f"{what} by key, so its files hold rows of other runs as well. Nothing was read or changed. Read the "
                "table itself with .delta(..., changes=True), which tells what became of each row."
            )
        if version is None:
            raise SourceError(f"{what}, and as which version is not known. {_ADVICE}")
        log = self._log(folder)
        try:
            (commit,) = log.commits(version, version)
        except VersionGoneError as error:
            raise SourceError(f"{what}, and {error}. {_ADVICE}") from error
        if not _is_of(commit.told, number, entry.place):
            raise SourceError(
                f"{what} as version {version}, which another writer has made now: the table was made anew. {_ADVICE}"
            )
        return commit

    def _log(self, folder: str) -> DeltaLog:
        if folder not in self._logs:
            self._logs[folder] = DeltaLog.open(folder)
        return self._logs[folder]


def is_in_delta(entry: OutputEntry) -> bool:
    """Whether an output went to a Delta table."""
    return entry.metadata.format == DeltaSource.kind and not entry.lies_in_files


def table_folder(entry: OutputEntry) -> str:
    """Return where the table of an output lies."""
    return entry.metadata.table_folder or entry.target


def _is_of(told: str | None, number: int, place: str) -> bool:
    """Whether what a commit tells is the token of a run, under any of its fences; `place` is one of them."""
    one, other = _token(told), _token(place)
    own = f"run {number}."
    return one.get("application") == other.get("application") and str(one.get("run", "")).startswith(own)


def _token(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "")["airflow_bookmarks"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
