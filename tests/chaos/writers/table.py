"""The tables of the race."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from airflow_bookmarks.databases.database import Database

Rows = Counter[tuple[int, int]]  # how often there is which version of which row


@dataclass(frozen=True)
class RaceTable:
    """A table that is read by `keys`. `columns` make it, with a primary key `id`; `is_exact` if no row may be lost.

    It is read in several ways, one of them with a `lookback`.
    """

    name: str
    keys: tuple[str, ...]
    columns: str
    is_exact: bool = True
    lookback: timedelta | None = None

    @property
    def title(self) -> str:
        """Its name, and how it is read."""
        return self.name if self.lookback is None else f"{self.name}-lookback"

    def create(self, database: Database) -> None:
        """Make it, with an index for its keys."""
        database.execute(f"CREATE TABLE {self.name} ({self.columns}, version int NOT NULL DEFAULT 0)")
        database.execute(f"CREATE INDEX {self.name}_keys ON {self.name} ({', '.join(self.keys)})")

    def rows(self, database: Database, where: str = "1 = 1") -> Rows:
        """Return its rows that meet a condition."""
        return Counter((int(id), int(version)) for id, version in database.rows(self._select(where)))

    def _select(self, where: str) -> str:
        return f"SELECT id, version FROM {self.name} WHERE {where}"


_SERIAL = "id bigserial PRIMARY KEY"
_SESSION = timedelta(minutes=20)  # longer than any session keeps its numbers
_LAG = timedelta(seconds=3)  # longer than the slowest clock is behind
_AT = f"{_SERIAL}, at timestamptz NOT NULL"
POSTGRESQL = (
    RaceTable("serial_rows", ("id",), _SERIAL),
    RaceTable("taken_rows", ("id",), "id bigint PRIMARY KEY"),
    RaceTable("now_rows", ("at", "id"), f"{_SERIAL}, at timestamptz NOT NULL DEFAULT now()"),
    RaceTable("clock_rows", ("at", "id"), f"{_SERIAL}, at timestamptz NOT NULL DEFAULT clock_timestamp()"),
    RaceTable("tied_rows", ("at",), f"{_SERIAL}, at timestamptz(0) NOT NULL DEFAULT now()"),
    RaceTable("updated_rows", ("at", "id"), f"{_SERIAL}, at timestamptz NOT NULL DEFAULT now()"),
    RaceTable("cached_rows", ("id",), _SERIAL, is_exact=False),
    RaceTable("cached_rows", ("id",), _SERIAL, lookback=_SESSION),
    RaceTable("lagging_rows", ("at", "id"), _AT, is_exact=False),
    RaceTable("lagging_rows", ("at", "id"), _AT, lookback=_LAG),
)
_COUNTED = "id bigint unsigned AUTO_INCREMENT PRIMARY KEY"
_NOW = "at datetime(6) NOT NULL DEFAULT current_timestamp(6)"
_GIVEN = f"{_COUNTED}, at datetime(6) NOT NULL"
MARIADB = (
    RaceTable("serial_rows", ("id",), _COUNTED),
    RaceTable("now_rows", ("at", "id"), f"{_COUNTED}, {_NOW}"),
    RaceTable("tied_rows", ("at",), f"{_COUNTED}, at timestamp NOT NULL DEFAULT current_timestamp()"),
    RaceTable("updated_rows", ("at", "id"), f"{_COUNTED}, {_NOW}"),
    RaceTable("lagging_rows", ("at", "id"), _GIVEN, is_exact=False),
    RaceTable("lagging_rows", ("at", "id"), _GIVEN, lookback=_LAG),
)
UPDATED = 300  # rows of `updated_rows`, which are updated again and again


def create_tables(database: Database, tables: tuple[RaceTable, ...]) -> None:
    """Make all tables of a race."""
    for table in {each.name: each for each in tables}.values():
        table.create(database)
    if database.dialect == "postgresql":
        database.execute("CREATE SEQUENCE taken_ids")
        database.execute("ALTER SEQUENCE cached_rows_id_seq CACHE 20")
    values = ", ".join(f"({number})" for number in range(1, UPDATED + 1))
    database.execute(f"INSERT INTO updated_rows (id) VALUES {values}")
