"""Rows that come late within the lookback are read once, on PostgreSQL and MariaDB (JDBC-12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.windows.window import Mark
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import NOT_COMPARED, OVER_BOUND
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.sources.jdbc import lookback
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.position import TablePlan, TablePosition
from airflow_bookmarks.sources.source import PlanInput
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop

TIME = {"postgresql": "timestamptz", "mariadb": "timestamp(6)"}
HOUR = timedelta(hours=1)
BY_TIME: dict[str, Any] = {"keys": ("at", "id"), "lookback": HOUR}
BY_NUMBER: dict[str, Any] = {"keys": ("id",), "lookback": HOUR}


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database with an empty table of orders."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        made.run(f"CREATE TABLE orders (id int PRIMARY KEY, at {TIME[login.dialect]}, amount int)")
        yield made


def add(shop: Shop, *ids: int, at: str = "12:00:00") -> None:
    rows = ", ".join(f"({each}, '2013-01-31 {at}', 1)" for each in ids)
    shop.run(f"INSERT INTO orders VALUES {rows}")


def read(shop: Shop, **how: Any) -> list[int]:
    """Make a run, and return the ids that it reads, in their order."""
    return sorted(int(row[-1]) for row in shop.read(**how))


def trail(shop: Shop) -> list[int]:
    """Return the ids of the rows that the position names."""
    found = TablePosition.decode(shop.position or b"").trail
    assert found is not None
    return sorted(int(row[-1]) for row in found.rows)


# ---- by a time


def test_row_with_an_older_time_within_the_lookback_is_read_once(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    assert read(shop, **BY_TIME) == [1]
    add(shop, 2, at="11:00:00")
    assert read(shop, **BY_TIME) == [2]
    assert shop.plans[-1].late == 1
    assert shop.plans[-1].summary().startswith("processing 1 rows by at, id, 1 of them late, nothing new after")
    assert read(shop, **BY_TIME) == []
    assert shop.plans[-1].is_empty


def test_without_a_lookback_it_is_not(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    assert read(shop, keys=("at", "id")) == [1]
    add(shop, 2, at="11:30:00")
    assert read(shop, keys=("at", "id")) == []


def test_row_older_than_the_lookback_is_left(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    read(shop, **BY_TIME)
    add(shop, 2, at="10:59:59.999999")
    assert read(shop, **BY_TIME) == []


def test_late_row_beside_new_ones(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    read(shop, **BY_TIME)
    add(shop, 2, at="11:30:00")
    add(shop, 3, at="16:00:00")
    assert read(shop, **BY_TIME) == [2, 3]
    assert trail(shop) == [3]
    assert shop.plans[-1].count == 2
    assert read(shop, **BY_TIME) == []


def test_most_rows_of_a_first_run_are_read_as_a_range(shop: Shop) -> None:
    add(shop, 1, 2, at="08:00:00")
    add(shop, 3, 4, at="11:30:00")
    assert read(shop, **BY_TIME) == [1, 2, 3, 4]
    assert trail(shop) == [3, 4]
    assert shop.plans[-1].count == 4
    assert [row[-1] for row in shop.plans[-1].window.named or ()] == ["3", "4"]


def test_row_that_turns_up_between_plan_and_read_is_the_next_runs(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    source = shop.source(**BY_TIME)
    plan = source.plan(PlanInput(None))
    add(shop, 2, at="11:30:00")  # within the window that was planned
    assert [key for _, key in shop.held(plan)] == [1]
    shop.position = plan.leads_to.encode()
    assert read(shop, **BY_TIME) == [2]
    assert read(shop, **BY_TIME) == []


def test_updated_row_comes_again_by_its_new_time(shop: Shop) -> None:
    add(shop, 1, 2, at="12:00:00")
    read(shop, **BY_TIME)
    shop.run("UPDATE orders SET at = '2013-01-31 12:10:00' WHERE id = 1")
    assert read(shop, **BY_TIME) == [1]
    shop.run("UPDATE orders SET at = '2013-01-31 12:05:00' WHERE id = 2")  # before the last row, by a slow clock
    assert read(shop, **BY_TIME) == [2]
    assert read(shop, **BY_TIME) == []


def test_row_that_is_updated_between_plan_and_read_is_read_once(shop: Shop) -> None:
    add(shop, 1, 2, at="12:00:00")
    plan = shop.source(**BY_TIME).plan(PlanInput(None))
    shop.run("UPDATE orders SET at = '2013-01-31 12:10:00' WHERE id = 1")
    assert [key for _, key in shop.held(plan)] == [2]
    shop.position = plan.leads_to.encode()
    assert read(shop, **BY_TIME) == [1]


def test_rows_of_one_time_are_told_apart_by_the_primary_key(shop: Shop) -> None:
    how: dict[str, Any] = {"keys": ("at",), "lookback": HOUR}
    add(shop, 5, at="11:30:00")
    add(shop, 7, at="12:00:00")
    assert len(shop.read(**how)) == 2
    add(shop, 6, at="11:30:00")
    add(shop, 4, 8, at="12:00:00")
    assert len(shop.read(**how)) == 3
    assert trail(shop) == [4, 5, 6, 7, 8]
    assert shop.read(**how) == []


def test_deleted_row_is_forgotten(shop: Shop) -> None:
    add(shop, 1, 2, at="12:00:00")
    read(shop, **BY_TIME)
    shop.run("DELETE FROM orders WHERE id = 1")
    add(shop, 3, at="12:01:00")
    assert read(shop, **BY_TIME) == [3]
    assert trail(shop) == [2, 3]


@pytest.mark.parametrize("type", ["date", "datetime"])
def test_key_without_a_zone(shop: Shop, type: str) -> None:
    declared = "timestamp" if type == "datetime" and shop.login.dialect == "postgresql" else type
    shop.run(f"CREATE TABLE log (day {declared} NOT NULL, id int PRIMARY KEY)")
    how: dict[str, Any] = {"table": "log", "keys": ("day", "id"), "zone": "Europe/Berlin", "lookback": 24 * HOUR}
    shop.run("INSERT INTO log VALUES ('2013-01-28', 1), ('2013-01-31', 2)")
    assert read(shop, **how) == [1, 2]
    shop.run("INSERT INTO log VALUES ('2013-01-30', 3), ('2013-01-31', 4), ('2013-01-29', 5)")
    assert read(shop, **how) == [3, 4]
    assert read(shop, **how) == []


# ---- by a number


def test_number_that_was_taken_ahead_is_read_once(shop: Shop) -> None:
    add(shop, 21, 22)
    assert read(shop, **BY_NUMBER) == [21, 22]
    add(shop, 2, 23)
    assert read(shop, **BY_NUMBER) == [2, 23]
    add(shop, 1)
    assert read(shop, **BY_NUMBER) == [1]
    assert read(shop, **BY_NUMBER) == []


def test_numbers_that_go_down(shop: Shop) -> None:
    how: dict[str, Any] = {**BY_NUMBER, "order": "desc"}
    add(shop, -21, -22)
    assert read(shop, **how) == [-22, -21]
    add(shop, -3, -100)
    assert read(shop, **how) == [-100, -3]
    add(shop, -50)
    assert read(shop, **how) == [-50]
    assert read(shop, **how) == []


def test_several_keys_and_exact_numbers(shop: Shop) -> None:
    declared = "numeric(38, 10)" if shop.login.dialect == "postgresql" else "decimal(38, 10)"
    shop.run(f"CREATE TABLE log (k {declared}, n varchar(9) COLLATE {bytewise(shop)}, id int, PRIMARY KEY (k, n))")
    how: dict[str, Any] = {"table": "log", "keys": ("k", "n"), "lookback": HOUR}
    shop.run("INSERT INTO log VALUES (1234567890123456789012345678.0000000002, 'b''\\x', 1)")
    assert len(shop.read(**how)) == 1
    shop.run(
        "INSERT INTO log VALUES (1234567890123456789012345678.0000000001, 'z', 2), "
        "(1234567890123456789012345678.0000000002, 'a', 3), (1234567890123456789012345678.0000000002, 'c', 4)"
    )
    assert [row[1] for row in shop.read(**how)] == ["z", "a", "c"]
    assert shop.read(**how) == []


def bytewise(shop: Shop) -> str:
    return '"C"' if shop.login.dialect == "postgresql" else "utf8mb4_bin"


def test_numbers_are_forgotten_once_later_ones_were_seen_so_long_ago(shop: Shop) -> None:
    moment = timedelta(microseconds=1)
    for number in range(1, 6):
        add(shop, number * 10)
        assert read(shop, keys=("id",), lookback=moment) == [number * 10]
    assert trail(shop) == [40, 50]
    add(shop, 15, 45)
    assert read(shop, keys=("id",), lookback=moment) == [45]


def test_first_run_over_many_numbers_names_the_last_of_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookback, "_AT_FIRST", 2)
    add(shop, 1, 2, 3, 4, 5)
    assert read(shop, **BY_NUMBER) == [1, 2, 3, 4, 5]
    assert trail(shop) == [3, 4, 5]


def test_bounded_first_load_lets_go_what_was_behind_its_begin(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookback, "MOST_NAMED", 4)
    monkeypatch.setattr(lookback, "_AT_FIRST", 2)
    add(shop, *range(1, 20))
    found = [read(shop, **BY_NUMBER, bound=Bound(max_rows=3)) for _ in range(8)]
    assert [each for run in found for each in run] == list(range(1, 20))
    add(shop, 100)
    assert read(shop, **BY_NUMBER) == [100]


# ---- content


def test_row_with_another_content_is_read_again(shop: Shop) -> None:
    add(shop, 1, 2, 3)
    read(shop, **BY_NUMBER)
    shop.run("UPDATE orders SET amount = NULL WHERE id = 2")
    assert read(shop, **BY_NUMBER) == [2]
    assert read(shop, **BY_NUMBER) == []


def test_change_of_columns_is_no_change_of_content(shop: Shop) -> None:
    add(shop, 1, 2)
    read(shop, **BY_NUMBER)
    shop.run("ALTER TABLE orders ADD COLUMN note varchar(9)")
    assert read(shop, **BY_NUMBER) == []
    assert shop.plans[-1].skipped == {}
    shop.run("UPDATE orders SET note = '' WHERE id = 2")
    assert read(shop, **BY_NUMBER) == [2]
    assert shop.plans[-1].skipped == {}
    shop.run("ALTER TABLE orders DROP COLUMN note")
    assert read(shop, **BY_NUMBER) == []


def test_update_is_seen_beside_a_column_that_is_added(shop: Shop) -> None:
    add(shop, 1, 2, 3)
    read(shop, **BY_NUMBER)
    shop.run("ALTER TABLE orders ADD COLUMN note varchar(9)")
    shop.run("UPDATE orders SET amount = 7 WHERE id = 2")
    assert read(shop, **BY_NUMBER) == [2]
    assert shop.plans[-1].skipped == {}
    assert read(shop, **BY_NUMBER) == []


def test_rows_that_have_a_value_in_a_column_that_was_added_are_counted(shop: Shop) -> None:
    add(shop, 1, 2, 3, 4)
    read(shop, **BY_NUMBER)
    shop.run("ALTER TABLE orders ADD COLUMN note varchar(9), ADD COLUMN more int")
    shop.run("UPDATE orders SET note = 'new' WHERE id = 1")
    shop.run("UPDATE orders SET more = 7 WHERE id = 3")
    shop.run("UPDATE orders SET more = 7, amount = 7 WHERE id = 4")
    assert read(shop, **BY_NUMBER) == [4]
    assert shop.plans[-1].skipped == {NOT_COMPARED: 2}
    shop.run("UPDATE orders SET note = 'newer' WHERE id = 1")
    assert read(shop, **BY_NUMBER) == [1]
    assert shop.plans[-1].skipped == {}


def test_rewind_behind_a_column_that_was_added_reads_updates_again(shop: Shop) -> None:
    add(shop, 1, 2, 3)
    read(shop, **BY_NUMBER)
    first = shop.position
    shop.run("UPDATE orders SET amount = 7 WHERE id = 2")
    assert read(shop, **BY_NUMBER) == [2]
    shop.run("ALTER TABLE orders ADD COLUMN note varchar(9)")
    add_with_note(shop, 4)
    assert read(shop, **BY_NUMBER) == [4]
    shop.position = first  # its runs undone, and what they have published removed
    assert read(shop, **BY_NUMBER) == [2, 4]


def add_with_note(shop: Shop, id_: int) -> None:
    shop.run(f"INSERT INTO orders VALUES ({id_}, '2013-01-31 12:00:00', 1, 'note')")


WIDER = {"postgresql": "ALTER COLUMN amount TYPE bigint", "mariadb": "MODIFY amount bigint"}


@pytest.mark.parametrize("change", ["DROP COLUMN amount", "wider", "stored by an earlier version"])
def test_rows_that_can_not_be_compared_after_a_change_of_columns_are_counted(
    shop: Shop, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(shop, 1, 2, 3)
    read(shop, **BY_NUMBER)
    if change == "stored by an earlier version":
        values = json.loads(shop.position or b"")
        assert [name for name, _ in values["trail"].pop("columns")] == ["id", "at", "amount"]
        shop.position, change = json.dumps(values).encode(), "ADD COLUMN note varchar(9)"
    shop.run(f"ALTER TABLE orders {WIDER[shop.login.dialect] if change == 'wider' else change}")
    shop.run("UPDATE orders SET at = '2013-01-31 13:00:00' WHERE id = 2")
    shop.run("INSERT INTO orders (id, at) VALUES (0, '2013-01-31 13:00:00')")
    assert read(shop, **BY_NUMBER) == [0]
    unsure = 1 if change == "wider" else 3  # an integer has the same text in a wider column
    assert shop.plans[-1].skipped == {NOT_COMPARED: unsure}
    assert f"so that {counted(unsure, 'row')} within the lookback can't be compared" in caplog.text
    assert read(shop, **BY_NUMBER) == []
    assert shop.plans[-1].skipped == {}
    shop.run("UPDATE orders SET at = '2013-01-31 14:00:00' WHERE id = 3")
    assert read(shop, **BY_NUMBER) == [3]


VALUES = {
    "postgresql": {
        "float8": ["0.1", "0.1000000000000001", "'NaN'"],
        "float4": ["0.1", "0.10000001"],
        "text": ["''", "'null'", "'a,b'", "'\U0001f600'", "'A'", "'a'"],
        "bytea": ["''", "'\\x00'", "'\\x0001'"],
        "timestamptz": ["'2013-01-31 00:00:00.000001+00'", "'2013-01-31 00:00:00.000002+00'"],
        "jsonb": ["""'{"a": 1}'""", """'{"a": "1"}'"""],
        "int[]": ["'{1,2}'", "'{12}'", "'{NULL}'"],
        "interval": ["'1 day'", "'24 hours'"],
        "money": ["1", "2"],
        "boolean": ["true", "false"],
    },
    "mariadb": {
        "double": ["0.1", "0.1000000000000001"],
        "float": ["0.1", "0.10000001"],
        "varchar(9)": ["''", "'null'", "'a,b'", "'\U0001f600'", "'A'", "'a'", "'a '"],
        "longblob": ["''", "x'00'", "x'0001'"],
        "datetime(6)": ["'2013-01-31 00:00:00.000001'", "'2013-01-31 00:00:00.000002'"],
        "bit(12)": ["b'0'", "b'1'", "b'101'"],
        "json": ["""'{"a": 1}'""", """'{"a": "1"}'"""],
        "uuid": ["'550e8400-e29b-41d4-a716-446655440000'", "'550e8400-e29b-41d4-a716-446655440001'"],
        "enum('a', 'b')": ["'a'", "'b'"],
        "time(6)": ["'00:00:00.000001'", "'-00:00:00.000001'"],
        "decimal(38, 10)": ["0.0000000001", "0.0000000002"],
    },
}


@pytest.mark.seldom
def test_each_value_of_each_type_is_another_content(shop: Shop) -> None:
    for place, (declared, values) in enumerate(VALUES[shop.login.dialect].items()):
        shop.position = None
        shop.run(f"CREATE TABLE typed_{place} (id int PRIMARY KEY, v {declared} NULL, other varchar(9))")
        shop.run(f"INSERT INTO typed_{place} VALUES (1, NULL, NULL)")
        how: dict[str, Any] = {"table": f"typed_{place}", **BY_NUMBER}
        assert read(shop, **how) == [1]
        for value in values:
            shop.run(f"UPDATE typed_{place} SET v = {value}")
            assert read(shop, **how) == [1], (declared, value)
            assert read(shop, **how) == [], (declared, value)


def test_value_that_moves_to_another_column_is_another_content(shop: Shop) -> None:
    shop.run("CREATE TABLE pairs (id int PRIMARY KEY, a varchar(9), b varchar(9))")
    how: dict[str, Any] = {"table": "pairs", **BY_NUMBER}
    shop.run("INSERT INTO pairs VALUES (1, 'x', NULL)")
    assert read(shop, **how) == [1]
    for a, b in (("NULL", "'x'"), ("''", "'x'"), ("'x'", "''"), ("'x y'", "''"), ("'x'", "'y'")):
        shop.run(f"UPDATE pairs SET a = {a}, b = {b}")
        assert read(shop, **how) == [1], (a, b)


# ---- limits


def test_more_rows_than_can_be_named_are_an_error(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookback, "MOST_NAMED", 3)
    add(shop, 1, at="08:00:00")
    add(shop, 2, 3, 4, 5, at="12:00:00")
    with pytest.raises(SourceError, match=r"more than 3 rows lie within lookback=.*Nothing was read.*shorter lookback"):
        read(shop, **BY_TIME)


def test_shorter_lookback_counts_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookback, "MOST_NAMED", 3)
    add(shop, 1, at="12:00:00")
    read(shop, **BY_TIME)
    add(shop, 2, 3, 4, 5, at="11:30:00")
    with pytest.raises(SourceError, match="more than 3 rows"):
        read(shop, **BY_TIME)
    add(shop, 6, at="11:59:00")
    assert read(shop, keys=("at", "id"), lookback=timedelta(minutes=10)) == [6]


def test_as_many_as_can_be_named_are_read_by_name(shop: Shop) -> None:
    numbers = (
        "generate_series(1, 9000) g" if shop.login.dialect == "postgresql" else "(SELECT seq g FROM seq_1_to_9000) s"
    )
    shop.run(f"INSERT INTO orders SELECT g, '2013-01-31 12:00:00', g FROM {numbers}")
    assert len(read(shop, **BY_TIME)) == 9000
    assert len(shop.plans[-1].window.named or ()) == 9000
    add(shop, 9001, at="11:00:01")
    assert read(shop, **BY_TIME) == [9001]
    assert read(shop, **BY_TIME) == []


def test_late_rows_count_within_a_bound(shop: Shop) -> None:
    add(shop, 10, at="12:00:00")
    read(shop, **BY_TIME)
    add(shop, 1, 2, 3, at="11:30:00")
    add(shop, 11, 12, at="12:30:00")
    how: dict[str, Any] = {**BY_TIME, "bound": Bound(max_rows=2)}
    assert read(shop, **how) == [1, 2]
    assert (shop.plans[-1].has_more, shop.plans[-1].skipped) == (True, {OVER_BOUND: 3})
    assert read(shop, **how) == [3, 11]
    assert read(shop, **how) == [12]
    assert read(shop, **how) == []


def test_late_rows_come_with_the_first_window_of_time(shop: Shop) -> None:
    add(shop, 1, at="12:00:00")
    read(shop, **BY_TIME)
    add(shop, 2, at="11:30:00")
    add(shop, 3, at="13:30:00")
    add(shop, 4, at="15:30:00")
    how: dict[str, Any] = {**BY_TIME, "bound": Bound(window=HOUR)}
    assert [read(shop, **how) for _ in range(3)] == [[2, 3], [4], []]


# ---- tables that can't be looked at again


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"keys": ()}, r"lookback needs keys=\[\.\.\.\]"),
        ({"keys": ("name",)}, "needs a first key that is a time or a number; name is text"),
        ({"table": "heap", "keys": ("id",)}, "a primary key or a unique index tells apart"),
        ({"table": "every", "keys": ("id",)}, "a primary key or a unique index tells apart"),
    ],
    ids=["no keys", "text", "no index", "view"],
)
def test_table_whose_late_rows_could_not_be_told_is_refused(shop: Shop, how: dict[str, Any], why: str) -> None:
    shop.run(f"ALTER TABLE orders ADD COLUMN name varchar(9) COLLATE {bytewise(shop)}")
    shop.run("CREATE TABLE heap (id int NOT NULL)")
    shop.run("CREATE VIEW every AS SELECT * FROM orders")
    with pytest.raises(OptionError, match=f"{why}.*Nothing was read"):
        shop.read(**how, lookback=HOUR)


@pytest.mark.parametrize("wrong", [timedelta(0), timedelta(seconds=-1), 60])
def test_lookback_that_is_no_length_of_time_is_refused(shop: Shop, wrong: Any) -> None:
    with pytest.raises(OptionError, match=r"lookback=.*expected a timedelta above 0"):
        shop.source(lookback=wrong)


def test_rows_without_a_key_are_never_late(shop: Shop) -> None:
    shop.run("INSERT INTO orders (id, at) VALUES (1, '2013-01-31 12:00:00'), (2, NULL)")
    how: dict[str, Any] = {**BY_TIME, "on_null": "include_once"}
    assert read(shop, **how) == [1, 2]
    assert read(shop, **how) == []
    shop.run("UPDATE orders SET at = '2013-01-31 11:30:00' WHERE id = 2")
    assert read(shop, **how) == [2]
    assert read(shop, **how) == []


# ---- where a trail begins


def test_lookback_that_is_given_later_counts_as_read_what_is_there(shop: Shop) -> None:
    add(shop, 1, 3)
    assert read(shop, keys=("id",)) == [1, 3]
    assert read(shop, **BY_NUMBER) == []
    add(shop, 2)
    assert read(shop, **BY_NUMBER) == [2]
    assert read(shop, keys=("id",)) == []
    assert TablePosition.decode(shop.position or b"").trail is None


def test_job_that_begins_now_reads_late_rows(shop: Shop) -> None:
    add(shop, 1, 3)
    assert read(shop, **BY_NUMBER, start=Start(is_now=True)) == []
    add(shop, 2)
    assert read(shop, **BY_NUMBER) == [2]


@pytest.mark.parametrize("before", [[], [1]], ids=["nothing before", "a row before"])
def test_job_that_begins_at_a_time_reads_no_late_rows_from_before(shop: Shop, before: list[int]) -> None:
    for each in before:
        add(shop, each, at="11:00:00")
    add(shop, 2, at="12:00:00")
    how: dict[str, Any] = {**BY_TIME, "start": Start.of("2013-01-31T11:30:00Z")}
    assert read(shop, **how) == [2]
    add(shop, 3, at="11:29:59")
    add(shop, 4, at="11:30:00")
    assert read(shop, **how) == [4]
    assert read(shop, **how) == []


def test_settling_by_time_goes_with_a_lookback(shop: Shop) -> None:
    now = datetime.now(UTC)
    how: dict[str, Any] = {**BY_TIME, "settle": timedelta(minutes=10)}
    for id, age in ((1, 30), (2, 5)):
        shop.run(f"INSERT INTO orders (id, at) VALUES ({id}, '{now - timedelta(minutes=age):%Y-%m-%d %H:%M:%S}')")
    assert read(shop, **how) == [1]
    shop.run(f"INSERT INTO orders (id, at) VALUES (3, '{now - timedelta(minutes=40):%Y-%m-%d %H:%M:%S}')")
    assert read(shop, **how) == [3]


# ---- windows of several runs


def test_one_plan_over_several_runs_reads_what_they_have_read(shop: Shop) -> None:
    add(shop, 1, 5)
    read(shop, **BY_NUMBER)
    add(shop, 3, 7)
    read(shop, **BY_NUMBER)
    add(shop, 2)
    read(shop, **BY_NUMBER)
    add(shop, 4)  # which none of them has read
    whole = TableKind().union(shop.plans)
    assert [row[0] for row in shop.held(whole)] == [1, 2, 3, 5, 7]
    assert [row[0] for row in shop.held(TableKind().union(shop.plans[1:]))] == [2, 3, 7]
    assert (whole.count, whole.late) == (5, 2)
    assert TablePlan.decode(whole.encode()).encode() == whole.encode()


# ---- stored by earlier versions


def test_state_of_a_version_without_lookback_is_read_and_stays_readable_to_it() -> None:
    folder = Path(__file__).parent / "stored"
    position = TablePosition.decode((folder / "position_1.json").read_bytes())
    plan = TablePlan.decode((folder / "plan_1.json").read_bytes())
    assert position.trail is None
    assert position.mark == plan.window.until == Mark(("2013-01-31 23:59:58+00",), (("5",), ("7",)))
    assert (plan.leads_to, plan.count, plan.late, plan.window.named) == (position, 3, 0, None)
    assert plan.recipe.options.lookback is None
    for each in (position, plan):
        assert each.encode().startswith(b'{"version": 1, ')
    assert TablePosition.decode(position.encode()) == position
    assert TablePlan.decode(plan.encode()) == plan


def test_state_with_a_lookback_is_refused_by_versions_that_do_not_know_it(shop: Shop) -> None:
    add(shop, 1)
    read(shop, **BY_NUMBER)
    assert b'{"version": 2, ' in (shop.position or b"")
    assert shop.plans[-1].encode().startswith(b'{"version": 2, ')
