"""A kind of sink of a user's own, the smallest that commits by itself, and a script that writes to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore


class WarehouseSink(CommittingSink):
    """Rows in an SQLite file, which is the target."""

    kind = "warehouse"

    def write(self, target: str, token: str, rows: Sequence[str]) -> bool:
        """Add rows under the token of a run, in one transaction; False if its fence was used or burned before."""
        owner, _, _, fence = token.rsplit("/", 3)
        with opened(target, owner) as db:
            query = "UPDATE fences SET lowest_free = ? WHERE owner = ? AND lowest_free <= ?"
            if not db.execute(query, [int(fence) + 1, owner, int(fence)]).rowcount:
                return False
            db.executemany("INSERT INTO lines VALUES (?, ?, ?)", [(owner, int(fence), row) for row in rows])
        return True

    def burn(self, output: StoredOutput, fence: int) -> None:
        owner = f"{output.territory.namespace}/{output.territory.job}"
        with opened(output.entry.target, owner) as db:
            query = "UPDATE fences SET lowest_free = ? WHERE owner = ? AND lowest_free < ?"
            db.execute(query, [fence, owner, fence])

    def landed(self, output: StoredOutput) -> bool:
        owner = f"{output.territory.namespace}/{output.territory.job}"
        with opened(output.entry.target, owner) as db:
            found = {fence for (fence,) in db.execute("SELECT DISTINCT fence FROM lines WHERE owner = ?", [owner])}
        return not found.isdisjoint(output.run.fences)


@contextmanager
def opened(target: str, owner: str) -> Iterator[sqlite3.Connection]:
    """Open the file for one transaction."""
    with closing(sqlite3.connect(target)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS lines (owner TEXT, fence INT, line TEXT)")
        db.execute("CREATE TABLE IF NOT EXISTS fences (owner TEXT PRIMARY KEY, lowest_free INT)")
        db.execute("INSERT OR IGNORE INTO fences VALUES (?, 0)", [owner])
        yield db


def lines_of(target: str) -> list[str]:
    """Return the rows in the target."""
    with opened(target, "reader") as db:
        return [line for (line,) in db.execute("SELECT line FROM lines")]


def load_orders(store: BookmarkStore, fetch: Callable[[int], list[str]], target: str) -> None:
    with BookmarkedJob(name="orders.load", store=store) as job:
        cursor = job.state("cursor")
        rows = fetch(cursor.get(0))
        cursor.set(cursor.get(0) + len(rows))
        # The sink comes last: its rows can't be taken back, so all that the run commits has to be known by now.
        job.active_run.place("rows", StagingRequest("warehouse", target))
        WarehouseSink().write(target, job.run_token, rows)
        job.active_run.staged("rows", Staged((), rows=len(rows)))
