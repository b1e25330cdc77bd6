"""The health of real jobs: what heads keep of failures, commits and changes, and what is looked up beside them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.health.verdict import HealthState, HealthVerdict
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.health.job import health
from airflow_bookmarks.lifecycle.health.listed import healths
from airflow_bookmarks.lifecycle.protocol.lease import LEASE_TIME
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop

TERMS: dict[str, Any] = {"reason": "a test", "who": "me"}


def seen(shop: Shop, job: str = "copy") -> HealthVerdict:
    alone = health(shop.store, job)
    assert healths(shop.store)[job].state is alone.state  # the list says the same
    return alone


def later(shop: Shop, by: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock of the store go on, for those who look."""
    now = shop.store.now()
    monkeypatch.setattr(BookmarkStore, "now", lambda self: now + by)


def refused(*_: object) -> None:
    raise PublishError("the target is gone")


def test_job_whose_first_run_failed_says_why(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort("ValueError: no such column")
    verdict = seen(shop)
    assert (verdict.state, verdict.reason) == (HealthState.FAILED, "the last try failed: ValueError: no such column")
    assert [each.state for each in verdict.more] == [HealthState.NEW]


def test_failure_is_over_with_the_next_commit_or_change(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.begin().abort("it failed")
    assert seen(shop).state is HealthState.FAILED
    rewind(shop.store, "copy", 1, **TERMS)
    assert seen(shop).state is HealthState.TAKEN_BACK
    shop.begin().abort("it failed again")
    assert seen(shop).state is HealthState.FAILED
    shop.run()
    assert seen(shop).state is HealthState.OK


def test_secret_in_an_error_is_not_on_the_head(shop: Shop) -> None:
    shop.begin().abort("can't open jdbc:postgresql://db/x?user=u&password=hunter2 " + "x" * 900)
    failure = shop.store.head("copy").failure
    assert failure is not None
    assert "hunter2" not in failure.error
    assert len(failure.error) <= 300


def test_run_that_can_not_even_begin_is_a_failure(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.run()

    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.recover", refused)
    with pytest.raises(PublishError):
        shop.begin(run_id="second")
    verdict = seen(shop)
    assert (verdict.state, verdict.reason) == (
        HealthState.FAILED,
        "the last try failed: PublishError: the target is gone",
    )


def test_failure_to_publish_is_over_once_it_is_published(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    with monkeypatch.context() as broken:
        broken.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", refused)
        with pytest.raises(PublishError):
            run.commit()
        run.abort("PublishError: the target is gone")
    assert seen(shop).state is HealthState.FAILED
    shop.begin().leave()  # publishes it, and reads nothing
    assert seen(shop).state is HealthState.OK


def test_failed_replay_is_over_once_one_succeeds(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1).abort("it failed")
    assert seen(shop).state is HealthState.FAILED
    run = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    shop.copy(run)
    run.commit()
    assert seen(shop).state is HealthState.OK


def test_driver_that_died_is_stuck_once_its_lease_has_run_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.copy(shop.begin())
    assert seen(shop).state is HealthState.NEW
    later(shop, LEASE_TIME + timedelta(seconds=1), monkeypatch)
    verdict = seen(shop)
    assert verdict.state is HealthState.STUCK
    lease = shop.store.head("copy").lease
    assert lease is not None
    assert verdict.since == lease.expires_at


def test_reset_job_says_so_and_is_not_well(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", **TERMS)
    verdict = seen(shop)
    assert (verdict.state, verdict.reason) == (
        HealthState.TAKEN_BACK, "its position was moved by reset, and it has not committed since"
    )  # fmt: skip
    shop.run()
    assert seen(shop).state is HealthState.OK


def test_head_keeps_the_last_commits_one_for_each_execution(shop: Shop) -> None:
    for number in range(COMMITS_KEPT + 3):
        shop.put(f"{number}.txt", "a")
        shop.run(run_id=f"run {number}")
    commits = shop.store.head("copy").commits
    assert len(commits) == COMMITS_KEPT
    assert list(commits) == sorted(commits)
    last = shop.store.committed_run("copy", COMMITS_KEPT + 3)
    assert last is not None
    assert abs((commits[-1] - shop.store.now()).total_seconds()) < 60


def test_silent_job_is_late(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    for number in range(COMMITS_KEPT):
        shop.run(run_id=f"run {number}")
    assert seen(shop).state is HealthState.OK
    later(shop, timedelta(days=2), monkeypatch)
    assert seen(shop).state is HealthState.LATE


def test_consumer_of_a_job_that_was_rewound_is_told_by_its_upstream(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    shop.run("report", upstream="copy")
    assert seen(shop, "report").state is HealthState.OK
    rewind(shop.store, "copy", 1, **TERMS)
    verdict = seen(shop, "report")
    assert verdict.state is HealthState.REWOUND
    assert "went back to run 1" in verdict.reason
    assert seen(shop).state is HealthState.TAKEN_BACK  # which is another word
