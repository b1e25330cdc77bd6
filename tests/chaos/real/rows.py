"""A sink that commits by itself: an SQLite table that takes rows under a fence once, and none under a burned one."""

from __future__ import annotations

import sqlite3
import weakref
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from tools.patience import STUCK_S

KIND = "rows"


class RowSink(CommittingSink):
    """Rows of one table, and the tokens under which they came, in one transaction.

    A write under fence `f` leaves the token `2f`; a burn by whoever holds fence `f` leaves `2f - 1`. Whatever is not
    above the highest token finds it taken.
    """

    kind = KIND

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=STUCK_S, check_same_thread=False)
        # Dropped wherever a test ends: Python 3.13 warns of a connection that nobody closes.
        weakref.finalize(self, self._db.close)
        with self._db:
            self._db.execute("CREATE TABLE IF NOT EXISTS rows (fence INT, line TEXT)")
            self._db.execute("CREATE TABLE IF NOT EXISTS tokens (fence INT PRIMARY KEY)")

    def write(self, fence: int, lines: Sequence[str]) -> bool:
        """Write all lines, or none where the token is taken or burned; return whether they were written."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            (top,) = self._db.execute("SELECT coalesce(max(fence), 0) FROM tokens").fetchone()
            if top >= 2 * fence:
                return False
            self._db.execute("INSERT INTO tokens VALUES (?)", (2 * fence,))
            self._db.executemany("INSERT INTO rows VALUES (?, ?)", [(fence, line) for line in lines])
        return True

    def burn(self, output: StoredOutput, fence: int) -> None:
        """See `CommittingSink.burn`."""
        with self._db:
            self._db.execute("INSERT OR IGNORE INTO tokens VALUES (?)", (2 * fence - 1,))

    def landed(self, output: StoredOutput) -> bool:
        """See `CommittingSink.landed`."""
        # All of its fences: a run that was taken over has its rows under the fence of the one that wrote them.
        marks = ",".join("?" * len(output.run.fences))
        query = f"SELECT count(*) FROM rows WHERE fence IN ({marks})"  # question marks alone
        (count,) = self._db.execute(query, output.run.fences).fetchone()
        return bool(count)

    def lines(self) -> Counter[str]:
        """Return the rows, with how often each is there."""
        return Counter(line for (line,) in self._db.execute("SELECT line FROM rows"))

    def close(self) -> None:
        """Close the file."""
        self._db.close()
