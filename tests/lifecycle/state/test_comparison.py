"""How a run compares with those before it."""

from __future__ import annotations

import pytest

from airflow_bookmarks.lifecycle.state import comparison
from airflow_bookmarks.lifecycle.state.comparison import (
    RunFigures,
    past_figures,
    read_times_median,
    times_median,
    total_of,
)
from tests.lifecycle.shop import Shop


def deliver(shop: Shop, count: int, run_id: str | None = None, lines: int = 2) -> None:
    """Make so many runs, each with a file of its own."""
    for _ in range(count):
        shop.put(f"{shop.runs_made}.txt", *["line"] * lines)
        run = shop.begin(run_id=run_id)
        shop.copy(run)
        run.commit()


def test_past_runs_with_data_are_found_newest_first(shop: Shop) -> None:
    deliver(shop, 1, lines=3)
    shop.run()  # empty
    deliver(shop, 1, lines=5)
    deliver(shop, 1, lines=7)

    assert [each.rows for each in past_figures(shop.store, "copy", 4)] == [5, 3]


def test_oldest_execution_is_left_out_where_more_of_its_runs_may_lie_further_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "PAST_RUNS", 2)
    deliver(shop, 3)

    assert len(past_figures(shop.store, "copy", 4)) == 1


def test_zero_and_unknown_figures_tell_nothing_of_what_is_usual() -> None:
    assert times_median(8, [4, 4, 4, 0, None, 4]) is None
    assert times_median(8, [4, 4, 4, 0, None, 4, 4]) == 2
    assert times_median(None, [4] * 5) is None
    assert times_median(0, [4] * 5) == 0


def test_files_are_compared_where_rows_are_not_counted() -> None:
    past = [RunFigures(2, None, 1.0)] * 5

    assert read_times_median(RunFigures(6, None, 1.0), past) == 3
    assert read_times_median(RunFigures(6, 9, 1.0), past) == 3


def test_total_of_nothing_or_of_what_is_not_known_is_not_known() -> None:
    assert (total_of([]), total_of([1, None]), total_of([1, 0])) == (None, None, 1)
