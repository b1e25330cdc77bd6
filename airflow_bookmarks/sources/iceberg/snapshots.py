"""The snapshots of an Iceberg table, as any of its readers tells them.

what a writer does                      operation     it is
INSERT, a MERGE that matches nothing    append        an append
UPDATE, DELETE, MERGE, overwrite        overwrite     a change
DELETE of whole files                   delete        a change, if it removed anything
compaction, rewriting of manifests      replace       no news
columns, properties, tags               none          no news

The specification leaves counts to the writer. One that counts files leaves out what is zero; some, among them DuckDB,
count nothing: what such a snapshot did is not known, so it is taken to have done what its operation can do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.text.count import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DATA_FILES, _DELETE_FILES = ("added-data-files", "deleted-data-files"), ("added-delete-files", "removed-delete-files")
# One of these is there wherever the writer counts files, also where it added and removed none.
_COUNTED = (*_DATA_FILES, *_DELETE_FILES, "total-data-files", "changed-partition-count")


@dataclass(frozen=True, slots=True)
class TableSnapshotInfo:
    """One snapshot.

    Attributes:
        id: Its id, a random number that no other snapshot has.
        parent: The id of the one before; None: it was the first.
        operation: "append", "overwrite", "delete" or "replace"; "": it does not say.
        time_ms: When it was committed, in ms since 1970 UTC.
        summary: What its writer tells: counts, as text.
    """

    id: int
    parent: int | None
    operation: str
    time_ms: int
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_append(self) -> bool:
        """Whether it added rows and did nothing else."""
        return self.operation == "append"

    @property
    def changes_rows(self) -> bool:
        """Whether it did more than append rows: a compaction and a delete that met no row did not."""
        if self.operation in ("append", "replace"):
            return False
        return not self.counts_files or any(self.count(name) for name in (*_DATA_FILES, *_DELETE_FILES))

    @property
    def has_news(self) -> bool:
        """Whether rows came, changed or went."""
        return self.changes_rows or (self.is_append and self.adds_files)

    @property
    def counts_files(self) -> bool:
        """Whether its writer counts files, so that a count which is not there is zero."""
        return any(name in self.summary for name in _COUNTED)

    @property
    def adds_files(self) -> bool:
        """Whether it added data files; so it is taken where nobody counted them."""
        return not self.counts_files or self.count("added-data-files") != 0

    @property
    def files(self) -> int | None:
        """How many files hold what it did; None: not known."""
        if not self.counts_files:
            return None
        return sum(map(self.count, (*_DATA_FILES, "added-delete-files")))

    @property
    def size_bytes(self) -> int | None:
        """How many bytes the files have that it added; None: not known."""
        size = self.told("added-files-size")
        return 0 if size is None and not self.adds_files else size

    @property
    def is_first(self) -> bool:
        """Whether the table was empty before it. Some writers take the parent from what is left when they expire it."""
        files = self.told("total-data-files")
        is_all = files is None or files == self.count("added-data-files")
        return self.parent is None and is_all and not self.count("deleted-data-files")

    def count(self, name: str) -> int:
        """Return a count of the summary; what it does not name is 0: see `counts_files`."""
        return int(self.summary.get(name, 0))

    def told(self, name: str) -> int | None:
        """Return a count of the summary; None where it does not say."""
        return int(self.summary[name]) if name in self.summary else None

    def files_in_words(self) -> str:
        """Say how many files it wrote and removed."""
        if not self.counts_files:
            return "how many files, its writer does not say"
        counts = [(self.count("added-data-files"), "written"), (self.count("deleted-data-files"), "removed")]
        counts.append((self.count("added-delete-files"), "with deletes written"))
        return " and ".join(f"{counted(count, 'file')} {what}" for count, what in counts if count)

    def in_words(self) -> str:
        """Say what it was."""
        return f"snapshot {self.id} ({self.operation or 'no operation named'})"


@dataclass(frozen=True, slots=True)
class SnapshotLog:
    """The snapshots of a table that are kept, by id, and the one that readers see; None: the table has none yet."""

    snapshots: Mapping[int, TableSnapshotInfo]
    current: int | None

    @property
    def newest(self) -> TableSnapshotInfo | None:
        """The snapshot that readers see."""
        return None if self.current is None else self.snapshots[self.current]

    def line(self, end: int | None) -> Iterator[TableSnapshotInfo]:
        """Yield a snapshot, its parent, and so on, as far as they are kept."""
        while end is not None and end in self.snapshots:
            yield self.snapshots[end]
            end = self.snapshots[end].parent

    def has_all_since_the_first(self) -> bool:
        """Whether none of the snapshots that led to the current one has expired."""
        oldest = None
        for oldest in self.line(self.current):  # noqa: B007 - the last one is wanted
            pass
        return oldest is None or oldest.is_first

    def since(self, start: int, end: int | None = None) -> list[TableSnapshotInfo] | None:
        """Return the snapshots behind `start` that led to `end`, oldest first; None: there is no way back.

        `start` itself may have expired, as long as the one behind it is there. `end` None: it is the current one.
        """
        found: list[TableSnapshotInfo] = []
        for each in self.line(self.current if end is None else end):
            if each.id == start:
                return found[::-1]
            found.append(each)
            if each.parent == start and start not in self.snapshots:
                return found[::-1]
        return None

    def forked_at(self, start: int) -> int | None:
        """Return the newest snapshot before `start` that led to the current one, too; None: none that is kept did."""
        ours = {each.id for each in self.line(self.current)}
        return next((each.id for each in self.line(start) if each.id in ours), None)

    def last_before(self, time_ms: float) -> TableSnapshotInfo | None:
        """Return the last snapshot that readers saw before a time; None where all that are kept are later."""
        return next((each for each in self.line(self.current) if each.time_ms < time_ms), None)
