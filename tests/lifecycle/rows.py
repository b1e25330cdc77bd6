"""Sinks of one's own that commit by themselves: a table of an SQLite file, which takes rows under a fence."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList, CleanPart
from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput


class Rows(CommittingSink):
    """A database table that takes rows under a fence, once; a burned fence, and all below, take none.

    `written` is the line as a run has written it: where it differs, somebody else has changed the row since.
    """

    kind = "rows"

    def __init__(self, path: Path | str) -> None:
        self.db = sqlite3.connect(path, check_same_thread=False)
        # Dropped wherever a test ends: Python 3.13 warns of a connection that nobody closes.
        weakref.finalize(self, self.db.close)
        self.db.execute("CREATE TABLE IF NOT EXISTS rows (fence INT, line TEXT, written TEXT)")
        self.db.execute("CREATE TABLE IF NOT EXISTS tokens (fence INT PRIMARY KEY)")

    def write(self, fence: int, lines: Sequence[str]) -> bool:
        with self.db:
            (top,) = self.db.execute("SELECT coalesce(max(fence), 0) FROM tokens").fetchone()
            if top >= 2 * fence:
                return False
            self.db.execute("INSERT INTO tokens VALUES (?)", (2 * fence,))
            self.db.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(fence, line, line) for line in lines])
        return True

    def burn(self, output: StoredOutput, fence: int) -> None:
        with self.db:
            self.db.execute("INSERT OR IGNORE INTO tokens VALUES (?)", (2 * fence - 1,))

    def landed(self, output: StoredOutput) -> bool:
        fences = set(output.run.fences)  # that of the one that wrote, and of those that took the run over
        return any(fence in fences for (fence,) in self.db.execute("SELECT DISTINCT fence FROM rows"))

    def lines(self) -> list[str]:
        return sorted(line for (line,) in self.db.execute("SELECT line FROM rows"))


class RowTables(CommittingSink):
    """Several such tables, one for each output."""

    kind = "row-tables"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[str, Rows] = {}

    def table(self, output: str) -> Rows:
        if output not in self._tables:
            self._tables[output] = Rows(self._folder / f"{output}.db")
        return self._tables[output]

    def burn(self, output: StoredOutput, fence: int) -> None:
        self.table(output.name).burn(output, fence)

    def landed(self, output: StoredOutput) -> bool:
        return self.table(output.name).landed(output)


@dataclass(frozen=True)
class Takeback:
    """The removal of the rows that were there when it was prepared, but for those that somebody else has changed."""

    db: sqlite3.Connection
    rows: Sequence[tuple[int]]

    def remove_staged(self) -> None:
        """Do nothing: nothing is staged."""

    def remove_visible(self) -> None:
        with self.db:
            self.db.executemany("DELETE FROM rows WHERE rowid = ? AND line IS written", self.rows)


class ErasableRows(Rows, CleanedSink):
    """Rows that a clean removes; it does not know what an earlier change has left."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.while_prepared: Callable[[], object] = lambda: None

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        return None

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        return CleanList(parts=(CleanPart.of(output),))

    def left(self, output: StoredOutput) -> CleanList | None:
        return None

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Takeback]:
        fences = [fence for part in listed.parts for fence in ground.output_of(part).run.fences]
        query = "SELECT rowid FROM rows WHERE fence = ?"
        there = [row for fence in fences for row in self.db.execute(query, [fence])]
        self.while_prepared()
        return [Takeback(self.db, there)]
