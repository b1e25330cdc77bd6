"""Promise DEP-12 for tables: a position for each value of a column, on PostgreSQL and MariaDB, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.sources import part_loop
from airflow_bookmarks.sources.jdbc import partitions
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.options import TableOptions
from airflow_bookmarks.sources.jdbc.position import TablePlan, TablePosition
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop

Rows = dict[str | None, list[int]]


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database with an empty table of orders."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        made.run("CREATE TABLE orders (id int PRIMARY KEY, region varchar(9), day date, n int)")
        yield made


@dataclass
class Job:
    """A job that reads value by value, in loops like those of `job.partitions`."""

    shop: Shop
    per: str = "region"
    how: dict[str, Any] = field(default_factory=dict)
    position: bytes | None = None
    plans: list[TablePlan] = field(default_factory=list)

    def source(self, loop: PartLoop | None, execution: str) -> TableSource:
        recipe = self.shop.source(per=self.per, **self.how).recipe
        label = "job 'copy', context 'orders'"
        return TableSource(lambda: open_database(self.shop.login), recipe, label, loop=loop, execution=execution)

    def loop(
        self, execution: str, *failing: str | None, crashes_after: int | None = None, start: Start = BEGINNING
    ) -> Rows:
        """Read what is new, part by part; return the numbers of the rows of each part that is committed."""
        loop, found = PartLoop("orders"), dict[str | None, list[int]]()
        while not loop.is_over and crashes_after != len(found):
            loop.begin()
            source = self.source(loop, execution)
            plan = source.plan(PlanInput(self.position, start=start))
            assert TablePlan.decode(plan.encode()).encode() == plan.encode()
            self.plans.append(plan)
            if plan.part is not None and plan.part.value in failing:
                continue
            position = source.advance(plan)
            if position is not None:
                self.position = position.body
                assert TablePosition.decode(position.body).encode() == position.body
            if plan.part is not None:
                found[plan.part.value] = [number for (number,) in self.shop.held(plan)]
            else:
                assert plan.is_empty
        return found

    @property
    def left(self) -> dict[str | None, Any]:
        """The values that are not read as far as the rest, with how far they are."""
        parts = TablePosition.decode(self.position or b"").parts
        return {} if parts is None else {value: mark and mark.values[0] for value, mark in parts.marks.items()}

    @property
    def watermark(self) -> str | None:
        return TableKind().watermark(self.position or b"", lambda names: {})

    def pending(self) -> int | None:
        """Count what is new without the script."""
        return self.source(None, "").plan(PlanInput(self.position)).count


def add(shop: Shop, *rows: tuple[int, str | None]) -> None:
    values = ", ".join(f"({number}, {'NULL' if region is None else repr(region)})" for number, region in rows)
    shop.run(f"INSERT INTO orders (id, region) VALUES {values}")


def test_each_value_is_read_by_itself_and_once(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "eu"), (4, None))
    job = Job(shop)
    assert job.loop("one") == {"eu": [1, 3], "us": [2], None: [4]}
    assert job.loop("two") == {}
    assert job.left == {}
    add(shop, (5, "us"))
    assert job.loop("three") == {"us": [5]}


def test_loop_without_rows_makes_one_empty_run(shop: Shop) -> None:
    job = Job(shop)
    assert job.loop("one") == {}
    assert [plan.is_empty for plan in job.plans] == [True]


def test_value_that_fails_stays_where_it_is_and_the_others_go_on(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "asia"))
    job = Job(shop)
    assert job.loop("one", "eu") == {"asia": [3], "us": [2]}
    assert job.left == {"eu": None}
    assert job.watermark is None  # not all rows below any number are read
    assert job.plans[-1].has_more  # so that the execution is not finished


@pytest.mark.parametrize("failing", ["asia", "eu", "us"])  # the first, the middle one and the last
def test_retry_reads_the_failed_value_alone(shop: Shop, failing: str) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "asia"))
    job = Job(shop)
    first = job.loop("one", failing)
    add(shop, (4, "eu"), (5, "us"), (6, "asia"), (7, "africa"))
    retry = job.loop("one")
    assert list(retry) == [failing]
    assert sorted(number for rows in (first | retry).values() for number in rows) == [1, 2, 3]
    assert job.watermark == "3"
    assert job.loop("two") == {"africa": [7], "asia": [6], "eu": [4], "us": [5]}


def test_next_execution_reads_what_is_left_with_what_is_new(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job = Job(shop)
    job.loop("one", "eu")
    add(shop, (3, "us"), (4, "eu"))
    assert job.loop("two", "us") == {"eu": [1, 4]}
    assert job.left == {"us": "2"}
    add(shop, (5, "us"))
    assert job.loop("three") == {"us": [3, 5]}


def test_all_values_that_fail_leave_the_bookmark_as_it_was(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job = Job(shop)
    assert job.loop("one", "eu", "us") == {}
    assert job.position is None
    assert job.loop("one") == {"eu": [1], "us": [2]}


def test_crash_between_two_parts_loses_and_doubles_nothing(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "asia"))
    job = Job(shop)
    first = job.loop("one", crashes_after=1)
    assert first == {"asia": [3]}
    add(shop, (4, "asia"))
    assert job.loop("one") == {"eu": [1], "us": [2]}  # the next try
    assert job.loop("two") == {"asia": [4]}


def test_new_value_begins_with_its_first_row(shop: Shop) -> None:
    add(shop, (1, "eu"), (9, "us"))
    job = Job(shop)
    job.loop("one", "us")
    add(shop, (10, "asia"), (11, "asia"))
    assert job.loop("two") == {"asia": [10, 11], "us": [9]}


def test_value_whose_rows_are_deleted_is_left_no_longer(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "asia"))
    job = Job(shop)
    job.loop("one", "eu")
    shop.run("DELETE FROM orders WHERE region = 'eu'")
    assert job.loop("one") == {}
    assert job.left == {}
    shop.run("DELETE FROM orders WHERE region = 'us'")
    add(shop, (4, "us"))
    assert job.loop("two") == {"us": [4]}


def test_look_without_the_script_counts_all_that_is_left_and_new(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"), (3, "eu"))
    job = Job(shop)
    job.loop("one", "eu")
    assert job.pending() == 2
    add(shop, (4, "us"))
    assert job.pending() == 3
    job.loop("two")
    assert job.pending() == 0


def test_window_of_a_part_is_closed_before_it_is_read(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job = Job(shop)
    job.loop("one")
    plan = job.plans[0]
    add(shop, (3, "eu"), (4, "eu"))
    assert shop.held(plan) == [(1,)]


def test_row_of_an_open_transaction_is_lost_in_no_part(shop: Shop) -> None:
    job = Job(shop)
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders (id, region) VALUES (1, 'eu')")
        add(shop, (2, "us"))
        assert job.loop("one") == {}
    assert job.loop("two") == {"eu": [1], "us": [2]}


def test_values_that_a_collation_takes_for_one_are_parts_of_their_own(shop: Shop) -> None:
    values = ["eu", "EU", "", "é", "e", "it's", "a\\", "ß"]
    for number, value in enumerate(values):
        literal = value.replace("'", "''")
        shop.run(f"INSERT INTO orders (id, region) VALUES ({number}, '{literal}')")
    assert Job(shop).loop("one") == {value: [number] for number, value in enumerate(values)}


def test_blanks_at_the_end_are_part_of_a_value(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "eu "))
    assert Job(shop).loop("one") == {"eu": [1], "eu ": [2]}


@pytest.mark.parametrize(
    ("per", "values"),
    [("n", ["-5", "7", "NULL"]), ("day", ["'2013-01-31'", "'2013-02-01'", "NULL"])],
)
def test_values_are_typed(shop: Shop, per: str, values: list[str]) -> None:
    for number, value in enumerate(values):
        shop.run(f"INSERT INTO orders (id, {per}) VALUES ({number}, {value}), ({number + 10}, {value})")
    expected = {None if v == "NULL" else v.strip("'"): [n, n + 10] for n, v in enumerate(values)}
    assert Job(shop, per).loop("one") == expected


def test_first_run_begins_now_for_each_value(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job = Job(shop)
    assert job.loop("one", start=Start(is_now=True)) == {}
    add(shop, (3, "us"), (4, "eu"), (5, "asia"))
    assert job.loop("two") == {"asia": [5], "eu": [4], "us": [3]}


def test_more_values_than_a_position_may_name_are_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    add(shop, *((number, f"r{number}") for number in range(5)))
    for module in (partitions, part_loop):
        monkeypatch.setattr(module, "MOST_PARTS", 4)
    with pytest.raises(SourceError, match="more than 4 values of region have new rows"):
        Job(shop).loop("one")


def test_read_by_something_else_is_refused_while_values_are_left(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job = Job(shop)
    job.loop("one", "us")
    with pytest.raises(SourceError, match=r"region='us' are not read as far as the rest, and this read has no per"):
        shop.source().plan(PlanInput(job.position))
    with pytest.raises(SourceError, match="this read has per='n'"):
        replace(job, per="n").loop("two")
    assert job.loop("two") == {"us": [2]}
    assert shop.source().plan(PlanInput(job.position)).is_empty  # and then it goes on as a whole


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"keys": ()}, "no keys"),
        ({"on_null": "include_once"}, "include_once"),
        ({"bound": Bound(max_rows=1)}, "max_rows or window"),
        ({"lookback": timedelta(days=1)}, "lookback"),
        ({"per": ""}, "expected the name of a column"),
    ],
)
def test_what_does_not_go_with_values_is_refused(how: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        TableOptions(**{"keys": ("id",), "per": "region", **how})


def test_column_that_can_not_tell_rows_apart_is_refused(shop: Shop) -> None:
    shop.run("ALTER TABLE orders ADD COLUMN price decimal(9, 2)")
    with pytest.raises(OptionError, match="whose values are not told apart here"):
        Job(shop, "price").loop("one")
    with pytest.raises(OptionError, match="per='area' is no column here"):
        Job(shop, "area").loop("one")


def test_kind_knows_what_each_value_has_read(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job, kind = Job(shop), TableKind()
    job.loop("one", "us")
    read, unread = (plan for plan in job.plans if plan.part is not None)
    found = PlanInput(job.position)
    assert unread.part == PlanPart("region", "us")
    assert (kind.knows(found, read), kind.knows(found, unread)) == (True, False)
    assert kind.union([read]) == read


def test_one_plan_covers_runs_of_several_values(shop: Shop) -> None:
    add(shop, (1, "eu"), (2, "us"))
    job, kind = Job(shop), TableKind()
    job.loop("one")
    add(shop, (3, "eu"), (4, None))
    job.loop("two")
    add(shop, (5, "eu"))
    union = kind.union(job.plans)
    assert (shop.held(union), union.count, union.part) == ([(1,), (2,), (3,), (4,)], 4, None)
    assert shop.held(kind.union(job.plans[1:3])) == [(2,), (3,)]
    with pytest.raises(OptionError, match="the position was set"):
        kind.union([*job.plans, job.plans[0]])


def test_parts_of_many_values_are_stored_by_mark(shop: Shop) -> None:
    add(shop, *((number, f"r{number:04}") for number in range(1, 1001)))
    job = Job(shop)
    job.loop("one", crashes_after=1)
    assert len(job.left) == 999
    assert len(job.position or b"") < 11_000
