"""The assertion that each arrived row is in the target once: what it lets pass, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.testing import assert_each_row_once

ONE, TWO = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}


class Row(tuple[Any, ...]):
    """A row as Spark has it: a tuple that knows its columns."""

    def asDict(self) -> dict[str, Any]:
        return dict(zip(("id", "name"), self, strict=True))


class Frame:
    """A frame as far as it is looked at."""

    def __init__(self, *rows: Row) -> None:
        self._rows = rows

    def collect(self) -> Sequence[Row]:
        return self._rows


def test_rows_of_a_frame_in_any_order_pass() -> None:
    assert_each_row_once([ONE, TWO], Frame(Row((2, "b")), Row((1, "a"))))


@pytest.mark.seldom
def test_row_that_arrived_twice_is_there_twice() -> None:
    assert_each_row_once([ONE, ONE], [ONE, ONE])
    with pytest.raises(AssertionError, match=r"too seldom.*1 times, and arrived 2 times"):
        assert_each_row_once([ONE, ONE], [ONE])


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ([ONE], r"1 row\(s\) missing: \(id=2, name='b'\)"),
        ([ONE, TWO, TWO], r"1 row\(s\) too often: \(id=2, name='b'\) 2 times, and arrived once"),
        ([ONE, TWO, {"id": 3, "name": "c"}], r"1 row\(s\) that never arrived: \(id=3, name='c'\)"),
        ([], r"2 row\(s\) missing"),
    ],
    ids=["missing", "twice", "never arrived", "nothing"],
)
def test_message_names_the_rows_that_are_wrong(there: list[dict[str, object]], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_each_row_once([ONE, TWO], there)


def test_message_shows_the_first_of_many() -> None:
    with pytest.raises(AssertionError, match=r"20 row\(s\) missing: \(id=0\).* and 15 more"):
        assert_each_row_once([{"id": number} for number in range(20)], [])


def test_message_tells_a_number_from_its_text() -> None:
    with pytest.raises(AssertionError, match=r"missing: \(id=1\)\n.*never arrived: \(id='1'\)"):
        assert_each_row_once([{"id": 1}], [{"id": "1"}])


def test_target_with_rows_where_nothing_arrived_fails() -> None:
    assert_each_row_once([], [])
    with pytest.raises(AssertionError, match="nothing arrived, and 1"):
        assert_each_row_once([], [ONE])


def test_columns_say_what_is_compared() -> None:
    assert_each_row_once([ONE, {"id": 2, "carrier": "UA"}], [{"id": 1}, {"id": 2}], columns=["id"])
    with pytest.raises(OptionError, match=r"different columns.*columns=\['id'\]"):
        assert_each_row_once([ONE, {"id": 2, "carrier": "UA"}], [ONE])


def test_rows_with_arrays_are_compared() -> None:
    assert_each_row_once([{"id": [1, 2]}], [{"id": [1, 2]}])


@pytest.mark.parametrize(
    ("target", "columns", "said"),
    [
        ([{"name": "a"}], None, "a row of the target has no column 'id'"),
        ([ONE], ["year"], "an arrived row has no column 'year'"),
        ([ONE], "id", "expected a list of names"),
        ([ONE], [], "expected a list of names"),
        ([(1, "a")], None, "neither a row of a DataFrame nor a mapping"),
    ],
)
def test_what_can_not_be_compared_is_an_error_of_its_own(target: list[Any], columns: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        assert_each_row_once([ONE], target, columns=columns)


def test_nan_is_nan_and_a_map_has_no_order() -> None:
    nan = float("nan")
    arrived = [{"x": float("nan"), "y": {"a": 1, "b": [nan]}}]
    assert_each_row_once(arrived, [{"x": float("nan"), "y": {"b": (float("nan"),), "a": 1}}])
    with pytest.raises(AssertionError, match=r"missing: \(x=nan, y=\{'a': 1, 'b': \[nan\]\}\)"):
        assert_each_row_once(arrived, [])


def test_true_is_not_the_number_one() -> None:
    with pytest.raises(AssertionError, match=r"missing: \(id=1\)\n.*never arrived: \(id=True\)"):
        assert_each_row_once([{"id": 1}], [{"id": True}])


def test_columns_of_an_iterator_are_all_compared() -> None:
    with pytest.raises(AssertionError, match=r"missing: \(id=1\)"):
        assert_each_row_once([{"id": 1}], [{"id": 2}], columns=(name for name in ["id"]))  # type: ignore[arg-type]
