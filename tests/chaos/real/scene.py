"""Where these tests play: a raw folder, a target, and a store that several processes share."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.uri import StoreAddress
from tests.chaos.real.driver import FILES
from tests.chaos.real.order import JOB, CommitPath, Order
from tests.chaos.real.process import DriverProcess, run_driver
from tests.chaos.real.rows import RowSink

IS_FULL = os.environ.get("CHAOS") == "full"  # whether all is played, or what `make test` has time for


@dataclass
class Scene:
    """Files below `root`, and the bookmark of the job that copies them, in the store that `store_uri` names."""

    root: Path
    store: BookmarkStore
    store_uri: str
    path: CommitPath = CommitPath.APPEND
    _seconds: Iterator[int] = field(default_factory=lambda: count(1_700_000_000))

    def land(self, name: str, *lines: str) -> None:
        """Write a raw file, each dated one second after the one before."""
        path = self.root / "raw" / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        seconds = next(self._seconds)
        os.utime(path, (seconds, seconds))

    def land_first(self) -> None:
        """Let land what the first run reads."""
        self.land("a", "a1", "a1")
        self.land("b", "b")

    def land_more(self) -> None:
        """Let land new rows and, where the target is overwritten, another version of old ones."""
        if self.path is CommitPath.OVERWRITE:
            self.land("a", "a2", "a2", "a3")
        self.land("c", "c", "cc")
        self.land("d", "d")

    # ---- drivers

    def order(self, attempt: int = 1, **given: Any) -> Order:
        return Order(str(self.root), self.store_uri, self.path, attempt, **given)

    def drive(self, attempt: int = 1, **given: Any) -> int:
        """Run a driver to its end; return its exit code, negative for a signal."""
        return run_driver(self.order(attempt, **given))

    def run_first(self) -> None:
        """Make the first run, of another execution."""
        assert self.drive(run_id="before") == 0

    def freeze(self, driver: DriverProcess) -> None:
        """Freeze a driver that waits at a point, between two renewals of its lease.

        In the middle of one it would take the write lock of SQLite along, and nobody could write until it goes on.
        """
        driver.freeze()
        while self._is_locked():
            driver.thaw()
            driver.freeze()

    def _is_locked(self) -> bool:
        address = StoreAddress.parse(self.store_uri)
        if address.scheme != "sqlite":
            return False
        connection = sqlite3.connect(address.table, timeout=0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        finally:
            connection.close()
        return False

    def outlast_lease(self) -> None:
        """Look at the store until the lease on the job has run out."""
        while (lease := self.head.lease) is not None and utc_now() < lease.expires_at:
            continue

    # ---- looking

    @property
    def head(self) -> Head:
        return self.store.head(JOB)

    def runs(self) -> list[Run]:
        return list(self.store.runs(JOB))

    def sources(self) -> Counter[str]:
        """Return the rows that lie in the raw folder."""
        return _lines(self.root / "raw")

    def target(self) -> Counter[str]:
        """Return the rows that a reader of the target sees."""
        if self.path is not CommitPath.BY_ITSELF:
            return _lines(self.root / JOB)
        sink = RowSink(self.root / "rows.db")
        lines = sink.lines()
        sink.close()
        return lines

    def staged(self) -> list[Path]:
        """Return what still lies staged."""
        return [path for path in self.root.glob(f"{JOB}/_bookmarks/**/*") if path.is_file()]

    @property
    def lost(self) -> int:
        return (self.sources() - self.target()).total()

    @property
    def doubled(self) -> int:
        return (self.target() - self.sources()).total()

    def check_whole(self) -> None:
        """Make sure that each row is there once, and that nothing is staged, due, open or held."""
        assert self.target() == self.sources()
        assert self.staged() == []
        head = self.head
        assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
        assert self.store.open_runs(JOB, head) == []


def _lines(folder: Path) -> Counter[str]:
    if not folder.exists():
        return Counter()
    paths = FILES.list(str(folder), recursive=True).files.paths
    return Counter(line for path in paths for line in Path(path).read_text().splitlines())
