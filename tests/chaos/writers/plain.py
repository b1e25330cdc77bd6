"""The plain way: the greatest key now, and what lies between it and the one of before."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from random import Random

from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.databases.login import DatabaseLogin
from tests.chaos.writers.table import RaceTable, Rows


@dataclass
class PlainReader:
    """Reads one table by its first key until `stop`, and once more."""

    login: DatabaseLogin
    table: RaceTable
    seed: int
    stop: threading.Event
    rows: Rows = field(default_factory=Rows)
    faults: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last: str | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def look(self, database: Database) -> None:
        """Read once."""
        dialect, name = dialect_named(self.login.dialect), self.table.keys[0]
        key = KeyColumn(name, KeyType.INTEGER if name == "id" else KeyType.LOCAL_TIME)
        text = dialect.as_text(KeyColumn(name, key.type)).replace(dialect.quote(name), f"max({name})")
        ((high,),) = database.rows(f"SELECT {text} FROM {self.table.name}")
        if high is None:
            return
        after = f"{name} > '{self._last}' AND " if self._last is not None else ""
        self.rows.update(self.table.rows(database, f"{after}{name} <= '{high}'"))
        self._last = str(high)

    def _run(self) -> None:
        random = Random(f"{self.seed}/plain/{self.table.name}")
        try:
            with open_database(self.login) as database:
                while not self.stop.wait(random.random()):
                    self.look(database)
                self.look(database)
        except Exception as error:  # noqa: BLE001 (it is told at the end, and fails the race)
            self.faults.append(error)
