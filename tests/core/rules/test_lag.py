"""The rule of lag (DEP-9): Burrow's, from a window of commits, without a threshold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.rules.lag import LagPoint, LagState, lag_state

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
OK, LAGGING, STALLED = LagState.OK, LagState.LAGGING, LagState.STALLED
STOPPED, REWOUND = LagState.STOPPED, LagState.REWOUND


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def commits(*consumed_and_lag: tuple[int, int], every: float = 1) -> list[LagPoint]:
    """Return commits that end at noon."""
    last = len(consumed_and_lag) - 1
    return [LagPoint(NOON - minutes((last - i) * every), *each) for i, each in enumerate(consumed_and_lag)]


@pytest.mark.parametrize(
    ("points", "lag", "state"),
    [
        ([(1, 5), (2, 6), (3, 7)], 7, LAGGING),
        ([(1, 5), (2, 5), (3, 5)], 5, LAGGING),  # as Burrow: it reads, and never gains
        ([(1, 5), (2, 4), (3, 9)], 9, OK),  # it gained once
        ([(1, 5), (2, 0), (3, 9)], 9, OK),  # it had caught up once
        ([(1, 5), (1, 6), (1, 7)], 7, STALLED),
        ([(1, 5), (1, 5)], 5, STALLED),
        ([(5, 1), (3, 3), (4, 3)], 3, REWOUND),
        ([(5, 0), (3, 3)], 3, REWOUND),  # also where it had caught up before
        ([(5, 1), (3, 3), (5, 2)], 2, OK),  # it has come up again
        ([(5, 1), (3, 3), (4, 1)], 0, OK),  # nothing is left to read
        ([(1, 9)], 9, OK),  # a single commit has neither rhythm nor direction
        ([], 9, OK),
    ],
)
def test_commits_of_a_consumer_say_how_it_keeps_up(points: list[tuple[int, int]], lag: int, state: LagState) -> None:
    assert lag_state(commits(*points), lag, NOON) is state


def test_consumer_has_stopped_when_it_is_silent_for_longer_than_its_window_spans() -> None:
    points = commits((1, 0), (2, 0), (3, 0))
    assert lag_state(points, 1, NOON + minutes(2)) is OK
    assert lag_state(points, 1, NOON + minutes(2.1)) is STOPPED
    assert lag_state(points, 0, NOON + minutes(99)) is OK
    assert lag_state(points, 1, NOON + minutes(99), is_working=True) is OK


def test_consumer_with_nothing_to_read_until_now_has_not_stopped() -> None:
    points = commits((1, 0), (2, 0), (3, 0))
    since = NOON + minutes(98)
    assert lag_state(points, 1, NOON + minutes(99), since) is OK
    assert lag_state(points, 1, NOON + minutes(101), since) is STOPPED


POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10).map(lambda each: commits(*each))
AFTER = st.integers(0, 30).map(minutes)


@given(POINTS, AFTER)
def test_consumer_without_lag_is_never_in_trouble(points: list[LagPoint], after: timedelta) -> None:
    assert lag_state(points, 0, NOON + after) is OK


@given(POINTS, st.integers(1, 5), AFTER, st.integers(-(10**6), 10**6), st.integers(0, 1000))
def test_only_differences_count(points: list[LagPoint], lag: int, after: timedelta, shift: int, base: int) -> None:
    moved = [LagPoint(p.at + timedelta(seconds=shift), p.consumed + base, p.lag) for p in points]
    now = NOON + after
    assert lag_state(moved, lag, now + timedelta(seconds=shift)) is lag_state(points, lag, now)


@given(POINTS, st.integers(1, 5), AFTER, st.integers(1, 100))
def test_there_is_no_threshold_to_tune(points: list[LagPoint], lag: int, after: timedelta, factor: int) -> None:
    """All times and all lags may be as many times as great: the answer is the same."""
    scaled = [LagPoint(NOON + (p.at - NOON) * factor, p.consumed, p.lag * factor) for p in points]
    assert lag_state(scaled, lag * factor, NOON + after * factor) is lag_state(points, lag, NOON + after)


@given(POINTS, st.integers(1, 5), AFTER)
def test_each_state_means_what_it_says(points: list[LagPoint], lag: int, after: timedelta) -> None:
    state = lag_state(points, lag, NOON + after)
    consumed, lags = [p.consumed for p in points], [p.lag for p in points]
    if state is STOPPED:
        assert after > points[-1].at - points[0].at
    if state is REWOUND:
        assert consumed[-1] < max(consumed)
    if state in (STALLED, LAGGING):
        assert 0 not in lags
        assert consumed[-1] == max(consumed)
    if state is STALLED:
        assert len(set(consumed)) == 1
    if state is LAGGING:
        assert lags == sorted(lags)
        assert len(set(consumed)) > 1


@given(POINTS, st.integers(1, 5), AFTER, AFTER)
def test_stopped_consumer_stays_stopped_until_it_commits(
    points: list[LagPoint], lag: int, after: timedelta, more: timedelta
) -> None:
    if lag_state(points, lag, NOON + after) is STOPPED:
        assert lag_state(points, lag, NOON + after + more) is STOPPED
