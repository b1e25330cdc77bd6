"""What is recorded of the health of a job, and when that is outdated."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from airflow_bookmarks.core.head import Failure, Head, Lease
from airflow_bookmarks.core.health.record import (
    HealthRecord,
    IndexFacts,
    Standing,
    is_outdated,
    record_of,
    standing_of,
)
from airflow_bookmarks.core.health.verdict import HealthFinding, HealthState, HealthVerdict
from airflow_bookmarks.core.run import RunKey

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FACTS = IndexFacts("flights", "clean", 41, "2026-11-27T02:04:11.000000Z")
RECORD = HealthRecord(NOON, "IDLE", HealthState.OK, 42, 1, FACTS)


def held(until: datetime) -> Head:
    return Head(run_number=1, lease=Lease("dag/run/task", 1, NOON - MINUTE, until, "a"))


@pytest.mark.parametrize(
    ("head", "standing"),
    [
        (Head(), "NEW"),
        (Head(run_number=1), "IDLE"),
        (Head(run_number=1, publishing=RunKey(1, 1)), "DUE"),
        (held(NOON + MINUTE), "RUNNING"),
        (held(NOON), "EXPIRED"),
    ],
)
def test_standing_says_who_holds_a_job_and_what_is_due(head: Head, standing: Standing) -> None:
    assert standing_of(head, NOON) == standing


def test_record_has_nothing_of_an_error_or_a_path() -> None:
    failed = Failure(NOON, "dag/run/task", 1, 42, "no such column in s3://lake/secret")
    head = Head(version=42, failure=failed, staging=("s3://lake/secret/_bookmarks",))

    made = record_of(head, FACTS, HealthVerdict(HealthState.FAILED, "no such column"), NOON)

    assert made == HealthRecord(NOON, "NEW", HealthState.FAILED, 42, 1, FACTS)
    assert "secret" not in repr(made)
    assert {each.name for each in fields(IndexFacts)} == {
        "dag_id", "task_id", "run_number", "last_commit_at", "former_owners", "deleted_version"
    }  # fmt: skip


def test_record_says_since_when_a_change_waits_whatever_else_is_wrong() -> None:
    waiting = HealthFinding(HealthState.WAITING, "1 change waiting for a second person", NOON - MINUTE)
    failed = HealthVerdict(HealthState.FAILED, "no such column", NOON, (waiting,))

    assert record_of(Head(), FACTS, failed, NOON).waiting_since == NOON - MINUTE
    assert record_of(Head(), FACTS, HealthVerdict(HealthState.FAILED, "no such column"), NOON).waiting_since is None


@pytest.mark.parametrize(
    ("record", "is_old"),
    [
        (RECORD, False),
        (replace(RECORD, judged_at=NOON - MINUTE + timedelta(seconds=1)), False),
        (replace(RECORD, judged_at=NOON - MINUTE), True),
        (replace(RECORD, judged_at=NOON + timedelta(seconds=4)), False),  # by the clock of another machine
        (replace(RECORD, judged_at=NOON + timedelta(hours=1)), True),
        (replace(RECORD, index=replace(FACTS, run_number=40)), True),
        (replace(RECORD, index=replace(FACTS, former_owners=("lake",))), True),
    ],
    ids=["new", "almost", "age", "clock-ahead", "future", "committed-since", "handed-over-since"],
)
def test_record_is_outdated_by_its_age_and_by_what_the_index_says(record: HealthRecord, is_old: bool) -> None:
    assert is_outdated(record, FACTS, NOON, MINUTE) is is_old


def test_index_facts_leave_out_what_has_a_wrong_type() -> None:
    wrong = {"dag_id": 1, "task_id": [], "run_number": "1", "last_commit_at": None, "former_owners": "lake"}
    assert IndexFacts.of({**wrong, "deleted_version": True}) == IndexFacts()
    assert IndexFacts.of(FACTS.as_entry()) == FACTS
