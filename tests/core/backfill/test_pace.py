"""How long a job takes for what it reads again, and in which order jobs go back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.backfill.order import in_order, longest_way
from airflow_bookmarks.core.backfill.pace import PastRun, expected_seconds
from airflow_bookmarks.core.errors import ChangeRefusedError


def test_one_slow_run_does_not_decide() -> None:
    past = [PastRun(100, 1, 10.0), PastRun(100, 1, 10.0), PastRun(100, 1, 999.0)]
    assert expected_seconds(past, 1_000, None) == pytest.approx(100.0)


def test_bytes_tell_where_rows_were_not_counted() -> None:
    assert expected_seconds([PastRun(None, 500, 10.0)], None, 5_000) == pytest.approx(100.0)
    assert expected_seconds([PastRun(None, 500, 10.0)], 70, 5_000) == pytest.approx(100.0)


def test_nothing_is_made_up() -> None:
    assert expected_seconds([], 100, 100) is None
    assert expected_seconds([PastRun(0, 0, 10.0), PastRun(None, None, 5.0)], 100, 100) is None
    assert expected_seconds([PastRun(100, 100, 10.0)], None, None) is None


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from("abcdefgh"))))
def test_each_job_comes_after_all_that_it_reads_or_a_circle_is_named(graph: dict[str, set[str]]) -> None:
    try:
        order = in_order(graph)
    except ChangeRefusedError as error:
        assert "in a circle" in str(error)  # noqa: PT017 - either way is fine
        return
    assert sorted(order) == sorted(graph)
    for place, job in enumerate(order):
        assert all(above in order[:place] for above in graph[job] if above in graph)


def test_way_that_is_not_known_is_not_known() -> None:
    assert longest_way({"a": 1.0, "b": None}, {"b": ["a"]}) is None
    assert longest_way({}, {}) == pytest.approx(0.0)
