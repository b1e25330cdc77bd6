"""Promise DEP-11 for tables: the virtual shards of a table are disjoint and complete, on PostgreSQL and MariaDB."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.database.dialect import TableColumn
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.rules.shard import VIRTUAL_SHARDS, ShardShare, TableShard, owners
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import NO_KEY, SETTLING
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.dialects import dialect_named
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.jdbc.recipe import Recipe
from airflow_bookmarks.sources.jdbc.settling import SharedSettlings
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import AT_ONCE, Shop
from tests.thorough import each_once

SERIAL = {"postgresql": "bigserial", "mariadb": "bigint AUTO_INCREMENT"}
AT = {"postgresql": "timestamptz DEFAULT now()", "mariadb": "timestamp(6) DEFAULT current_timestamp(6)"}


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database with an empty table of orders."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        made.run(
            f"CREATE TABLE orders (id {SERIAL[login.dialect]} PRIMARY KEY, at {AT[login.dialect]}, region varchar(9))"
        )
        yield made


@dataclass
class Shards:
    """The virtual shards of a table: each has a position of its own, whichever task works on it."""

    shop: Shop
    by: str | None = None
    how: Mapping[str, Any] = field(default_factory=dict)
    positions: dict[int, bytes] = field(default_factory=dict)

    def source(self, number: int, settlings: SharedSettlings | None = None) -> TableSource:
        whole = self.shop.source(**self.how).recipe
        recipe = replace(whole, shard=TableShard(number, self.by))
        return TableSource(lambda: open_database(self.shop.login), recipe, "job 'copy', context 'orders'", settlings)

    def read(self, *shares: str, start: Start = Start(), is_shared: bool = True) -> list[tuple[Any, ...]]:  # noqa: B008
        """Make the runs of tasks with these shares; return the keys of all rows that they read."""
        found: list[tuple[Any, ...]] = []
        for share in shares:
            settlings = SharedSettlings() if is_shared else None
            for number in ShardShare.of(share).numbers:
                source = self.source(number, settlings)
                plan = source.plan(PlanInput(self.positions.get(number), start=start))
                found += self.shop.held(plan)
                self.shop.plans.append(plan)
                position = source.advance(plan)
                if position is not None:
                    self.positions[number] = position.body
        return sorted(found, key=lambda keys: [(key is None, key) for key in keys])


def add(shop: Shop, count: int) -> None:
    rows = ", ".join(f"('r{n % 7}')" for n in range(count))
    shop.run(f"INSERT INTO orders (region) VALUES {rows}")


def all_keys(shop: Shop, keys: str = "id") -> list[tuple[Any, ...]]:
    return sorted(shop.rows(f"SELECT {keys} FROM orders"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "by"),
    [(("at", "id"), "region"), *(pytest.param(keys, None, marks=pytest.mark.thorough) for keys in (("id",), ("at",)))],
    ids=str,
)
def test_shares_read_each_row_once_however_many_tasks_there_are(
    shop: Shop, keys: tuple[str, ...], by: str | None
) -> None:
    shards = Shards(shop, by, {"keys": keys})
    found: list[tuple[Any, ...]] = []
    for tasks in (3, 4):  # from n to n + 1 tasks, whose shards go on where they stand
        add(shop, 100)
        found += shards.read(*(f"{task}/{tasks}" for task in range(tasks)))
        assert sorted(found) == all_keys(shop, ", ".join(keys))


@pytest.mark.seldom
def test_keys_spread_evenly(shop: Shop) -> None:
    add(shop, 6400)
    shards = Shards(shop)
    shards.read("0/1")
    counts = [plan.count or 0 for plan in shop.plans]
    assert (sum(counts), len(counts)) == (6400, VIRTUAL_SHARDS)
    assert 50 < min(counts) < max(counts) < 160


def test_task_more_takes_over_positions(shop: Shop) -> None:
    add(shop, 200)
    shards = Shards(shop)
    moved = [number for number in range(VIRTUAL_SHARDS) if owners(31)[number] != owners(32)[number]]
    assert len(moved) == VIRTUAL_SHARDS // 32
    before = {number: shards.read(f"{owners(31)[number]}/31") for number in moved}
    shop.run("INSERT INTO orders (region) VALUES ('late')")
    after = shards.read("31/32")
    assert all(before.values())
    assert after in ([], [(201,)])


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize(("keys", "is_shared"), each_once([("at", "id"), ("id",)], [True, False]), ids=str)
def test_nothing_is_lost_or_doubled_while_others_write(shop: Shop, keys: tuple[str, ...], is_shared: bool) -> None:
    """Writers take numbers and times early and commit late, out of order."""
    stop = threading.Event()
    shards, found = Shards(shop, how={"keys": keys, "settle_for": timedelta(seconds=20)}), Counter[tuple[Any, ...]]()

    def write(place: int) -> None:
        with open_database(shop.login) as database:
            number = 0
            while not stop.is_set():
                number += 1
                database.execute("BEGIN")
                for _ in range(3):
                    database.execute(f"INSERT INTO orders (region) VALUES ('w{place}')")
                stop.wait(0.02 * (1 + (number + place) % 4))
                database.execute("ROLLBACK" if number % 5 == 0 else "COMMIT")

    writers = [threading.Thread(target=write, args=(place,)) for place in range(4)]
    for each in writers:
        each.start()
    try:
        for number in range(50):  # on a busy machine the first rounds may find that all rows are still to settle
            if found and number >= (2 if is_shared else 1):
                break
            found.update(shards.read(*(("0/4", "1/4") if is_shared else ("0/16", "1/16")), is_shared=is_shared))
    finally:
        stop.set()
        for each in writers:
            each.join()
    during = sum(found.values())
    found.update(shards.read("0/1"))
    assert found == Counter(all_keys(shop, ", ".join(keys)))
    assert during > 0


@pytest.mark.seldom
def test_row_of_an_open_transaction_is_lost_by_no_shard(shop: Shop) -> None:
    shards = Shards(shop)
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders (region) VALUES ('a'), ('b'), ('c')")
        add(shop, 50)
        assert shards.read("0/1") == []  # what is there to be seen waits for the lower numbers
        assert sum(plan.skipped.get(SETTLING, 0) for plan in shop.plans) == 50
    assert shards.read("0/1") == all_keys(shop)


@pytest.mark.seldom
def test_task_waits_once_for_all_of_its_shards(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = Counter[str]()
    settle = TablePlanner._settled_once
    monkeypatch.setattr(TablePlanner, "_settled_once", lambda *args: (waits.update(["one"]), settle(*args))[1])
    add(shop, 500)
    assert Shards(shop).read("0/1") == all_keys(shop)
    assert waits == {"one": 1}


@pytest.mark.seldom
def test_shard_reads_nothing_behind_the_end_that_its_task_has_waited_for(shop: Shop) -> None:
    add(shop, 300)
    shards, settlings = Shards(shop, how={"settle_for": AT_ONCE}), SharedSettlings()
    first = shards.source(0, settlings)
    first.plan(PlanInput())
    with shop.transaction() as slow:  # comes after the wait, which does not know of it
        slow.execute("INSERT INTO orders (region) VALUES ('late')")
        add(shop, 300)
        plans = [shards.source(number, settlings).plan(PlanInput()) for number in range(VIRTUAL_SHARDS)]
    found = [key for plan in plans for key in shop.held(plan)]
    assert sorted(found) == [(number,) for number in range(1, 301)]


def test_shard_that_is_ahead_of_the_wait_of_its_task_goes_back_nowhere(shop: Shop) -> None:
    add(shop, 100)
    shards, settlings = Shards(shop), SharedSettlings()
    shards.source(0, settlings).plan(PlanInput())
    add(shop, 300)
    shards.read("1:2")  # by another task, which came later
    ahead = shards.positions[1]
    source = shards.source(1, settlings)
    plan = source.plan(PlanInput(ahead))
    assert plan.is_empty
    assert plan.leads_to.position().watermark == TableKind().watermark(ahead, lambda names: {})


def test_bounds_and_batches_hold_within_a_shard(shop: Shop) -> None:
    add(shop, 400)
    shards = Shards(shop, how={"bound": Bound(max_rows=2)})
    found: list[tuple[Any, ...]] = []
    while more := shards.read("3:4"):
        assert len(more) <= 2
        found += more
    assert found == Shards(shop).read("3:4")


def test_deleted_last_row_of_a_shard_is_no_table_that_went_back(shop: Shop) -> None:
    add(shop, 300)
    shards = Shards(shop)
    (last, *_) = sorted(shards.read("5:6"), reverse=True)
    assert last != (300,)
    shop.run(f"DELETE FROM orders WHERE id = {last[0]}")
    assert shards.read("5:6") == []
    shop.run("DELETE FROM orders WHERE id > 5")
    with pytest.raises(SourceError, match="the table was restored"):
        shards.read("5:6")


def test_primary_key_without_gaps_may_stand_for_keys(shop: Shop) -> None:
    add(shop, 200)
    shards = Shards(shop, how={"keys": ()})
    assert len(shards.read("0/8")) > 5
    shop.run("DELETE FROM orders WHERE id = 100")
    with pytest.raises(SourceError, match="has gaps"):
        shards.read("1/8")


@pytest.mark.seldom
def test_rows_without_a_key_belong_to_one_shard(shop: Shop) -> None:
    shop.run("CREATE TABLE notes (k int UNIQUE, id int)")
    shop.run("INSERT INTO notes VALUES (NULL, 1), (NULL, 2), (7, 3)")
    shards = Shards(shop, how={"table": "notes", "keys": ("k",), "on_null": "include_once"})
    assert sorted(key for (key,) in shards.read("0/1") if key is not None) == [7]
    assert sum(plan.count or 0 for plan in shop.plans) == 3
    shards = Shards(shop, how={"table": "notes", "keys": ("k",), "on_null": "skip"})
    shards.read("0:1")
    assert shop.plans[-1].skipped == {NO_KEY: 2}


def test_first_run_begins_now_in_each_shard(shop: Shop) -> None:
    add(shop, 100)
    shards = Shards(shop)
    assert shards.read("0/8", start=Start(is_now=True)) == []
    add(shop, 100)
    assert {number for (number,) in shards.read("0/8")} <= set(range(101, 201))


def test_what_can_not_be_hashed_is_refused(shop: Shop) -> None:
    shop.run(f"CREATE TABLE log (at {AT[shop.login.dialect]} NOT NULL, n decimal(9, 2))")
    add_log = "INSERT INTO log (n) VALUES (1.5)"
    shop.run(add_log)
    for by in (None, "n"):
        with pytest.raises(OptionError, match=r"can't be assigned to virtual shards by (at|n) \("):
            Shards(shop, by, {"table": "log", "keys": ("at",)}).read("0/1")
    with pytest.raises(OptionError, match="shard_by='area' is no column here"):
        Shards(shop, "area").read("0/1")


# The number of a row may never change: these are what released versions have computed, on both databases.
LASTING = [
    (["id"], [43, 20, 42, 3]),
    (["name"], [3, 20, 62, 58]),
    (["c"], [45, 45, 45, 45]),
    (["d"], [38, 60, 12, 55]),
    (["u"], [58, 58, 58, 58]),
    (["id", "name"], [7, 2, 27, 48]),
    (["gone"], [0, 0, 0, 0]),
]


def test_number_of_a_row_is_the_same_for_ever(shop: Shop) -> None:
    declared = {"id": "bigint", "name": "varchar(20)", "c": "char(5)", "d": "date", "u": "uuid", "gone": "varchar(1)"}
    long = {"varchar": "character varying", "char": "character"}
    columns = ", ".join(f"{name} {each}" for name, each in declared.items())
    shop.run(f"CREATE TABLE kinds ({columns})")
    for number, day in ((1, "2020-01-02"), (2, "2020-01-03"), (777, "2022-02-16"), (424242, "2020-08-30")):
        fixed = "00000000-0000-0000-0000-000000000001"
        shop.run(f"INSERT INTO kinds VALUES ({number}, 'ä{number}', 'x', '{day}', '{fixed}', NULL)")
    dialect = dialect_named(shop.login.dialect)
    for setting in SETTINGS[shop.login.dialect]:
        for names, expected in LASTING:
            types = [declared[name] for name in names]
            if dialect.name == "postgresql":
                types = [f"{long[each.split('(')[0]]}({each.split('(')[1]}" if "(" in each else each for each in types]
            expression = dialect.number_of_hash(
                [TableColumn(*pair, True) for pair in zip(names, types, strict=True)], VIRTUAL_SHARDS
            )
            with open_database(shop.login) as database:
                database.execute(setting)
                assert [int(n) for (n,) in database.rows(f"SELECT {expression} FROM kinds ORDER BY id")] == expected


SETTINGS: Mapping[str, Sequence[str]] = {
    "postgresql": ["SET DateStyle = 'German'", "SET TimeZone = 'Asia/Tokyo'", "SET client_encoding = 'LATIN1'"],
    "mariadb": ["SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'", "SET NAMES latin1", "SET time_zone = '+09:00'"],
}


def test_shard_is_part_of_the_name_of_its_source_and_of_its_recipe(shop: Shop) -> None:
    recipe = Shards(shop, "region", {"settle_for": AT_ONCE}).source(7).recipe
    assert str(TableSource(lambda: open_database(shop.login), recipe, "").ref()) == (
        "jdbc:conn:shop orders shard 07/64 by column region"
    )
    assert Recipe.of_stored(recipe.stored()) == recipe
    older = {name: value for name, value in shop.source().recipe.stored().items() if name != "shard"}
    assert Recipe.of_stored(older).shard is None


@pytest.mark.seldom
def test_query_is_sharded_by_any_of_its_columns(shop: Shop) -> None:
    add(shop, 100)
    how = {"query": "SELECT * FROM orders WHERE id > 50", "keys": ("id",)}
    assert len(Shards(shop, "region", how).read("0/3", "1/3", "2/3")) == 50


def test_row_that_came_late_is_read_once_by_its_shard(shop: Shop) -> None:
    numbers = [number for number in range(1, 301) if number != 150]
    shop.run(f"INSERT INTO orders (id) VALUES {', '.join(f'({number})' for number in numbers)}")
    number = shop.dialect.number_of_hash([TableColumn("id", "bigint", False)], VIRTUAL_SHARDS)
    shop.run("INSERT INTO orders (id) VALUES (150)")
    ((own,),) = shop.rows(f"SELECT {number} FROM orders WHERE id = 150")
    shop.run("DELETE FROM orders WHERE id = 150")
    shards, share = Shards(shop, how={"lookback": timedelta(days=1)}), f"{own}:{int(own) + 1}"
    before = shards.read(share)
    shop.run("INSERT INTO orders (id) VALUES (150)")
    assert (150,) not in before != []
    assert shards.read(f"{(int(own) + 1) % 64}:{(int(own) + 1) % 64 + 1}") != [(150,)]
    assert shards.read(share) == [(150,)]
    assert shards.read(share) == []
