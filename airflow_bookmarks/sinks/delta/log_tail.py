"""The end of the log of a Delta table, read as the files that it is: what a writer asks before and after its commit.

Spark answers the same by DESCRIBE HISTORY, at the price of a job. What is found here is there. What is not found may be
there all the same: where a catalog takes the commits of a table, or another process has the keys to its files. So each
answer may be None, and then Spark is asked.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sinks.delta.tables import TableCommit

if TYPE_CHECKING:
    from airflow_bookmarks.files.filesystem import FileSystem

log = logging.getLogger(__name__)

_AT_ONCE = 16  # versions that are looked for by one question; a table mostly has a checkpoint every 10


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of the log of the table in a folder."""

    folder: str

    def newest(self) -> int | None:
        """Return the newest version of the table; None where its files don't tell.

        From its last checkpoint on, the log has a commit for each version.
        """
        try:
            files = open_filesystem(self.folder)
            newest = self._checkpoint(files)
            while True:
                there = self._count(files, newest + 1)
                newest += there
                if there < _AT_ONCE:
                    return newest if newest >= 0 and self._count(files, newest, 1) else None
        except (OptionError, SourceError, OSError, ValueError) as error:
            self._say(error)
            return None

    def commit(self, token: str, after: int) -> TableCommit | None:
        """Return the commit later than the version `after` that carries a token; None where no file of it is found."""
        version = after
        try:
            files = open_filesystem(self.folder)
            while True:
                version += 1
                with files.open(self._path(version)) as file:
                    found = _commit_of(version, file.read())
                if found.told == token:
                    return found
        except FileNotFoundError:
            return None
        except (OptionError, SourceError, OSError, ValueError) as error:
            self._say(error)
            return None

    def files(self, version: int) -> int | None:
        """Return how many files the table has at a version; None where its writer has left no checksum file."""
        try:
            with open_filesystem(self.folder).open(f"{self._root}/{version:020}.crc") as file:
                return int(_object(file.read())["numFiles"])
        except FileNotFoundError:
            return None
        except (OptionError, SourceError, OSError, ValueError, KeyError, TypeError) as error:
            log.info("bookmark: how many files the Delta table in %s has is not known: %s", self.folder, error)
            return None

    def _checkpoint(self, files: FileSystem) -> int:
        """Return the version of the last checkpoint; -1 where there is none."""
        try:
            with files.open(f"{self._root}/_last_checkpoint") as file:
                return int(_object(file.read())["version"])
        except FileNotFoundError:
            return -1
        except KeyError as error:
            raise ValueError(f"_last_checkpoint has no {error}") from error

    def _count(self, files: FileSystem, first: int, at_once: int = _AT_ONCE) -> int:
        """Return how many of the versions from `first` on are there without a gap."""
        found = files.stat([self._path(version) for version in range(first, first + at_once)])
        return next((number for number, each in enumerate(found) if each is None), len(found))

    def _path(self, version: int) -> str:
        return f"{self._root}/{version:020}.json"

    @property
    def _root(self) -> str:
        return f"{self.folder.rstrip('/')}/_delta_log"

    def _say(self, error: Exception) -> None:
        log.info("bookmark: Spark is asked for the history of the Delta table in %s: %s", self.folder, error)


def _commit_of(version: int, body: bytes) -> TableCommit:
    for line in body.splitlines():
        if b'"commitInfo"' in line and (told := _object(line).get("commitInfo")) is not None:
            return TableCommit(version, told.get("userMetadata"), dict(told.get("operationMetrics") or {}))
    return TableCommit(version)


def _object(text: bytes) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{text[:40]!r} is no JSON object")
    return found
