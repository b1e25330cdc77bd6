"""What the runs of an upstream have written to Delta tables: the data files that their own commits have added.

They stay where they are until they are vacuumed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.sources.delta.excerpt import path_of
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.position import Added
from airflow_bookmarks.sources.delta.snapshot import snapshot_at
from airflow_bookmarks.sources.tables.runs import advice, check_not_by_key
from airflow_bookmarks.sources.tables.versioned import VersionGoneError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.delta.checkpoint import ReadParquet
    from airflow_bookmarks.sources.delta.commit import Action, DeltaCommit

_ADVICE = advice("delta")


class DeltaRuns:
    """What runs of one upstream have written to Delta tables; see `TableRuns`. Each log is listed once.

    Args:
        what: consumer and upstream, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._logs: dict[str, DeltaLog] = {}

    def folder(self, entry: OutputEntry) -> str:
        """See `TableRuns.folder`."""
        return entry.metadata.table_folder or entry.target

    def files(self, number: int, entry: OutputEntry) -> Mapping[str, Action]:
        """Return the files that a run has added, as the log has them, by their paths; see `TableRuns.files`."""
        folder, commit = self.folder(entry), self._commit(number, entry)
        return {path_of(file, folder)[0]: file for file in commit.adds}

    def removed(self, number: int, entry: OutputEntry) -> Collection[str]:
        """See `TableRuns.removed`."""
        folder, commit = self.folder(entry), self._commit(number, entry)
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
        log = self._log(self.folder(runs[0][1]))
        return Added(version, snapshot_at(log, version, read).state, tuple(files))

    def _commit(self, number: int, entry: OutputEntry) -> DeltaCommit:
        version, folder = entry.metadata.version_after, self.folder(entry)
        what = f"{self._what}: run {number} wrote to the Delta table {folder!r}"
        check_not_by_key(what, entry, "delta")
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
