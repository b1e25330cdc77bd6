"""Bookmarked runs over one table, which are killed at any step of the protocol and made again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.core.selection.reason import SETTLING
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.jdbc.options import TableOptions
from airflow_bookmarks.sources.jdbc.position import TablePlan
from airflow_bookmarks.sources.jdbc.recipe import Recipe, Relation
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import SimulatedCrash
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.chaos.writers.table import RaceTable, Rows
from tools.patience import STUCK_S

_KILLED = 0.3  # of the runs
_POINTS = tuple(Failpoint)


@dataclass
class Reader:
    """Reads one table until `stop`, and then until nothing is left."""

    login: DatabaseLogin
    table: RaceTable
    folder: Path
    seed: int
    stop: threading.Event
    runs: int = 0
    kills: int = 0
    faults: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed}/{self.table.title}")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait until nothing is left to read."""
        self._thread.join()

    def read(self) -> Rows:
        """Return what is in the target of its job."""
        files = [path for path in self.folder.rglob("*.txt") if "_bookmarks" not in path.parts]
        lines = [line.split() for path in files for line in path.read_text().splitlines()]
        return Counter((int(id), int(version)) for id, version in lines)

    def _run(self) -> None:
        try:
            with memory_store() as store:
                while not self.stop.wait(self._random.random() / 2):
                    self._attempts(store)
                deadline = time.monotonic() + STUCK_S
                while self._attempts(store):
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"{self.table.title}: rows are still not settled, and nobody writes")
        except Exception as error:  # noqa: BLE001 (it is told at the end, and fails the race)
            self.faults.append(error)

    def _attempts(self, store: BookmarkStore) -> bool:
        """Make one run, again as often as it is killed; whether it has left or read anything."""
        self.runs += 1
        attempt = 1
        while True:
            point = self._random.choice(_POINTS) if self._random.random() < _KILLED else None
            try:
                return self._attempt(store, attempt, point)
            except SimulatedCrash:
                self.kills, attempt = self.kills + 1, attempt + 1

    def _attempt(self, store: BookmarkStore, attempt: int, point: Failpoint | None) -> bool:
        driver = DriverStore(store, point, lambda entry: None)
        identity = RunIdentity(f"execution-{self.runs}", attempt)
        run = ActiveRun.begin(driver, self.table.title, identity, driver.environment)
        plan = run.plan("rows", self._source())
        lines = [] if plan.is_empty else self._lines(plan)
        staging = run.place(
            "rows", StagingRequest("files", str(self.folder), stats={"format": "text", "mode": "append"})
        )
        Path(staging).mkdir(parents=True, exist_ok=True)
        if lines:
            (Path(staging) / f"{self.runs}-{attempt}.txt").write_text("\n".join(lines) + "\n")
        schema = '{"fields":[]}'
        staged = collect_staged(
            LocalFileSystem(),
            staging,
            str(self.folder),
            run.file_token,
            Mode.APPEND,
            rows=len(lines),
            schema=schema,
        )
        run.staged("rows", staged)
        run.commit()
        return bool(lines) or plan.has_more or SETTLING in plan.skipped

    def _source(self) -> TableSource:
        # One that does not wait ends its window before who is open; one that waits reads up to the last row.
        waits = self._random.choice([0.0, 0.0, 0.5, 2.0, 60.0])
        bound = Bound(max_rows=self._random.randint(1, 300)) if self._random.random() < 0.3 else UNBOUND
        options = TableOptions(
            keys=self.table.keys,
            settle_for=timedelta(seconds=waits),
            lookback=self.table.lookback,
            zone="UTC",
            bound=bound,
        )
        recipe = Recipe("conn:race", self.login.dialect, Relation((self.table.name,)), options)
        return TableSource(lambda: open_database(self.login), recipe, self.table.title)

    def _lines(self, plan: TablePlan) -> list[str]:
        where = plan.window.condition(dialect_named(self.login.dialect), plan.leads_to.table)
        with open_database(self.login) as database:
            return [f"{id} {version}" for id, version in self.table.rows(database, where).elements()]
