"""When a job is silent for longer than it usually is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.health.cadence import COMMITS_KEPT, Schedule, is_uncertain, silence, usual_interval

MONDAY = datetime(2013, 1, 7, 2, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def every(step: timedelta, times: int, start: datetime = MONDAY) -> list[datetime]:
    return [start + step * number for number in range(times)]


def weekdays(weeks: int) -> list[datetime]:
    return [at for at in every(DAY, 7 * weeks) if at.weekday() < 5]


@pytest.mark.parametrize("step", [timedelta(minutes=5), HOUR, DAY, timedelta(days=7)])
def test_job_is_late_after_twice_its_usual_interval(step: timedelta) -> None:
    commits = every(step, COMMITS_KEPT if step < HOUR else 6)
    assert silence(commits, commits[-1] + 2 * step) is None
    found = silence(commits, commits[-1] + 2 * step + timedelta(seconds=1))
    assert found is not None
    assert (found.usual, found.since, found.missed) == (step, commits[-1] + 2 * step, None)


def test_daily_job_that_is_silent_for_two_days_is_never_well() -> None:
    commits = [at + timedelta(minutes=7 * (number % 3)) for number, at in enumerate(every(DAY, 12))]
    assert silence(commits, commits[-1] + 2 * DAY + HOUR) is not None


def test_too_few_commits_tell_no_rhythm() -> None:
    assert usual_interval(every(DAY, 2)) is None
    assert silence(every(DAY, 2), MONDAY + 99 * DAY) is None
    assert silence([], MONDAY) is None


def test_weekend_is_learned_and_a_silent_tuesday_is_not_one() -> None:
    commits = weekdays(2)
    friday = commits[-1]
    assert friday.weekday() == 4
    assert silence(commits, friday + 3 * DAY) is None  # Monday, before its run is over
    assert silence(commits, friday + 4 * DAY) is not None
    tuesday = [*commits, MONDAY + 14 * DAY, MONDAY + 15 * DAY]
    assert silence(tuesday, tuesday[-1] + 2 * DAY + HOUR) is not None


def test_person_who_tries_a_job_some_times_in_a_row_makes_no_rhythm() -> None:
    tried = every(timedelta(minutes=1), COMMITS_KEPT - 1)
    assert silence(tried, tried[-1] + DAY) is None


def test_job_that_runs_each_second_is_late_after_ten_minutes() -> None:
    commits = every(timedelta(seconds=1), COMMITS_KEPT)
    assert silence(commits, commits[-1] + timedelta(minutes=10)) is None
    assert silence(commits, commits[-1] + timedelta(minutes=11)) is not None


def test_burst_by_hand_and_one_long_pause_do_not_move_the_rhythm() -> None:
    daily = every(DAY, 8)
    burst = [daily[-1] + timedelta(minutes=number) for number in range(1, 5)]
    assert usual_interval([*daily, *burst]) == DAY
    assert usual_interval([*every(DAY, 4), *every(DAY, 4, MONDAY + 40 * DAY)]) == DAY


def test_schedule_that_rests_longer_excuses_a_silence() -> None:
    commits, next_times = every(DAY, 5), [MONDAY + 14 * DAY, MONDAY + 15 * DAY]  # holidays in between
    schedule = Schedule(next_times)
    assert silence(commits, MONDAY + 13 * DAY) is not None
    assert silence(commits, MONDAY + 13 * DAY, Schedule()) is None
    assert silence(commits, next_times[0] + 2 * HOUR, schedule) is None  # one missed time may be late itself
    found = silence(commits, next_times[1] + 2 * HOUR, schedule)
    assert found is not None
    assert (found.missed, found.since) == (2, next_times[1] + HOUR)


def test_job_that_runs_each_minute_is_late_by_its_schedule_within_minutes() -> None:
    times = every(timedelta(minutes=1), 5)
    commits = [times[0] - timedelta(seconds=20)]
    assert silence(commits, times[1] + timedelta(seconds=31), Schedule(times)) is not None
    assert silence(commits, times[1] + timedelta(seconds=29), Schedule(times)) is None


def test_job_of_some_runs_of_its_dag_is_not_late_at_the_others() -> None:
    weekly = every(7 * DAY, 5)
    daily = Schedule([weekly[-1] + DAY * day for day in range(1, 16)])
    assert silence(weekly, weekly[-1] + 13 * DAY, daily) is None
    found = silence(weekly, weekly[-1] + 15 * DAY, daily)
    assert found is not None
    assert (found.usual, found.since, found.missed) == (7 * DAY, weekly[-1] + 14 * DAY, 15)


def test_schedule_is_asked_for_where_commits_do_not_tell() -> None:
    assert not is_uncertain([], MONDAY)
    assert is_uncertain(every(DAY, 2), MONDAY + DAY)
    assert not is_uncertain(every(DAY, 5), MONDAY + 5 * DAY)
    assert is_uncertain(every(DAY, 5), MONDAY + 7 * DAY)


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=20),
    st.integers(0, 10**7),
)
def test_who_is_late_stays_late_until_it_commits(gaps: list[int], waited: int) -> None:
    commits = [MONDAY]
    for gap in gaps:
        commits.append(commits[-1] + timedelta(seconds=gap))
    now = commits[-1] + timedelta(seconds=waited)
    first, later = silence(commits, now), silence(commits, now + HOUR)
    assert first is None or later is not None
    assert silence(commits, commits[-1]) is None
