"""The race: writers, readers with bookmarks, and readers without, over the same tables at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.registry import registered
from tests.chaos.writers.plain import PlainReader
from tests.chaos.writers.reader import Reader
from tests.chaos.writers.table import MARIADB, POSTGRESQL, RaceTable, Rows, create_tables
from tests.chaos.writers.writers import Writers

_KEPT = "serial_rows"  # of which one row is late by arrangement


@dataclass(frozen=True)
class Figures:
    """What became of the rows of one table."""

    table: RaceTable
    rows: int
    runs: int
    kills: int
    lost: int
    twice: int
    lost_plainly: int
    twice_plainly: int

    @property
    def is_right(self) -> bool:
        """Whether each row was read once, as far as that is promised."""
        return not self.twice and (not self.lost or not self.table.is_exact)

    def __str__(self) -> str:
        late = "" if self.table.is_exact else " (came late: by CACHE 20, or a slow clock)"
        return (
            f"{self.table.title:21} {self.rows:7,} rows, {self.runs:4} runs, {self.kills:4} kills: "
            f"lost {self.lost}{late}, twice {self.twice}; the plain way lost {self.lost_plainly:,}, "
            f"twice {self.twice_plainly:,}"
        )


@dataclass(frozen=True)
class Race:
    """One race in an empty database. Transactions are open for up to `longest` seconds."""

    login: DatabaseLogin
    folder: Path
    seconds: float
    writers: int
    longest: float
    seed: int

    def play(self, say: Callable[[str], None] = print) -> list[Figures]:
        """Play it, and return the figures of each table.

        Raises:
            ExceptionGroup: a writer or reader ended with an error.
        """
        tables = POSTGRESQL if self.login.dialect == "postgresql" else MARIADB
        reading = threading.Event()
        with open_database(self.login) as database, registered(TableKind()):
            create_tables(database, tables)
            readers = [Reader(self.login, each, self.folder / each.title, self.seed, reading) for each in tables]
            plain = [PlainReader(self.login, each, self.seed, reading) for each in tables]
            writers = Writers(self.login, self.writers, self.longest, self.seed)
            self._be_late(database, next(each for each in plain if each.table.name == _KEPT))
            racers: tuple[Writers | Reader | PlainReader, ...] = (writers, *readers, *plain)
            try:
                for racer in racers:
                    racer.start()
                threading.Event().wait(self.seconds)
            finally:
                writers.stop.set()
                writers.join()
                _check(writers.faults)  # with a transaction that nobody ends, the readers would wait for ever
                reading.set()
                for racer in racers:
                    racer.join()
            _check([fault for each in racers for fault in each.faults])
            say(f"{writers.ended:,} transactions ended, {writers.given_up:,} gave up because they met another")
            return [self._figures(database, *each) for each in zip(readers, plain, strict=True)]

    def _be_late(self, database: Database, plain: PlainReader) -> None:
        """Commit a row after the plain way has read one with a higher key, which does not depend on chance."""
        insert = f"INSERT INTO {_KEPT} (version) VALUES (0)"
        with open_database(self.login) as late, late.transaction():
            late.execute(insert)
            database.execute(insert)
            plain.look(database)

    def _figures(self, database: Database, reader: Reader, plain: PlainReader) -> Figures:
        there, read = reader.table.rows(database), reader.read()
        return Figures(
            reader.table,
            len(there),
            reader.runs,
            reader.kills,
            _lost(there, read),
            _twice(read),
            _lost(there, plain.rows),
            _twice(plain.rows),
        )


def _check(faults: list[BaseException]) -> None:
    if faults:
        raise BaseExceptionGroup("the race ended with errors", faults)


def _lost(there: Rows, read: Rows) -> int:
    return sum(each not in read for each in there)


def _twice(read: Rows) -> int:
    return sum(count - 1 for count in read.values())
