"""What the runs of an upstream have written to Iceberg tables: the data files that their own snapshots have added.

They stay where they are until the snapshot expires. A run's snapshot is found by the id under which it was staged: that
which brought it into the table names it, or it was made the current one itself.

how it was written       what reads its rows
append                   the snapshot, read as an append
overwrite                the table as of the snapshot
dynamic overwrite        the inserts among what the snapshot has changed
a part of its files      of one of these, the rows that lie in these files
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.iceberg.position import AppendedRows, ChangedRows, WholeTable
from airflow_bookmarks.sources.tables.runs import advice, check_not_by_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.iceberg.position import TablePiece
    from airflow_bookmarks.sources.iceberg.snapshots import SnapshotLog, TableSnapshotInfo

_WAP_ID, _PUBLISHED = "wap.id", "published-wap-id"


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """The data files that a snapshot has added to its table, and those that it has removed, as Iceberg names them."""

    added: Sequence[str]
    removed: Sequence[str] = ()


class LookedAtTable(Protocol):
    """A table as Spark or pyiceberg tells it."""

    @property
    def location(self) -> str:
        """Its folder."""
        ...

    def log(self) -> SnapshotLog:
        """Return its snapshots."""
        ...

    def files(self, snapshot: int) -> SnapshotFiles:
        """Return what a snapshot, which is kept, has added and removed."""
        ...


# Opens the table of an output.
OpenTable: TypeAlias = "Callable[[OutputEntry], LookedAtTable]"


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What reads the rows of one run: those of a piece that lie in some files; None: all.

    Of `ChangedRows` they are the inserts.
    """

    piece: TablePiece
    files: tuple[str, ...] | None = None


class IcebergRuns:
    """What runs of one upstream have written to Iceberg tables; see `TableRuns`.

    Args:
        what: consumer and upstream, for errors.
        open_table: opens the table of an output.
    """

    def __init__(self, what: str, open_table: OpenTable) -> None:
        self._what, self._open = what, open_table
        self._tables: dict[str, tuple[LookedAtTable, SnapshotLog]] = {}
        self._files: dict[tuple[str, int], SnapshotFiles] = {}

    def folder(self, entry: OutputEntry) -> str:
        """See `TableRuns.folder`."""
        return entry.metadata.table_folder or self._table(entry)[0].location

    def files(self, number: int, entry: OutputEntry) -> Mapping[str, str]:
        """Return the files that a run has added, as Iceberg names them, by their paths; see `TableRuns.files`."""
        return self._by_path(number, entry, self._written(number, entry).added)

    def removed(self, number: int, entry: OutputEntry) -> Collection[str]:
        """See `TableRuns.removed`."""
        return self._by_path(number, entry, self._written(number, entry).removed)

    def rows(self, written: Iterable[tuple[int, OutputEntry]], wanted: Collection[str]) -> list[WrittenRows]:
        """Return what reads those of the files of some runs that are wanted, run by run."""
        return [self._rows(number, entry, wanted) for number, entry in written]

    def _rows(self, number: int, entry: OutputEntry, wanted: Collection[str]) -> WrittenRows:
        files = self.files(number, entry)
        some = [named for path, named in files.items() if path in wanted]
        is_whole = entry.metadata.mode == Mode.OVERWRITE
        return rows_of(self._snapshot(number, entry), some, is_all=len(some) == len(files), is_whole=is_whole)

    def _written(self, number: int, entry: OutputEntry) -> SnapshotFiles:
        snapshot = self._snapshot(number, entry)
        key = (entry.target, snapshot.id)
        if key not in self._files:
            self._files[key] = self._table(entry)[0].files(snapshot.id)
        return self._files[key]

    def _snapshot(self, number: int, entry: OutputEntry) -> TableSnapshotInfo:
        what = self._of_run(number, entry)
        check_not_by_key(what, entry, "iceberg")
        found = snapshot_of(self._table(entry)[1], entry.place)
        if found is None:
            raise SourceError(
                f"{what}, and the table has no snapshot of it any more: it has expired, or the table was made anew. "
                f"{advice('iceberg')}"
            )
        return found

    def _table(self, entry: OutputEntry) -> tuple[LookedAtTable, SnapshotLog]:
        if entry.target not in self._tables:
            table = self._open(entry)
            self._tables[entry.target] = (table, table.log())
        return self._tables[entry.target]

    def _by_path(self, number: int, entry: OutputEntry, names: Iterable[str]) -> Mapping[str, str]:
        """Return files by the one spelling of their paths."""
        folder = self.folder(entry)
        opened = open_filesystem(folder)
        paths = {opened.canonical(name): name for name in names}
        below = f"{opened.canonical(folder).rstrip('/')}/"
        for path in paths:
            if not path.startswith(below):
                raise SourceError(
                    f"{self._of_run(number, entry)}, whose data files lie outside of its folder, such as {path!r}. "
                    f"{advice('iceberg')}"
                )
        return paths

    def _of_run(self, number: int, entry: OutputEntry) -> str:
        return f"{self._what}: run {number} wrote to the Iceberg table {entry.target}"


def snapshot_of(table: SnapshotLog, wap_id: str) -> TableSnapshotInfo | None:
    """Return the snapshot that has the rows staged under an id: of what readers have seen, or else of all that is kept.

    What was rolled back, and what was staged and brought in by another snapshot, has the same rows.
    """
    every = (*table.line(table.current), *table.snapshots.values())
    return next((each for each in every if wap_id in (each.summary.get(_PUBLISHED), each.summary.get(_WAP_ID))), None)


def rows_of(snapshot: TableSnapshotInfo, files: Sequence[str], *, is_all: bool, is_whole: bool) -> WrittenRows:
    """Return what reads the rows that a snapshot has brought.

    Args:
        files: those of its files that are read, as Iceberg names them.
        is_all: whether these are all of them.
        is_whole: whether it has replaced all rows of the table.
    """
    only = None if is_all else tuple(files)
    if snapshot.is_append and snapshot.parent is not None:
        return WrittenRows(AppendedRows(snapshot.parent, snapshot.id), only)
    if is_whole or snapshot.is_first:
        return WrittenRows(WholeTable(snapshot.id), only)
    if is_all and snapshot.parent is not None:
        return WrittenRows(ChangedRows(snapshot.parent, snapshot.id))
    return WrittenRows(WholeTable(snapshot.id), tuple(files))
