"""Promises DEP-9 and DEP-14: how far a consumer is behind, and whether that is a trouble."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import JobUnknownError
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.inspect.lag import Lag, Neighbours, lag, lags
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Delete
from tests.lifecycle.shop import Shop


class Stopped(BaseException):
    """Stands for a process that ended at a point."""


WHY: dict[str, Any] = {"reason": "a test", "who": "me"}


@dataclass
class Town:
    """A shop whose clock is set by hand."""

    folder: Path
    now: datetime = datetime(2013, 1, 31, 12, tzinfo=UTC)
    shop: Shop = field(init=False)
    files: int = 0

    def __post_init__(self) -> None:
        store = BookmarkStore(SqliteTable(":memory:"), "test", clock=lambda: self.now)
        store.init()
        self.shop = Shop(self.folder, store)
        self.shop.raw.mkdir()

    @property
    def store(self) -> BookmarkStore:
        return self.shop.store

    def wait(self, **kwargs: float) -> None:
        self.now += timedelta(**kwargs)

    def publish(self, job: str = "up", runs: int = 1) -> None:
        """Make so many runs with data."""
        for _ in range(runs):
            self.files += 1
            self.shop.put(f"{self.files:03}.txt", "a line", seconds=int(self.now.timestamp()))
            self.shop.run(job)

    def consume(self, until: int | None = None, job: str = "down", upstream: str = "up") -> None:
        run = self.shop.begin(job)
        run.plan("raw", UpstreamSource(self.store, job, upstream, until=until))
        run.commit()

    def lag(self, job: str = "down") -> Lag:
        (found,) = lag(self.store, job)
        return found

    def state(self) -> LagState:
        return self.lag().state


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """Build a town at noon."""
    return Town(tmp_path)


def test_lag_is_what_was_published_and_not_consumed(town: Town) -> None:
    town.publish()
    town.consume()
    town.wait(hours=1)
    town.publish()
    town.wait(hours=1)
    town.publish()
    town.shop.run("up")  # an empty run is no lag
    town.wait(seconds=30)

    found = town.lag()

    assert (found.source, found.kind, found.contexts) == ("up", "upstream", ("raw",))
    assert (found.consumed, found.published, found.runs, found.files, found.bytes) == (1, 4, 2, 2, 14)
    assert (found.state, found.seconds) == (LagState.OK, 3630)
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def test_consumer_that_read_all_is_ok_however_long_ago(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.consume()
        town.wait(hours=1)
    town.shop.run("up")
    town.wait(days=300)
    assert (town.state(), town.lag().runs, town.lag().seconds) == (LagState.OK, 0, 0)


def test_consumer_that_reads_less_than_is_published_is_lagging(town: Town) -> None:
    for run in range(1, 4):
        town.publish(runs=2)
        town.consume(until=run)
        town.wait(hours=1)
    found = town.lag()
    assert (found.state, found.runs) == (LagState.LAGGING, 3)
    assert "its last 3 runs" in str(found.why)


def test_consumer_that_catches_up_once_is_ok(town: Town) -> None:
    for until in (1, 2, None, 7):
        town.publish(runs=2)
        town.consume(until=until)
        town.wait(hours=1)
    assert (town.state(), town.lag().runs) == (LagState.OK, 1)


def test_what_was_published_while_a_run_worked_does_not_count_against_it(town: Town) -> None:
    for _ in range(4):
        town.publish()
        run = town.shop.begin("down")
        run.plan("raw", UpstreamSource(town.store, "down", "up"))
        town.wait(hours=2)
        town.publish(runs=2)
        run.commit()
        town.wait(hours=22)
    assert (town.state(), town.lag().runs) == (LagState.OK, 2)


def test_consumer_that_commits_and_reads_nothing_of_it_is_stalled(town: Town) -> None:
    town.publish()
    town.consume()
    town.publish(runs=3)
    for _ in range(10):
        town.shop.begin("down").commit()
        town.wait(hours=1)
    assert (town.state(), town.lag().consumed) == (LagState.STALLED, 1)


def test_consumer_that_ended_its_rhythm_has_stopped_unless_it_is_at_work(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.consume()
        town.wait(hours=1)
    town.publish()
    town.wait(hours=2)
    assert town.state() is LagState.OK
    town.wait(seconds=1)
    assert town.state() is LagState.STOPPED
    run = town.shop.begin("down")
    assert town.state() is LagState.OK
    run.abort("a test")


def test_consumer_that_had_nothing_to_read_has_not_stopped_when_something_comes(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.consume()
        town.wait(hours=1)
    town.wait(days=30)
    town.publish()
    assert town.state() is LagState.OK


def test_consumer_that_was_reset_is_rewound_until_it_has_come_up_again(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.consume()
        town.wait(hours=1)
    reset(town.store, "down", **WHY)
    found = town.lag()
    assert (found.state, found.consumed, found.runs) == (LagState.REWOUND, 0, 3)
    town.consume(until=2)
    assert town.state() is LagState.REWOUND
    town.consume()
    assert town.state() is LagState.OK


def test_upstream_that_went_back_below_what_was_consumed_is_rewound(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.consume()
    rewind(town.store, "up", 1, **WHY)
    found = town.lag()
    assert (found.state, found.runs) == (LagState.REWOUND, 0)
    assert found.why == "'up' went back to run 1, and 3 was read"


def test_upstream_that_went_back_above_what_was_consumed_is_not_told(town: Town) -> None:
    town.publish()
    town.consume()
    town.publish(runs=2)
    rewind(town.store, "up", 2, **WHY)
    found = town.lag()
    assert (found.state, found.runs) == (LagState.OK, 1)


def test_replay_of_a_consumed_run_is_told_with_its_number(town: Town) -> None:
    town.publish()
    town.consume()
    town.publish()
    replay(town, 2)
    assert town.state() is LagState.OK
    replay(town, 1)
    found = town.lag()
    assert (found.state, found.runs) == (LagState.REPLAYED, 1)
    assert "run 1" in str(found.why)


def replay(town: Town, number: int) -> None:
    run = ReplayRun.begin_replay(town.store, "up", town.shop.identity(), town.shop.environment, number)
    town.shop.copy(run)
    run.commit()


def test_run_that_is_committed_and_not_published_is_no_lag_yet(town: Town) -> None:
    town.publish()
    town.consume()
    town.publish()

    def stop(at: Failpoint) -> None:
        if at is Failpoint.COMMITTED:
            raise Stopped

    town.shop.environment = replace(town.shop.environment, at=stop)
    with pytest.raises(Stopped):
        town.publish()

    assert town.lag().runs == 1


def test_upstream_that_is_gone_is_not_known(town: Town) -> None:
    town.publish()
    town.consume()
    town.store.table.transact([Delete(town.store.keys("up").head)])
    assert (town.state(), town.lag().why) == (LagState.UNKNOWN, "there is no bookmark named 'up'")


def test_consumer_that_began_before_its_upstream_published_anything_is_behind_it(town: Town) -> None:
    failed = town.shop.begin("up")
    failed.abort("a test")
    town.consume()
    town.publish()
    assert (town.lag().consumed, town.lag().runs) == (0, 1)


def test_job_that_does_not_exist_has_no_lag(town: Town) -> None:
    with pytest.raises(JobUnknownError):
        lag(town.store, "no.such")


# ---- behind folders


def test_lag_behind_a_folder_is_what_is_pending(town: Town) -> None:
    for _ in range(3):
        town.publish()
        town.wait(hours=1)
    town.shop.put("new.txt", "new", seconds=int(town.now.timestamp()))
    town.wait(hours=2)
    found = town.lag("up")
    assert (found.state, found.kind, found.source) == (LagState.OK, "files", f"files:{town.shop.raw}")
    assert (found.runs, found.files, found.bytes, found.seconds) == (None, 1, 4, 7200)
    town.wait(seconds=1)
    assert town.lag("up").state is LagState.STOPPED


def test_folder_that_is_gone_is_not_known(town: Town) -> None:
    town.shop.run("up")
    town.shop.raw.rmdir()
    assert town.lag("up").state is LagState.UNKNOWN


def test_job_that_never_committed_is_not_one_that_keeps_up(town: Town) -> None:
    town.shop.begin("up").abort("a test")
    found = town.lag("up")
    assert (found.state, "none has committed" in str(found.why)) == (LagState.UNKNOWN, True)


# ---- what it takes


class Counting:
    """A table that counts its requests."""

    def __init__(self, table: Any) -> None:
        self._table, self.requests = table, 0

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "query", "transact", "scan"):
            self.requests += 1
        return getattr(self._table, name)


def test_namespace_where_nothing_is_behind_takes_a_request_for_each_hundred_jobs(town: Town) -> None:
    town.publish()
    for number in range(30):
        town.consume(job=f"down.{number}")
    counting = Counting(town.store.table)
    found = lags(Neighbours.of_all(BookmarkStore(counting, "test", clock=lambda: town.now)))
    assert ({each.state for each in found}, len(found)) == ({LagState.OK}, 30)
    assert counting.requests == 3  # the index, the heads, the edges


def test_deleted_consumer_is_behind_nothing(town: Town) -> None:
    town.publish()
    town.consume()
    town.publish()
    delete(town.store, "down", typed_name="down", **WHY)
    assert lags(Neighbours.of_all(town.store)) == []
