"""Where these tests play: raw files, a folder and two tables as targets, and a store that several processes share.

A line is `<number>,<version>,<0, or 1 where the number is deleted>`.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.real.driver import FILES
from tests.chaos.real.order import JOB, CommitPath
from tests.chaos.real.process import DriverProcess
from tests.chaos.tables.driver import main
from tests.chaos.tables.order import APPENDED, UPSERTED, TablesOrder


@dataclass
class TablesScene:
    """Files below `root`, tables in `warehouse`, and the bookmark of the job, in the store that `store_uri` names."""

    root: Path
    warehouse: DatabaseLogin
    store: BookmarkStore
    store_uri: str
    landed: int = 0

    def prepare(self) -> None:
        """Make the tables, and let a first run fill them."""
        self.run(
            f"CREATE TABLE {APPENDED} (line varchar(40) NOT NULL)",
            f"CREATE TABLE {UPSERTED} (id int NOT NULL PRIMARY KEY, version int NOT NULL)",
        )
        self.land("1,1,0", "2,1,0", "3,1,0")
        assert self.drive(run_id="before") == 0
        self.land("1,2,0", "2,2,1", "4,2,0", "4,1,0")
        self.land("3,3,1", "3,4,0", "5,2,0", "5,3,1")

    def land(self, *lines: str) -> None:
        """Write a raw file, each dated one second after the one before."""
        self.landed += 1
        path = self.root / "raw" / f"{self.landed}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, (1_700_000_000 + self.landed,) * 2)

    # ---- processes

    def order(self, attempt: int = 1, **given: Any) -> TablesOrder:
        return TablesOrder(
            str(self.root), self.store_uri, CommitPath.APPEND, attempt, warehouse=self.warehouse, **given
        )

    def start(self, attempt: int = 1, **given: Any) -> DriverProcess:
        """Start a driver, or a worker; as a context it is killed at the end."""
        return DriverProcess(self.order(attempt, **given), main)

    def drive(self, attempt: int = 1, **given: Any) -> int:
        """Run a driver to its end; return its exit code, negative for a signal."""
        with self.start(attempt, **given) as driver:
            return driver.wait()

    def work(self, attempt: int = 1, **given: Any) -> int:
        """Run the worker of an attempt whose driver has ended; return its exit code."""
        return self.drive(attempt, is_worker=True, **given)

    def finish(self, attempt: int = 2) -> None:
        """Make the next attempt, which settles what is left, and a run after it."""
        assert self.drive(attempt) == 0, self.order(attempt).said.read_text()
        assert self.drive(run_id="after") == 0

    # ---- looking

    def run(self, *statements: str) -> None:
        with open_database(self.warehouse) as database:
            for statement in statements:
                database.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with open_database(self.warehouse) as database:
            return database.rows(query)

    def sources(self) -> Counter[str]:
        """Return the lines that lie in the raw folder."""
        return _lines(self.root / "raw")

    def targets(self) -> tuple[Counter[str], Counter[str], dict[int, int]]:
        """Return what a reader sees: lines in the folder, lines in one table, versions by number in the other."""
        lines = Counter(line for (line,) in self.rows(f"SELECT line FROM {APPENDED}"))
        newest = {int(number): int(version) for number, version in self.rows(f"SELECT id, version FROM {UPSERTED}")}
        return _lines(self.root / JOB), lines, newest

    def expected(self) -> tuple[Counter[str], Counter[str], dict[int, int]]:
        """Return what the targets have to hold for the raw files that are there."""
        rows = [tuple(map(int, line.split(","))) for line in self.sources()]
        newest = {number: max((v, gone) for n, v, gone in rows if n == number) for number, _, _ in rows}
        return self.sources(), self.sources(), {n: version for n, (version, gone) in newest.items() if not gone}

    def stage_tables(self) -> list[str]:
        return [name for (name,) in self.rows(catalog.tables_query(self.warehouse.dialect, None, "_bm_"))]

    def staged_files(self) -> list[Path]:
        return [path for path in self.root.glob(f"{JOB}/_bookmarks/**/*") if path.is_file()]

    def check_whole(self) -> None:
        """Make sure that each row is in each target once, and that nothing is staged, due, open or held."""
        assert self.targets() == self.expected()
        assert (self.stage_tables(), self.staged_files()) == ([], [])
        head = self.store.head(JOB)
        assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
        assert self.store.open_runs(JOB, head) == []


def _lines(folder: Path) -> Counter[str]:
    if not folder.exists():
        return Counter()
    paths = FILES.list(str(folder), recursive=True).files.paths
    return Counter(line for path in paths for line in Path(path).read_text().splitlines())
