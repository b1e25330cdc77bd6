"""One random transaction: what it writes, how long it is open, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Queue
from random import Random

from airflow_bookmarks.core.errors import DatabaseError
from tests.chaos.writers.session import Session
from tests.chaos.writers.table import UPDATED

# Two transactions met, and one gives up: serialisation, deadlock, and a row that is locked for too long.
_MET = frozenset({"40001", "40P01", "55P03", "1213", "1205", "1020"})
_LEVELS = ("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")


@dataclass
class Transaction:
    """One transaction in a session.

    `idle` waits within it. What it prepares, another session ends: by a statement in `prepared`.
    """

    session: Session
    random: Random
    longest: float
    idle: Callable[[float], None]
    name: str
    prepared: Queue[str | None] = field(repr=False)
    has_closed: bool = False  # its session

    @property
    def _is_postgresql(self) -> bool:
        return self.session.dialect == "postgresql"

    def play(self) -> bool:
        """Make it; whether it came to its end."""
        # Most are short; some are as long as may be.
        left = self.longest * self.random.random() ** 3
        is_prepared = self.random.random() < 0.15
        try:
            self._begin(is_prepared=is_prepared)
            steps = list(self._steps())
            for statement in steps:
                self.idle(left / len(steps))
                self.session.execute(statement)
            self._end(is_prepared=is_prepared)
        except DatabaseError as error:
            if error.code not in _MET:
                raise
            self._give_up(is_prepared=is_prepared)
            return False
        return True

    def _begin(self, *, is_prepared: bool) -> None:
        level = self.random.choice(_LEVELS)
        if self._is_postgresql:
            self.session.execute(f"SET TIME ZONE '{self.random.choice(['UTC', 'America/New_York', 'Asia/Tokyo'])}'")
            self.session.execute("SET lock_timeout = '5s'")
            self.session.execute(f"BEGIN ISOLATION LEVEL {level}")
        else:
            self.session.execute("SET innodb_lock_wait_timeout = 5")
            self.session.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            self.session.execute(f"XA START '{self.name}'" if is_prepared else "START TRANSACTION")

    def _end(self, *, is_prepared: bool) -> None:
        commits = self.random.random() < 0.8
        if not is_prepared:
            self.session.execute("COMMIT" if commits else "ROLLBACK")
        elif self._is_postgresql:
            self.session.execute(f"PREPARE TRANSACTION '{self.name}'")
            self.prepared.put(f"{'COMMIT' if commits else 'ROLLBACK'} PREPARED '{self.name}'")
        else:
            self.session.execute(f"XA END '{self.name}'")
            self.session.execute(f"XA PREPARE '{self.name}'")
            self._close()  # so that another session can end it
            self.prepared.put(f"XA {'COMMIT' if commits else 'ROLLBACK'} '{self.name}'")

    def _give_up(self, *, is_prepared: bool) -> None:
        if is_prepared and not self._is_postgresql:
            self._close()  # which rolls back; how XA does that depends on the state that it is in
        else:
            self.session.execute("ROLLBACK")

    def _close(self) -> None:
        self.session.close()
        self.has_closed = True

    def _steps(self) -> Iterator[str]:
        if self._is_postgresql and self.random.random() < 0.5:
            yield from self._taken()
        for _ in range(self.random.randint(1, 3)):
            yield self._insert()
        if self.random.random() < 0.3:
            yield "SAVEPOINT part"
            yield self._insert()
            yield self.random.choice(["ROLLBACK TO SAVEPOINT part", "RELEASE SAVEPOINT part"])
        if self.random.random() < 0.5:
            yield self._update()

    def _taken(self) -> Iterator[str]:
        """Take an id before anything else is done, and write it later."""
        ((number,),) = self.session.rows("SELECT nextval('taken_ids')")
        yield f"INSERT INTO taken_rows (id) VALUES ({number})"

    def _insert(self) -> str:
        if self.random.random() < 0.2:
            return self._insert_by_slow_clock()
        names = ["serial_rows", "now_rows", "tied_rows"]
        if self._is_postgresql:
            return f"INSERT INTO {self.random.choice([*names, 'clock_rows', 'cached_rows'])} DEFAULT VALUES"
        if self.random.random() < 0.3:  # has its time at once, and its transaction when the first row comes
            wait = self.longest * self.random.random() / 10
            return f"INSERT INTO now_rows (version) SELECT sleep({wait:.3f})"
        return f"INSERT INTO {self.random.choice(names)} () VALUES ()"

    def _insert_by_slow_clock(self) -> str:
        lag = f"{self.random.random() * 2:.6f}"
        at = f"now() - interval '{lag} s'" if self._is_postgresql else f"current_timestamp(6) - INTERVAL {lag} SECOND"
        return f"INSERT INTO lagging_rows (at) VALUES ({at})"

    def _update(self) -> str:
        now = "now()" if self._is_postgresql else "current_timestamp(6)"
        row = self.random.randint(1, UPDATED)
        return f"UPDATE updated_rows SET version = version + 1, at = {now} WHERE id = {row}"
