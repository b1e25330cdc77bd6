"""The one state of a job that a person sees: the worst, with its reason and since when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.head import Failure, Move
from airflow_bookmarks.core.health.cadence import Schedule
from airflow_bookmarks.core.health.verdict import HealthFacts, HealthState, SourceLag, judge
from airflow_bookmarks.core.rules.lag import LagState

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAILY = tuple(NOON - DAY * number for number in (5, 4, 3))
FAILED = Failure(NOON - HOUR, "dag/task", 1, 3, "no such column")


def facts(**known: Any) -> HealthFacts:
    return HealthFacts(NOON, **{"run_number": 3, **known})


# Each with what of it is the reason, and since when.
TROUBLES: dict[HealthState, tuple[dict[str, Any], str, datetime | None]] = {
    HealthState.FAILED: ({"failure": FAILED}, "the last try failed: no such column", NOON - HOUR),
    HealthState.STUCK: ({"left_at": NOON - HOUR}, "its driver died without a word", NOON - HOUR),
    HealthState.LATE: ({"commits": DAILY}, "its last commit was 3 d ago; it usually commits every 1 d", NOON - DAY),
    HealthState.REWOUND: (
        {"lags": [SourceLag("up", LagState.REWOUND, True, "'up' went back to run 2", NOON - DAY)]},
        "up: 'up' went back to run 2", NOON - DAY,
    ),
    HealthState.LAGGING: (
        {"lags": [SourceLag("up", LagState.LAGGING, False, "each run left more", NOON - DAY)]},
        "up: each run left more", NOON - DAY,
    ),
    HealthState.WAITING: ({"requests": [NOON - HOUR, NOON - DAY]}, "2 changes waiting for a second person", NOON - DAY),
    HealthState.PAUSED: ({"quarantined": 2}, "2 files set aside because they can't be parsed", None),
    HealthState.TAKEN_BACK: (
        {"move": Move("rewind", NOON - HOUR, 4)}, "its position was moved by rewind", NOON - HOUR
    ),
    HealthState.NEW: ({"run_number": 0}, "it has never committed", None),
}  # fmt: skip


@pytest.mark.parametrize("state", TROUBLES)
def test_each_state_has_its_reason_and_since_when(state: HealthState) -> None:
    known, reason, since = TROUBLES[state]
    verdict = judge(facts(**known))
    assert verdict.state is state
    assert verdict.reason.startswith(reason)
    assert verdict.since == since


def test_late_job_says_what_waits_unread() -> None:
    lags = [SourceLag("people", LagState.OK, runs=1), SourceLag("clean", LagState.OK, runs=3)]
    reason = "its last commit was 3 d ago; it usually commits every 1 d"
    assert judge(facts(commits=DAILY, lags=lags)).reason == f"{reason}; unread: 3 runs of clean, 1 run of people"
    paused = judge(facts(commits=DAILY, lags=lags[:1], schedule=Schedule(is_paused=True)))
    assert paused.reason == f"its DAG is paused in Airflow; {reason}; unread: 1 run of people"


@pytest.mark.parametrize("runs", [0, None])
def test_late_job_says_nothing_of_what_waits_where_nothing_does_or_that_is_not_known(runs: int | None) -> None:
    verdict = judge(facts(commits=DAILY, lags=[SourceLag("clean", LagState.OK, runs=runs)]))
    assert verdict.reason == "its last commit was 3 d ago; it usually commits every 1 d"


def test_late_job_names_three_jobs_and_counts_the_others() -> None:
    lags = [SourceLag(f"job{number}", LagState.OK, runs=number) for number in range(1, 6)]
    unread = "5 runs of job5, 4 runs of job4, 3 runs of job3, 3 runs of 2 other jobs"
    assert judge(facts(commits=DAILY, lags=lags)).reason.endswith(f"; unread: {unread}")


def test_silent_job_of_a_paused_dag_is_not_late_but_paused() -> None:
    verdict = judge(facts(commits=DAILY, schedule=Schedule(is_paused=True)))
    assert verdict.state is HealthState.PAUSED
    assert verdict.reason.startswith("its DAG is paused in Airflow; its last commit was 3 d ago")
    assert verdict.since == NOON - DAY
    well = (*DAILY, NOON - HOUR)
    assert judge(facts(commits=well, schedule=Schedule(is_paused=True))).state is HealthState.OK


def test_worst_state_comes_first_and_the_others_after_it() -> None:
    known: dict[str, Any] = {}
    for each, _, _ in TROUBLES.values():
        known |= {**each, "lags": [*known.get("lags", []), *each.get("lags", [])]}
    verdict = judge(facts(**{**known, "run_number": 3}))
    found = [verdict.state, *(each.state for each in verdict.more)]
    assert found == [state for state in HealthState if state not in (HealthState.OK, HealthState.NEW)]
    assert judge(facts()).state is HealthState.OK
    assert [state.is_trouble for state in found].count(True) == 7


def test_failure_whose_error_has_no_words_says_so() -> None:
    verdict = judge(facts(failure=Failure(NOON, "dag/task", 1, 3, " ")))
    assert verdict.reason == "the last try failed, and its error says nothing"
