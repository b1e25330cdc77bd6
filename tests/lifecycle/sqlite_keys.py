"""A kind of source of a user's own, the smallest that can do everything: the rows of an SQLite table, by their key."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import PlanEntry, SourceRef
from airflow_bookmarks.core.selection.reason import BEFORE_START
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.source import PlanInput, Recheck
from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True)
class KeyPlan:
    """The rows of one table with a key in (`after`, `until`]."""

    database: str
    after: int
    until: int
    count: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    has_more: bool = False
    edge: None = None
    read_again: int = 0

    @property
    def is_empty(self) -> bool:
        return self.count == 0

    @property
    def amount(self) -> Amount:
        return Amount("keys", self.count)

    def stats(self) -> dict[str, Any]:
        return {**self.amount.stats(), "skipped": dict(self.skipped), "database": self.database}

    def summary(self) -> str:
        return f"processing {self.count} keys ({self.after}, {self.until}]"

    def encode(self) -> bytes:
        return json.dumps([self.database, self.after, self.until, self.count, self.skipped]).encode()


class KeySource:
    """The planner."""

    kind = "sqlite_keys"
    format = None

    def __init__(self, database: str) -> None:
        self.database = database

    def ref(self) -> SourceRef:
        return SourceRef(self.kind, self.database)

    def plan(self, found: PlanInput) -> KeyPlan:
        if found.start.time is not None:
            raise OptionError(f"start={found.start.text!r}: keys have no time. Nothing was read or changed.")
        after = int(found.position or 0)
        with connected(self.database) as connection:
            query = "SELECT count(*), max(id) FROM people WHERE id > ?"
            count, highest = connection.execute(query, [after]).fetchone()
        if found.start.is_now and count:
            return KeyPlan(self.database, highest, highest, 0, {BEFORE_START: count})
        return KeyPlan(self.database, after, highest or after, count)

    def advance(self, plan: KeyPlan) -> Position | None:
        moves = plan.count or plan.skipped
        return Position(str(plan.until).encode(), str(plan.until)) if moves else None

    def recheck(self, plan: KeyPlan) -> Recheck:
        return Recheck() if len(keys_of(plan)) == plan.count else Recheck((f"keys ({plan.after}, {plan.until}]",))


class KeyKind(SourceKind[KeyPlan]):
    """The object that is registered."""

    name = KeySource.kind
    order = NUMBER
    is_totally_ordered = True

    def decode(self, body: bytes) -> KeyPlan:
        try:
            return KeyPlan(*json.loads(body))
        except (ValueError, TypeError) as error:
            raise StateCorruptError(f"a stored plan of keys can't be read ({error}); nothing was changed") from error

    def advance(self, plan: KeyPlan, found: PlanInput) -> Position | None:
        return KeySource(plan.database).advance(plan)

    def knows(self, found: PlanInput, plan: KeyPlan) -> bool:
        return int(found.position or 0) > plan.after

    def union(self, plans: Sequence[KeyPlan]) -> KeyPlan:
        if not plans:
            return KeyPlan("", 0, 0, 0)
        if any(before.until != plan.after for before, plan in itertools.pairwise(plans)):
            raise OptionError("between these runs the position was set: no one window covers what they read")
        return KeyPlan(plans[-1].database, plans[0].after, plans[-1].until, sum(plan.count for plan in plans))

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> KeySource:
        return KeySource(self.decode(store.blobs.get(entry.body)).database)

    def seek(self, store: object, found: PlanInput, plan: KeyPlan, value: str) -> Position:
        if not (value.isascii() and value.isdigit()):
            raise OptionError(f"{value!r} is no key. Nothing was changed.")
        return Position(value.encode(), value)

    def watermark(self, position: bytes, load: object) -> str:
        return position.decode()

    def locations(self, plan: KeyPlan, source: SourceRef) -> Sequence[str]:
        return (plan.database,)


def keys_of(plan: KeyPlan) -> list[int]:
    """Return the keys that a plan reads, as they are there now."""
    if plan.is_empty:
        return []
    with connected(plan.database) as connection:
        query = "SELECT id FROM people WHERE id > ? AND id <= ? ORDER BY id"
        return [key for (key,) in connection.execute(query, [plan.after, plan.until])]


@contextmanager
def connected(database: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database)) as connection, connection:
        yield connection


def make_table(database: str) -> None:
    with connected(database) as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")


def put(database: str, *keys: int) -> None:
    with connected(database) as connection:
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(key, f"name {key}") for key in keys])


def remove(database: str, key: int) -> None:
    with connected(database) as connection:
        connection.execute("DELETE FROM people WHERE id = ?", [key])
