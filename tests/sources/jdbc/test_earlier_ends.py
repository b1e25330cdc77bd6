"""Where a later run settles for an end that an earlier one has seen, it never goes back: by a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.windows.window import Mark
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import SETTLING
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.dialects import registered
from airflow_bookmarks.sources.jdbc.position import EarlierEnd, TablePosition
from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_sqlite
from tests.databases.sqlite_dialect import SQLite
from tests.sources.jdbc.shop import AT_ONCE, Shop

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class ToldSQLite(SQLite):
    """SQLite whose clock and open transactions are rows of tables, so that a test sets them."""

    def now_query(self) -> str:
        return "SELECT now_utc FROM clock"

    def open_queries(self) -> tuple[str, ...]:
        return ("SELECT 'one' AS id, NULL AS owner, 0 AS stage, since, 'a writer' AS who FROM writers",)

    def unique_query(self, parts: Sequence[str]) -> str:
        return (
            "SELECT 'primary' AS named, 1 AS is_primary, name, 0 AS is_deferred "
            f"FROM pragma_table_info('{parts[-1]}') WHERE pk > 0"
        )


@dataclass
class ToldShop(Shop):
    """A shop by the clock of the test, with at most one open transaction."""

    at: datetime = NOON

    def pass_time(self, time: timedelta) -> None:
        self.at += time
        self.run(f"UPDATE clock SET now_utc = '{self.at}'")

    def write_since(self, moment: datetime | None) -> None:
        """Have a transaction that is open since a time; None: none is open."""
        self.run("DELETE FROM writers")
        if moment is not None:
            self.run(f"INSERT INTO writers VALUES ('{moment}')")

    def add(self, *ids: int, batch: int = 0) -> None:
        self.run(f"INSERT INTO orders VALUES {', '.join(f'({each}, {batch})' for each in ids)}")

    @property
    def seen(self) -> list[str]:
        """The first keys of the earlier ends in the position."""
        return [] if self.position is None else [e.mark.values[0] for e in TablePosition.decode(self.position).seen]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ToldShop]:
    made = ToldShop(new_sqlite(tmp_path / "shop.db"), settle_for=AT_ONCE)
    for table in ("clock (now_utc TEXT)", "writers (since TEXT)"):
        made.run(f"CREATE TABLE {table}")
    made.run("CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, batch INTEGER NOT NULL)")
    made.run(f"INSERT INTO clock VALUES ('{NOON}')")
    with registered(ToldSQLite()):
        yield made


def sharing(shop: ToldShop, settlings: SharedSettlings) -> TableSource:
    """Return a source that waits for open transactions once with others."""
    return TableSource(lambda: open_database(shop.login), shop.source().recipe, "orders", settlings)


# ---- an end behind the position


@pytest.mark.parametrize(("more", "bound"), [(35, 50), (36, 50)])
def test_bounded_runs_that_catch_up_read_each_row_once(shop: ToldShop, more: int, bound: int) -> None:
    how: dict[str, Any] = {"settle": 2 * MINUTE, "bound": Bound(max_rows=bound)}
    found: list[tuple[Any, ...]] = []
    for last in range(0, 75 * more, more):
        shop.add(*range(last + 1, last + more + 1))
        shop.pass_time(timedelta(seconds=5))
        found += shop.read(**how)
    assert found == [(number,) for number in range(1, len(found) + 1)]
    assert all(plan.count for plan in shop.plans if not plan.is_empty)


def test_longer_time_to_settle_reads_nothing_twice(shop: ToldShop) -> None:
    for last in (10, 20, 30):
        shop.add(*range(last - 9, last + 1))
        assert shop.read(settle=HOUR) == []
        shop.pass_time(MINUTE)
    assert len(shop.read(settle=AT_ONCE, bound=Bound(max_rows=15))) == 15
    assert shop.read(settle=3 * MINUTE) == []  # the end of that time ago is behind the position
    assert shop.read(settle=AT_ONCE) == [(number,) for number in range(16, 31)]


def test_end_that_a_stored_position_has_behind_its_mark_is_none(shop: ToldShop) -> None:
    shop.add(*range(1, 21))
    shop.read(settle=AT_ONCE)
    shop.pass_time(HOUR)
    stored = TablePosition.decode(shop.position or b"")
    behind = EarlierEnd.of(NOON, Mark(("7",)))
    shop.position = replace(stored, seen=(behind, replace(behind, at=str(NOON + MINUTE)))).encode()

    assert shop.read(settle=HOUR) == []
    assert shop.plans[-1].is_empty
    assert TablePosition.decode(shop.plans[-1].leads_to.encode()).mark == stored.mark
    shop.add(21)
    shop.read(settle=HOUR)
    assert shop.seen == ["21"]  # and those behind take no room any more


def test_position_names_only_ends_beyond_its_mark(shop: ToldShop) -> None:
    for last in range(10, 60, 10):
        shop.add(*range(last - 9, last + 1))
        shop.read(settle=HOUR)
        shop.pass_time(MINUTE)
    shop.pass_time(2 * HOUR)
    shop.read(settle=HOUR, bound=Bound(max_rows=25))
    assert shop.seen == ["30", "40", "50"]


def test_shard_that_ended_where_its_task_waited_goes_back_to_no_earlier_end(shop: ToldShop) -> None:
    """Rows that come after the wait of the task are seen by its later shards, and are the next run's."""
    found: list[tuple[Any, ...]] = []
    for last in (100, 199):
        settlings = SharedSettlings()
        shop.add(*range(last - 95, last + 1))
        sharing(shop, settlings).plan(PlanInput())
        shop.add(*range(last + 1, last + 4))
        found += shop.read(sharing(shop, settlings))
        shop.pass_time(HOUR)
    assert found == [(number,) for number in range(5, 200)]

    shop.write_since(NOON + HOUR - MINUTE)
    assert shop.read(sharing(shop, SharedSettlings())) == []
    shop.write_since(None)
    assert shop.read(sharing(shop, SharedSettlings())) == [(200,), (201,), (202,)]


