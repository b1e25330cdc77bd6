"""Many writers at a time, and who ends what they have prepared."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from queue import Queue
from random import Random

from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.databases.database import Database, open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from tests.chaos.writers.session import open_session
from tests.chaos.writers.transaction import Transaction
from tools.patience import STUCK_S

_WRITERS_OF_AN_ENDER = 5
_UNKNOWN_XID = "1397"
_AT_A_TIME = 20  # transactions by one session


@dataclass
class Writers:
    """Threads that write until `stop`; then each ends the transaction that it is in.

    `faults` has what should not have happened.
    """

    login: DatabaseLogin
    count: int
    longest: float
    seed: int
    stop: threading.Event = field(default_factory=threading.Event)
    faults: list[BaseException] = field(default_factory=list)
    ended: int = 0
    given_up: int = 0
    _prepared: Queue[str | None] = field(default_factory=Queue)
    _threads: list[threading.Thread] = field(default_factory=list)
    _enders: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start all."""
        self._threads = [self._thread(self._write, number) for number in range(self.count)]
        self._enders = [
            self._thread(self._end_prepared, number) for number in range(1 + self.count // _WRITERS_OF_AN_ENDER)
        ]
        if self.login.dialect != "postgresql":
            self._threads.append(self._thread(self._lock, 0))

    def join(self) -> None:
        """Wait until all have ended, and what they have prepared as well.

        Raises:
            RuntimeError: one does not end.
        """
        _join(self._threads)
        for _ in self._enders:
            self._prepared.put(None)
        _join(self._enders)

    def _thread(self, work: Callable[[int], None], number: int) -> threading.Thread:
        def run() -> None:
            try:
                work(number)
            except Exception as error:  # noqa: BLE001 (it is told at the end, and fails the race)
                self.faults.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _idle(self, seconds: float) -> None:
        self.stop.wait(seconds)

    def _write(self, number: int) -> None:
        random, made = Random(f"{self.seed}/{number}"), 0
        while not self.stop.is_set():
            with closing(open_session(self.login)) as session:
                for _ in range(_AT_A_TIME):
                    made += 1
                    name = f"w{number}-{made}"
                    each = Transaction(session, random, self.longest, self._idle, name, self._prepared)
                    is_ended = each.play()
                    self.ended, self.given_up = self.ended + is_ended, self.given_up + (not is_ended)
                    self._idle(self.longest * random.random() ** 3 / 10)
                    if self.stop.is_set() or each.has_closed:
                        break

    def _end_prepared(self, number: int) -> None:
        random = Random(f"{self.seed}/end/{number}")
        with open_database(self.login) as database:
            while (statement := self._prepared.get()) is not None:
                self._idle(self.longest * random.random() ** 2 / 4)
                _execute_once_known(database, statement)

    def _lock(self, number: int) -> None:
        """Make statements wait for their table again and again, which have their time already."""
        with open_database(self.login) as database:
            while not self.stop.wait(self.longest / 5):
                database.execute("LOCK TABLES now_rows WRITE")
                self._idle(self.longest / 10)
                database.execute("UNLOCK TABLES")


def _execute_once_known(database: Database, statement: str) -> None:
    """End a prepared transaction, as soon as the server has noticed that the session that prepared it has gone."""
    while True:
        try:
            database.execute(statement)
        except DatabaseError as error:
            if error.code != _UNKNOWN_XID:
                raise
            threading.Event().wait(0.05)
        else:
            return


def _join(threads: list[threading.Thread]) -> None:
    deadline = time.monotonic() + STUCK_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if stuck := [thread.name for thread in threads if thread.is_alive()]:
        faulthandler.dump_traceback()
        raise RuntimeError(f"{len(stuck)} writers do not end: {', '.join(stuck)}")
