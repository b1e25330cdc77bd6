"""Which rows of a table a run reads, on PostgreSQL and MariaDB: none is lost, none is read twice."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import BEFORE_START, NO_KEY, OVER_BOUND, SETTLING
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.planner import TablePlanner
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import AT_ONCE, Shop

SERIAL = {"postgresql": "bigserial", "mariadb": "bigint unsigned auto_increment"}
TIME = {"postgresql": "timestamptz", "mariadb": "timestamp(6)"}


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database with an empty table of orders."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        time, null = TIME[login.dialect], "NULL" if login.dialect == "mariadb" else ""
        made.run(f"CREATE TABLE orders (id {SERIAL[login.dialect]} PRIMARY KEY, at {time} {null}, amount int)")
        yield made


def add(shop: Shop, *ids: int, at: str = "2013-01-31 23:59:58") -> None:
    rows = ", ".join(f"({each}, '{at}', 1)" for each in ids)
    shop.run(f"INSERT INTO orders (id, at, amount) VALUES {rows}")


# ---- by one key


def test_each_row_is_read_once(shop: Shop) -> None:
    assert shop.read() == []
    add(shop, 1, 2, 5)
    assert shop.read() == [(1,), (2,), (5,)]
    assert shop.read() == []
    add(shop, 6)
    assert shop.read() == [(6,)]
    assert [plan.count for plan in shop.plans] == [0, 3, 0, 1]


def test_window_is_closed_before_it_is_read(shop: Shop) -> None:
    add(shop, 1, 2)
    shop.read()
    plan = shop.plans[-1]
    add(shop, 3)
    assert shop.held(plan) == [(1,), (2,)]


def test_numbers_are_not_compared_as_text(shop: Shop) -> None:
    add(shop, 9, 10)
    assert shop.read() == [(9,), (10,)]
    add(shop, 100)
    assert shop.read(bound=Bound(max_rows=1)) == [(100,)]


def test_rows_in_descending_order(shop: Shop) -> None:
    shop.run("CREATE TABLE countdown (id int PRIMARY KEY)")
    how: dict[str, Any] = {"table": "countdown", "order": "desc"}
    shop.run("INSERT INTO countdown VALUES (-9), (-10)")
    assert shop.read(**how) == [(-9,), (-10,)]
    shop.run("INSERT INTO countdown VALUES (-70)")
    assert shop.read(**how) == [(-70,)]
    assert shop.read(**how) == []


def test_names_are_taken_letter_by_letter(shop: Shop) -> None:
    q = "`" if shop.login.dialect == "mariadb" else '"'
    shop.run(f"CREATE TABLE {q}Order Lines{q} ({q}Line No{q} int PRIMARY KEY)")
    shop.run(f"INSERT INTO {q}Order Lines{q} VALUES (4)")
    assert shop.read(table="Order Lines", keys=["Line No"]) == [(4,)]


# ---- transactions that are late


def test_row_of_an_open_transaction_is_not_lost(shop: Shop) -> None:
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders (amount) VALUES (1)")  # takes the number 1
        shop.run("INSERT INTO orders (amount) VALUES (2)")
        assert shop.read() == []  # number 2 is there to be seen, and waits for number 1
        assert shop.plans[-1].skipped == {SETTLING: 1}
    assert shop.read() == [(1,), (2,)]


def test_transaction_that_begins_later_holds_nothing_up_that_was_there_before(shop: Shop) -> None:
    with shop.transaction() as first:
        first.execute("INSERT INTO orders (amount) VALUES (1)")
        shop.run("INSERT INTO orders (amount) VALUES (2)")
        assert shop.read() == []
        shop.run("INSERT INTO orders (amount) VALUES (3)")
    found: list[tuple[int, ...]] = []
    last = 3
    while not found:  # InnoDB says in which second a transaction began: one of the same second might be older
        with shop.transaction() as second:  # begun after number 2 was seen, which it can't come before
            second.execute("INSERT INTO orders (amount) VALUES (4)")
            found, last = shop.read(), last + 1
    assert found[:2] == [(1,), (2,)]
    assert found + shop.read() == [(number,) for number in range(1, last + 1)]


def test_transaction_that_was_rolled_back_leaves_a_gap(shop: Shop) -> None:
    with open_database(shop.login) as failing:
        failing.execute("BEGIN")
        failing.execute("INSERT INTO orders (amount) VALUES (1)")
        shop.run("INSERT INTO orders (amount) VALUES (2)")
        assert shop.read(settle_for=AT_ONCE) == []
        failing.execute("ROLLBACK")
    assert shop.read() == [(2,)]


def test_time_of_an_open_transaction_is_waited_for(shop: Shop) -> None:
    with shop.transaction() as slow:
        slow.execute(
            "INSERT INTO orders (at) VALUES (now(6))"
            if shop.login.dialect == "mariadb"
            else "INSERT INTO orders (at) VALUES (now())"
        )
        shop.run("INSERT INTO orders (at) VALUES (current_timestamp(6))")
        assert shop.read(keys=["at", "id"]) == []
    found = shop.read(keys=["at", "id"])
    assert len(found) == 2


def test_rows_from_before_an_open_transaction_are_read(shop: Shop) -> None:
    shop.run("INSERT INTO orders (at) VALUES ('2013-01-31')")
    with shop.transaction() as slow:
        slow.execute("INSERT INTO orders (at) VALUES (current_timestamp(6))")
        assert [key for _, key in shop.read(keys=["at", "id"])] == [1]


def test_time_in_the_future_is_no_end(shop: Shop) -> None:
    add(shop, 1, at="2013-01-31 00:00:00")
    add(shop, 2, at="2037-01-31 00:00:00")
    assert [key for _, key in shop.read(keys=["at", "id"])] == [1]
    assert shop.plans[-1].skipped == {SETTLING: 1}
    add(shop, 3, at="2014-01-31 00:00:00")
    assert [key for _, key in shop.read(keys=["at", "id"])] == [3]


def test_settling_by_time_leaves_what_is_young(shop: Shop) -> None:
    how: dict[str, Any] = {"keys": ["at", "id"], "settle": timedelta(days=1)}
    now = datetime.now(UTC)
    add(shop, 1, at=(now - timedelta(days=2)).strftime("%Y-%m-%d %H:%M:%S"))
    add(shop, 2, at=now.strftime("%Y-%m-%d %H:%M:%S"))
    assert [key for _, key in shop.read(**how)] == [1]


def test_settling_of_numbers_goes_by_what_an_earlier_run_has_seen(shop: Shop) -> None:
    add(shop, 1, 2)
    assert shop.read(settle=timedelta(days=1)) == []
    add(shop, 3)
    assert shop.read(settle=timedelta(0)) == [(1,), (2,), (3,)]


# ---- ties


def test_row_that_joins_the_last_one_later_is_read(shop: Shop) -> None:
    add(shop, 5, 7)
    how: dict[str, Any] = {"keys": ["at"]}
    assert len(shop.read(**how)) == 2
    add(shop, 6)
    plan_rows = shop.read(**how)
    assert len(plan_rows) == 1
    assert shop.plans[-1].window.until is not None
    assert shop.read(**how) == []
    add(shop, 8, at="2013-02-01 00:00:00")
    assert len(shop.read(**how)) == 1


def test_row_that_joins_the_last_one_after_planning_is_not_in_the_window(shop: Shop) -> None:
    add(shop, 5)
    shop.read(keys=["at"])
    plan = shop.plans[-1]
    add(shop, 6)
    assert len(shop.held(plan)) == 1


def test_rows_that_nothing_tells_apart_are_refused(shop: Shop) -> None:
    shop.run("CREATE TABLE log (n int NOT NULL)")
    shop.run("INSERT INTO log VALUES (1), (2), (2)")
    with pytest.raises(SourceError, match="several rows have the keys 2, and there is no primary key"):
        shop.read(table="log", keys=["n"])


# ---- rows without a key


def test_rows_without_a_key_are_an_error_or_counted_or_read_once(shop: Shop) -> None:
    shop.run("INSERT INTO orders (id, at) VALUES (1, '2013-01-31'), (2, NULL)")
    with pytest.raises(SourceError, match="1 row without a value of at"):
        shop.read(keys=["at", "id"])
    assert [key for _, key in shop.read(keys=["at", "id"], on_null="skip")] == [1]
    assert shop.plans[-1].skipped == {NO_KEY: 1}
    shop.position = None
    assert sorted(key for _, key in shop.read(keys=["at", "id"], on_null="include_once")) == [1, 2]
    assert shop.read(keys=["at", "id"], on_null="include_once") == []


# ---- bounds


def test_bounded_runs_read_each_row_once(shop: Shop) -> None:
    add(shop, *range(1, 8))
    how: dict[str, Any] = {"bound": Bound(max_rows=3)}
    assert shop.read(**how) == [(1,), (2,), (3,)]
    assert (shop.plans[-1].has_more, shop.plans[-1].skipped) == (True, {OVER_BOUND: 4})
    assert shop.read(**how) == [(4,), (5,), (6,)]
    assert shop.read(**how) == [(7,)]
    assert not shop.plans[-1].has_more
    assert shop.read(**how) == []


def test_window_of_time_reads_the_oldest_that_has_anything(shop: Shop) -> None:
    how: dict[str, Any] = {"keys": ["at", "id"], "bound": Bound(window=timedelta(days=1))}
    add(shop, 1, 2, at="2013-01-31 23:59:58")
    add(shop, 3, at="2013-02-01 00:00:00")
    add(shop, 4, at="2013-02-05 00:00:00")
    assert [[key for _, key in shop.read(**how)] for _ in range(4)] == [[1, 2], [3], [4], []]


@pytest.mark.parametrize(
    ("window", "runs"),
    [
        (timedelta(minutes=15), [[1], [2], [3], [5]]),
        (timedelta(hours=6), [[1], [2], [3], [5]]),
        (timedelta(days=1), [[1], [2], [3], [5]]),
        (timedelta(hours=36), [[1], [2, 3], [5]]),  # from 2 February 00:00 to 3 February 12:00
        (timedelta(days=28), [[1, 2, 3, 5]]),
    ],
)
def test_window_of_time_reads_whole_days_of_a_date(shop: Shop, window: timedelta, runs: list[list[int]]) -> None:
    shop.run("CREATE TABLE days (day date NOT NULL PRIMARY KEY)")
    shop.run("INSERT INTO days VALUES ('2013-02-01'), ('2013-02-02'), ('2013-02-03'), ('2013-02-05')")
    how: dict[str, Any] = {"table": "days", "keys": ["day"], "zone": "UTC", "bound": Bound(window=window)}
    assert [[day.day for (day,) in shop.read(**how)] for _ in [*runs, None]] == [*runs, []]
    assert [plan.has_more for plan in shop.plans] == [*[True] * (len(runs) - 1), False, False]


def test_window_of_time_stays_short_if_its_rows_are_deleted_meanwhile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: dict[str, Any] = {"keys": ["at", "id"], "bound": Bound(window=timedelta(days=1))}
    add(shop, 1, at="2013-01-31 23:59:58")
    add(shop, 2, at="2013-02-01 00:00:00")
    add(shop, 3, at="2013-02-05 00:00:00")
    one = TablePlanner._one

    def delete_what_is_first(*args: Any, **how: Any) -> tuple[str, ...] | None:
        found = one(*args, **how)
        if not how.get("is_backwards"):
            shop.run("DELETE FROM orders WHERE id = 1")
        return found

    monkeypatch.setattr(TablePlanner, "_one", delete_what_is_first)
    assert [[key for _, key in shop.read(**how)] for _ in range(3)] == [[2], [3], []]


def test_window_of_time_needs_a_time(shop: Shop) -> None:
    add(shop, 1)
    with pytest.raises(OptionError, match="needs a first key that is a time"):
        shop.read(bound=Bound(window=timedelta(days=1)))


# ---- where a job begins


def test_job_that_begins_now_reads_what_comes_later(shop: Shop) -> None:
    add(shop, 1, 2)
    assert shop.read(start=Start(is_now=True)) == []
    assert shop.plans[-1].skipped == {BEFORE_START: 2}
    add(shop, 3)
    assert shop.read() == [(3,)]


def test_job_that_begins_at_a_time_reads_that_and_later(shop: Shop) -> None:
    for key, at in enumerate(("2013-01-30 23:59:59.999999", "2013-01-31", "2013-02-01"), 1):
        add(shop, key, at=at)
    found = shop.read(keys=["at", "id"], start=Start.of("2013-01-31T00:00:00Z"))
    assert [key for _, key in found] == [2, 3]


def test_start_that_the_clock_of_a_zone_never_shows_is_refused(shop: Shop) -> None:
    shop.run("CREATE TABLE log (at date NOT NULL PRIMARY KEY)")
    start = Start.of("9999-12-31T23:30:00Z")
    with pytest.raises(OptionError, match=r"not in the years 1 to 9999 in the zone Europe/Berlin\. Nothing was read"):
        shop.read(table="log", keys=["at"], zone="Europe/Berlin", start=start)


# ---- a table that is not what it was


def test_table_that_went_back_is_refused(shop: Shop) -> None:
    add(shop, 1, 2, 3)
    shop.read()
    shop.run("DELETE FROM orders WHERE id > 1")
    with pytest.raises(SourceError, match="rows were read up to 3, and the last one is 1 now"):
        shop.read()


def set_to(shop: Shop, value: str) -> None:
    """Set the position, as a person does."""
    found = PlanInput(shop.position)
    shop.position = TableKind().seek(None, found, shop.plans[-1], value).body  # type: ignore[arg-type]  # asks no store


def test_table_that_was_set_ahead_of_its_last_row_reads_nothing_until_a_row_comes_there(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    add(shop, 1, 2, 3)
    shop.read()
    set_to(shop, "5")
    with caplog.at_level(logging.INFO):
        assert shop.read() == []
    assert "was set to 5, and the last row is 3: rows up to there count as read" in caplog.text
    add(shop, 4, 5)
    assert shop.read() == []
    add(shop, 6)
    assert shop.read() == [(6,)]
    shop.run("DELETE FROM orders WHERE id > 3")
    with pytest.raises(SourceError, match="rows were read up to 6, and the last one is 3 now"):
        shop.read()
    set_to(shop, "3")
    add(shop, 4)
    assert shop.read() == [(4,)]


def test_position_that_an_earlier_version_has_set_ahead_reads_nothing_either(shop: Shop) -> None:
    how: dict[str, Any] = {"keys": ["at", "id"]}
    add(shop, 1)
    shop.read(**how)
    set_to(shop, "2013-02-28T00:00:00Z")
    values = json.loads(shop.position or b"")
    assert values.pop("is_set") is True
    shop.position = json.dumps(values).encode()
    assert shop.read(**how) == []
    add(shop, 2, at="2013-03-01 00:00:00")
    assert [key for _, key in shop.read(**how)] == [2]
    assert "is_set" not in json.loads(shop.position or b"")


def test_table_that_was_emptied_goes_on(shop: Shop) -> None:
    add(shop, 1, 2)
    shop.read()
    shop.run("DELETE FROM orders")
    assert shop.read() == []
    add(shop, 3)
    assert shop.read() == [(3,)]


def test_key_of_another_type_is_refused(shop: Shop) -> None:
    add(shop, 1)
    shop.read(keys=["amount"])
    shop.run("ALTER TABLE orders DROP COLUMN amount")
    with pytest.raises(SourceError, match=r"key 'amount' is no column here; there are id, at\."):
        shop.read(keys=["amount"])
    shop.run("ALTER TABLE orders ADD COLUMN amount decimal(10, 2)")
    with pytest.raises(SourceError, match=r"rows by amount \(integer\).* the keys are amount \(decimal\)"):
        shop.read(keys=["amount"], on_null="skip")


def test_table_that_is_not_there_is_refused(shop: Shop) -> None:
    with pytest.raises(SourceMissingError, match="there is no table"):
        shop.read(table="nothing")


def test_time_without_a_zone_needs_one(shop: Shop) -> None:
    shop.run("CREATE TABLE log (at date NOT NULL PRIMARY KEY)")
    shop.run("INSERT INTO log VALUES ('2013-01-31')")
    with pytest.raises(OptionError, match="key at has no time zone"):
        shop.read(table="log", keys=["at"])
    assert len(shop.read(table="log", keys=["at"], zone="UTC")) == 1


# ---- no keys given


def test_primary_key_without_gaps_stands_for_keys(shop: Shop) -> None:
    add(shop, 1, 2, 3)
    assert shop.read(keys=[]) == [(1,), (2,), (3,)]
    add(shop, 4)
    assert shop.read(keys=[]) == [(4,)]
    add(shop, 6)
    with pytest.raises(SourceError, match="the primary key id has gaps"):
        shop.read(keys=[])
    assert shop.read(keys=["id"]) == [(6,)]


def test_table_without_a_key_that_would_do_names_the_columns_that_would(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE log (n int, body blob)"
        if shop.login.dialect == "mariadb"
        else "CREATE TABLE log (n int, body bytea)"
    )
    with pytest.raises(OptionError, match=r"Columns that can be keys: n\."):
        shop.read(table="log", keys=[])