def test_rows_that_joined_the_last_ones_meanwhile_are_not_read_again(shop: ToldShop) -> None:
    """The end was seen before the wait, during which a row has joined it."""
    how: dict[str, Any] = {"keys": ["batch"]}
    shop.add(1, 2, 3, batch=1)
    assert len(shop.read(**how)) == 3
    stored = TablePosition.decode(shop.position or b"")
    shop.position = replace(stored, seen=(EarlierEnd.of(NOON, Mark(("1",), (("1",), ("2",)))),)).encode()
    shop.pass_time(HOUR)
    shop.write_since(NOON + MINUTE)
    shop.add(4, batch=1)
    assert shop.read(**how) == []
    shop.write_since(None)
    assert len(shop.read(**how)) == 1


# ---- many rows with one and the same key


@pytest.mark.parametrize("size", [100, 101, 150])
def test_loads_of_many_rows_are_read_when_they_have_settled(shop: ToldShop, size: int) -> None:
    how: dict[str, Any] = {"keys": ["batch"], "settle": 10 * MINUTE}
    found: list[tuple[Any, ...]] = []
    for batch in range(1, 6):
        shop.add(*range(batch * 1000, batch * 1000 + size), batch=batch)
        found += shop.read(**how)
        shop.pass_time(HOUR)
    assert found == [(batch,) for batch in range(1, 5) for _ in range(size)]
    assert shop.plans[-1].skipped == {SETTLING: size}
    assert len(shop.read(**how)) == size
    assert shop.read(**how) == []


def test_end_that_names_no_rows_is_refused_by_versions_that_would_lose_some(shop: ToldShop) -> None:
    how: dict[str, Any] = {"keys": ["batch"], "settle": HOUR}
    shop.add(*range(100), batch=1)
    shop.read(**how)
    assert (shop.position or b"").startswith(b'{"version": 1, ')
    shop.add(100, batch=1)
    shop.read(**how)
    assert (shop.position or b"").startswith(b'{"version": 3, ')


def test_row_that_joins_a_large_load_after_it_was_read_is_read(shop: ToldShop) -> None:
    how: dict[str, Any] = {"keys": ["batch"], "settle": 10 * MINUTE}
    shop.add(*range(150), batch=1)
    assert shop.read(**how) == []
    shop.pass_time(HOUR)
    assert len(shop.read(**how)) == 150
    shop.add(150, batch=1)
    assert shop.read(**how) == []
    shop.pass_time(HOUR)
    assert shop.read(**how) == [(1,)]
