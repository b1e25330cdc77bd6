"""The conditions of a window hold exactly the rows between its marks, as a database evaluates them."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.database.dialect import Dialect
from airflow_bookmarks.core.database.dialects.mysql import MySQL
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from airflow_bookmarks.core.database.key import KeyColumn, KeyType
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys, joined

A, B, C, P = (KeyColumn(name, KeyType.INTEGER, is_nullable=name == "a") for name in "abcp")
ROWS = tuple(itertools.product(range(3), repeat=3))  # each with its place as the primary key
NUMBER = st.integers(0, 2).map(str)


@pytest.fixture(scope="module")
def rows() -> Iterator[sqlite3.Connection]:
    """Make a table with all rows of three small numbers; SQLite compares rows, and takes both forms of quotes."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c, p)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(*row, at) for at, row in enumerate(ROWS)])
        connection.execute("INSERT INTO t VALUES (NULL, 1, 1, 100)")
        yield connection


def held(connection: sqlite3.Connection, condition: str) -> set[int]:
    return {at for (at,) in connection.execute(f"SELECT p FROM t WHERE {condition}")}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("is_ascending", [True, False])
@given(low=st.lists(NUMBER, min_size=1, max_size=3), high=st.lists(NUMBER, min_size=1, max_size=3))
def test_window_holds_what_lies_between_its_marks(
    rows: sqlite3.Connection, dialect: Dialect, is_ascending: bool, low: list[str], high: list[str]
) -> None:
    table = TableKeys((A, B, C), is_ascending=is_ascending)
    condition = KeyWindow(Mark(tuple(low)), Mark(tuple(high))).condition(dialect, table)

    def is_in(row: tuple[int, ...]) -> bool:
        one, other = tuple(map(int, low)), tuple(map(int, high))
        above, below = row[: len(one)] > one, row[: len(other)] <= other
        return above and below if is_ascending else row[: len(one)] < one and row[: len(other)] >= other

    assert held(rows, condition) == {at for at, row in enumerate(ROWS) if is_in(row)}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda each: each.name)
@given(known=st.sets(st.integers(0, 26)), ends=st.sets(st.integers(0, 26)), low=NUMBER, high=NUMBER)
def test_rows_with_the_keys_of_a_mark_count_as_read_by_name(
    rows: sqlite3.Connection, dialect: Dialect, known: set[int], ends: set[int], low: str, high: str
) -> None:
    """Each of the ties is one row, wherever it lies; only those with the keys of the mark matter."""
    table = TableKeys((A,), (P,))
    after = Mark((low,), tuple((str(each),) for each in sorted(known)))
    until = Mark((high,), tuple((str(each),) for each in sorted(ends)))
    found = held(rows, KeyWindow(after, until).condition(dialect, table))

    def is_in(at: int, a: int) -> bool:
        is_after = a > int(low) or (bool(known) and a == int(low) and at not in known)
        is_before = a < int(high) or (a == int(high) and (at in ends or not ends))
        return is_after and is_before

    assert found == {at for at, (a, *_) in enumerate(ROWS) if is_in(at, a)}


def test_windows_that_follow_each_other_hold_each_row_once(rows: sqlite3.Connection) -> None:
    table, dialect = TableKeys((A,), (P,)), PostgreSQL()
    first = Mark(("1",), (("9",), ("10",)))
    later = joined(first, Mark(("1",), (("9",), ("10",), ("13",))))
    windows = [KeyWindow(None, first), KeyWindow(first, later), KeyWindow(later, Mark(("2",)))]
    read = [sorted(held(rows, each.condition(dialect, table))) for each in windows]
    assert read[0] == [*range(9), 9, 10]
    assert read[1] == [13]
    assert read[2] == [11, 12, *range(14, 27)]


def test_rows_without_a_key_are_in_a_window_that_asks_for_them(rows: sqlite3.Connection) -> None:
    table, dialect = TableKeys((A, B)), PostgreSQL()
    assert held(rows, KeyWindow(None, None, with_nulls=True).condition(dialect, table)) == {100}
    assert held(rows, KeyWindow(None, Mark(("0",)), with_nulls=True).condition(dialect, table)) == {*range(9), 100}
    assert held(rows, KeyWindow().condition(dialect, table)) == set()


def test_first_condition_of_an_expanded_comparison_serves_an_index() -> None:
    condition = MySQL().beyond((A, B), ("1", "2"), ">")
    assert condition == "(`a` >= 1 AND (`a` > 1 OR `b` > 2))"
