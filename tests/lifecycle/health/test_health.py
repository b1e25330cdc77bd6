"""The health of real jobs: what heads keep of failures, commits and changes, and what is looked up beside them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.health.verdict import HealthState, HealthVerdict
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position
from airflow_bookmarks.lifecycle.health.job import health
from airflow_bookmarks.lifecycle.health.listed import healths
from airflow_bookmarks.lifecycle.protocol.lease import LEASE_TIME
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Update
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop

TERMS: dict[str, Any] = {"reason": "a test", "who": "me"}


def seen(shop: Shop, job: str = "copy") -> HealthVerdict:
    alone = health(shop.store, job)
    assert healths(shop.store)[job] == alone  # the list says the same
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


def test_late_job_says_which_runs_of_its_upstream_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    shop.run()
    for number in range(COMMITS_KEPT):
        shop.run("report", run_id=f"run {number}", upstream="copy")
    later(shop, timedelta(days=2), monkeypatch)
    assert seen(shop, "report").state is HealthState.LATE
    assert "unread" not in seen(shop, "report").reason
    for name in "bc":
        shop.put(f"{name}.txt", name)
        shop.run()
    shop.run()  # without anything new
    assert seen(shop, "report").reason.endswith("; unread: 2 runs of copy")


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


# ---- exit codes


def test_exit_code_of_a_failed_run_stands_before_its_error(shop: Shop) -> None:
    shop.begin().abort("SystemExit: 3", exit_code=3)
    assert seen(shop).reason == "the last try failed with exit code 3: SystemExit: 3"
    shop.begin().abort("ValueError: no such column")
    assert seen(shop).reason == "the last try failed: ValueError: no such column"


def test_exit_code_of_a_driver_that_can_not_publish_is_kept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shop.begin()
    shop.copy(run)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.run.leased.publish_run", refused)
    with pytest.raises(PublishError):
        run.commit()
    run.abort("SystemExit: 4", exit_code=4)
    failure = shop.store.head("copy").failed
    assert failure is not None
    assert failure.exit_code == 4


def test_fence_of_a_driver_that_has_ended_says_so_where_it_could_not(shop: Shop) -> None:
    shop.copy(shop.begin(run_id="task"))
    assert shop.store.fence("copy", "task", 1, error="it has ended", exit_code=137)
    assert state(shop) == (HealthState.FAILED, "the last try failed with exit code 137: it has ended")
    shop.run(run_id="task", attempt=2)
    assert state(shop)[0] is HealthState.OK


def test_fence_adds_the_exit_code_to_what_the_driver_has_said_and_to_nothing_else(shop: Shop) -> None:
    shop.begin(run_id="other").abort("ValueError: no such column")
    shop.store.fence("copy", "task", 1, error="it has ended", exit_code=1)
    assert state(shop)[1] == "the last try failed: ValueError: no such column"
    shop.store.fence("copy", "other", 1, error="it has ended", exit_code=1)
    assert state(shop)[1] == "the last try failed with exit code 1: ValueError: no such column"
    shop.begin(run_id="third").abort("SystemExit: 3", exit_code=3)
    shop.store.fence("copy", "third", 1, error="it has ended", exit_code=1)
    assert state(shop)[1] == "the last try failed with exit code 3: SystemExit: 3"


def test_fence_of_a_driver_that_may_be_alive_is_no_failure(shop: Shop) -> None:
    shop.copy(shop.begin(run_id="task"))
    assert shop.store.fence("copy", "task", 1)
    assert state(shop)[0] is HealthState.NEW


# ---- files that are set aside, and gaps

PARTS = r"part-(?P<seq>\d+)"
WAITS = (HealthState.PAUSED, "1 file set aside because they can't be parsed")


def read(shop: Shop, *broken: str, **options: Any) -> None:
    """Make one run that finds out that files of these names can't be parsed."""
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(**options)))
    corrupt = {path: "it is broken" for path in plan.files.paths if Path(path).name in broken}
    if corrupt:
        run.quarantine("raw", corrupt)
    run.commit()


def state(shop: Shop) -> tuple[HealthState, str]:
    verdict = seen(shop)
    return verdict.state, verdict.reason


