"""Snapshots: copies of a whole table, each in an artifact folder of its own, and what changed between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_bookmarks.core.errors import SourceMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.core.database.dialect import SharedSnapshot
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.sources.jdbc.queries import Queries

    Open = Callable[[str], FileSystem]

CHANGE_TYPE = "_change_type"  # the column that a frame has beside those of the table
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """All rows of a table at one time.

    Args:
        uri: the folder, as the store has made it.
        columns: the columns of the table as the JSON of Spark's StructType.
        rows: how many there are.
        files: name and size in bytes of each file in the folder.
        taken_at: the time by the clock of the database, before the first row was read; ISO 8601, UTC.
    """

    uri: str
    columns: str
    rows: int
    files: tuple[tuple[str, int], ...]
    taken_at: str | None = None

    @property
    def name(self) -> str:
        """The last part of the folder's name, which sorts by the time at which it was made."""
        return self.uri.rpartition("/")[2]

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "uri": self.uri,
            "columns": self.columns,
            "rows": self.rows,
            "files": [list(each) for each in self.files],
            "taken_at": self.taken_at,
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> TableSnapshot:
        """Return what `stored` returned."""
        files = tuple((str(name), int(size)) for name, size in values["files"])
        return cls(values["uri"], values["columns"], values["rows"], files, values["taken_at"])


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many rows came, changed and went from one snapshot to another one."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """How many rows a frame over them has."""
        return self.inserted + self.updated + self.deleted


class SnapshotMaker(Protocol):
    """Takes snapshots of one table and compares them; Spark does it."""

    @property
    def shares(self) -> SharedSnapshot | None:
        """How several sessions of the database read it as it was at one time; None where one query reads all."""
        ...

    def take(self, uri: str, opening: str | None) -> TableSnapshot:
        """Copy the table to a new folder.

        Args:
            opening: the statement by which each session that reads enters the shared snapshot.

        Raises:
            SourceError: it can't be read, or its keys are no keys. OptionError: a column can't be kept or compared.
        """
        ...

    def compare(self, before: TableSnapshot, after: TableSnapshot) -> ChangeCounts:
        """Count the changes from one snapshot to another one."""
        ...


def listed(files: FileSystem, uri: str) -> tuple[tuple[str, int], ...]:
    """Return name and size of each file of a snapshot; none if the folder is not there."""
    try:
        found = files.list(files.canonical(uri)).files
    except SourceMissingError:
        return ()
    return tuple((each.path.rpartition("/")[2], each.size_bytes) for each in found)


def missing(open_files: Open, snapshot: TableSnapshot) -> Sequence[str]:
    """Return the URIs of those files of a snapshot that are gone, or have another size."""
    there = set(listed(open_files(snapshot.uri), snapshot.uri))
    return [f"{snapshot.uri}/{name}" for name, size in snapshot.files if (name, size) not in there]


def opened(queries: Queries, shared: SharedSnapshot) -> str:
    """Begin the transaction that keeps a shared snapshot; return the statement by which other sessions enter it."""
    queries.rows(shared.begin)
    return shared.enter.format(str(queries.rows(shared.export)[0][0]))