def states(verdict: HealthVerdict) -> list[HealthState]:
    return [verdict.state, *(each.state for each in verdict.more)]


def test_job_with_files_that_are_set_aside_is_paused_until_they_are_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    read(shop, "b.txt")
    assert state(shop) == WAITS
    shop.put("c.txt", "c")
    read(shop)
    read(shop)  # with nothing new
    assert state(shop) == WAITS
    set_position(shop.store, "copy", "raw", "retry:*", **TERMS)
    assert state(shop)[0] is HealthState.TAKEN_BACK
    read(shop)
    assert state(shop)[0] is HealthState.OK


def test_what_was_set_aside_goes_back_with_the_position(shop: Shop) -> None:
    shop.put("a.txt", "a")
    read(shop)
    shop.put("b.txt", "b")
    read(shop, "b.txt")
    rewind(shop.store, "copy", 1, **TERMS)
    assert state(shop)[0] is HealthState.TAKEN_BACK
    read(shop, "b.txt")
    assert state(shop) == WAITS
    set_position(shop.store, "copy", "raw", "now", **TERMS)  # counts as read
    assert state(shop)[0] is HealthState.TAKEN_BACK


def test_job_with_a_gap_in_its_sequence_is_paused_until_it_is_filled(shop: Shop) -> None:
    for number in (1, 3, 5):
        shop.put(f"part-{number}.csv", "a")
    read(shop, sequence=PARTS)
    assert state(shop) == (HealthState.PAUSED, "its input lacks 2 between the first and the last seen")
    shop.put("part-2.csv", "a")
    read(shop, sequence=PARTS)
    assert state(shop) == (HealthState.PAUSED, "its input lacks 1 between the first and the last seen")
    read(shop, sequence=PARTS, gaps=False)
    assert state(shop)[0] is HealthState.OK


def test_gap_of_more_numbers_than_a_key_has_digits_is_seen(shop: Shop) -> None:
    for number in (1, 20_130_131_235_959):
        shop.put(f"part-{number}.csv", "a")
    read(shop, sequence=PARTS)
    assert state(shop) == (HealthState.PAUSED, "its input lacks 20,130,131,235,957 between the first and the last seen")


def test_gap_that_a_run_with_nothing_to_read_finds_is_seen(shop: Shop) -> None:
    shop.put("part-1.csv", "a")
    read(shop, sequence=PARTS)
    shop.put("part-3.csv", "a", seconds=int(shop.store.now().timestamp()) + 3_600)
    read(shop, sequence=PARTS, settle=timedelta(minutes=5))
    assert shop.store.head("copy").data_run_number == 1
    assert state(shop)[0] is HealthState.PAUSED


def test_run_that_is_taken_over_leaves_what_is_set_aside_and_its_gaps(shop: Shop) -> None:
    rows = Rows(shop.root / "rows.db")
    for number in (1, 3, 4):
        shop.put(f"part-{number}.csv", "a")
    dead = shop.begin(run_id="task", sinks=SINKS.extended(rows))
    plan = dead.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=PARTS)))
    plan = dead.quarantine("raw", {str(shop.raw / "part-3.csv"): "it is broken"})
    dead.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))
    rows.write(int(dead.token.rsplit("/", 1)[1]), list(plan.files.paths))
    shop.begin(run_id="task", attempt=2, sinks=SINKS.extended(rows)).leave()
    assert states(seen(shop)) == [HealthState.PAUSED, HealthState.PAUSED, HealthState.OK]


def test_head_of_an_earlier_version_does_not_say_so_until_its_next_files_are_read(shop: Shop) -> None:
    shop.put("part-1.csv", "a")
    shop.put("part-3.csv", "a")
    shop.put("part-4.csv", "b")
    read(shop, "part-4.csv", sequence=PARTS)
    known = shop.store.head("copy").contexts
    before = item.contexts_value({ctx: replace(each, set_aside=None, missing=None) for ctx, each in known.items()})
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"contexts": before})])
    assert states(health(shop.store, "copy")) == [HealthState.PAUSED, HealthState.PAUSED, HealthState.OK]
    assert healths(shop.store)["copy"].state is HealthState.OK
    shop.put("part-5.csv", "a")
    read(shop, sequence=PARTS)
    assert state(shop)[0] is HealthState.PAUSED
