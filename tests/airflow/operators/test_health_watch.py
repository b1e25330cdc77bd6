"""The watch: each change in the health of any job is told once, and its gauges are sent at each look."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import boto3
import pytest
from airflow.models.variable import Variable
from airflow.sdk import DAG, BaseNotifier, Context
from airflow.utils.session import create_session
from moto import mock_aws
from sqlalchemy import delete, select

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.naming import delete as delete_job
from airflow_bookmarks.lifecycle.health.listed import DAMAGED, JobHealth, health_of_all
from airflow_bookmarks.operators.health_watch import BookmarkHealthWatchOperator, changes, noted
from airflow_bookmarks.operators.task import metrics
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.airflow.conftest import Played, Player, World, connect
from tests.lifecycle.shop import Shop


class Pager(BaseNotifier):
    """Takes the place of a notifier of a provider: it renders its text, and keeps what was sent."""

    template_fields = ("text",)
    sent: ClassVar[list[str]] = []

    def __init__(self, text: str = "{{ bookmark.job }} {{ bookmark.before }}>{{ bookmark.state }}") -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Context) -> None:
        Pager.sent.append(self.text)


class Gauges:
    """Takes the place of Airflow's stats, and keeps the gauges."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, str | None], float] = {}

    def gauge(self, stat: str, value: float, *, tags: dict[str, Any]) -> None:
        assert tags["namespace"] == "test"
        self.sent[stat, tags.get("job")] = value


@pytest.fixture(autouse=True)
def nothing_sent(player: Player) -> None:
    Pager.sent.clear()
    with create_session() as session:
        session.execute(delete(Variable))


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> Gauges:
    gauges = Gauges()
    monkeypatch.setattr(metrics, "Stats", gauges)
    return gauges


def look(player: Player, notify: Any = None, **arguments: Any) -> tuple[Played, list[str]]:
    """Let the watch look once; return the run, and what was sent because of it."""
    before = len(Pager.sent)
    with DAG("watch", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkHealthWatchOperator(task_id="watch", notify=notify or Pager(), **arguments)
    return player.play(dag), Pager.sent[before:]


def told(player: Player, **arguments: Any) -> list[str]:
    played, sent = look(player, **arguments)
    assert played.state == "success"
    return sent


def fail(world: World, job: str) -> None:
    world.shop.begin(job).abort("AnalysisException: no such column")


def variables() -> list[str]:
    with create_session() as session:
        return list(session.scalars(select(Variable.key)))


# ---- what is told


def test_steady_trouble_of_many_jobs_is_told_once_each_and_each_recovery_once(world: World, player: Player) -> None:
    for job in ("fine", "one", "two"):
        world.shop.run(job)
    assert told(player) == []

    for job in ("one", "two"):
        fail(world, job)
    assert told(player) == ["one OK>FAILED", "two OK>FAILED"]
    assert told(player) == []
    assert variables() == ["bookmarks.watched.default.bookmarks_default"]

    world.shop.run("two")
    assert told(player) == ["two FAILED>OK"]
    assert told(player) == []

    world.shop.run("one")
    assert told(player) == ["one FAILED>OK"]
    assert variables() == []


def test_change_from_one_trouble_to_another_is_told(
    world: World, player: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(COMMITS_KEPT):
        world.shop.run("copy")
    later = world.store.now() + timedelta(days=2)
    monkeypatch.setattr(BookmarkStore, "now", lambda self: later)
    assert told(player) == ["copy OK>LATE"]

    fail(world, "copy")

    assert told(player) == ["copy LATE>FAILED"]


def test_watch_tells_what_it_has_seen_as_its_xcom(world: World, player: Player) -> None:
    world.shop.run("fine")
    fail(world, "broken")

    played, _ = look(player)

    assert played.xcom("watch") == {"jobs": 2, "states": {"FAILED": 1, "OK": 1}, "told": ["broken"]}


def test_what_could_not_be_told_is_told_the_next_time_and_what_was_is_not(world: World, player: Player) -> None:
    fail(world, "one")
    fail(world, "two")

    def breaks_at_two(context: Any) -> None:
        if context["bookmark"]["job"] == "two":
            raise ConnectionError("no route to the pager")

    played, _ = look(player, breaks_at_two)

    assert played.state == "failed"
    assert told(player) == ["two OK>FAILED"]


def test_end_of_a_trouble_can_be_left_out(world: World, player: Player) -> None:
    fail(world, "copy")
    told(player, recovery=False)
    world.shop.run("copy")

    assert told(player, recovery=False) == []
    assert variables() == []


def test_two_watches_are_told_apart_by_name(world: World, player: Player) -> None:
    fail(world, "copy")

    assert told(player, name="chat") == ["copy OK>FAILED"]
    assert told(player, name="pager") == ["copy OK>FAILED"]


def test_deleted_job_is_forgotten_without_a_word(world: World, player: Player) -> None:
    fail(world, "copy")
    told(player)
    delete_job(world.store, "copy", typed_name="copy", reason="r", who="w")

    assert told(player) == []
    assert variables() == []


def test_watch_without_a_notifier_is_an_error_when_the_dag_file_is_read() -> None:
    with pytest.raises(OptionError, match="nobody to tell"):
        BookmarkHealthWatchOperator(task_id="watch", notify=[])


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Make an empty store in DynamoDB, and let the connection lead there."""
    for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret"), ("DEFAULT_REGION", "eu-west-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    with mock_aws():
        boto3.setup_default_session()
        uri = "dynamodb://bookmarks?region=eu-west-1&namespace=test"
        store = open_store(uri)
        store.init()
        connect(monkeypatch, store=uri)
        shop = Shop(tmp_path_factory.mktemp("shop"), store)
        shop.raw.mkdir()
        yield shop


def test_jobs_of_a_table_in_dynamodb_are_watched(dynamodb: Shop, player: Player) -> None:
    dynamodb.run("fine")
    dynamodb.begin("copy").abort("it failed")
    assert told(player) == ["copy OK>FAILED"]

    dynamodb.run("copy")

    assert told(player) == ["copy FAILED>OK"]


# ---- the rule


def job_in(state: str, *, job: str = "copy", is_trouble: bool = True) -> JobHealth:
    return JobHealth(job, state, 1, is_trouble, "so it is")


def test_state_that_nobody_has_to_look_at_is_no_news() -> None:
    fine = [job_in(state, job=state, is_trouble=False) for state in ("OK", "NEW", "TAKEN BACK")]

    assert changes({}, fine) == []


def test_job_that_was_taken_back_has_recovered() -> None:
    (one,) = changes({"copy": "FAILED"}, [job_in("TAKEN BACK", is_trouble=False)])

    assert (one.is_recovery, one.before) == (True, "FAILED")
    assert noted({"copy": "FAILED", "other": "LATE"}, one) == {"other": "LATE"}


def test_damaged_job_is_told() -> None:
    (one,) = changes({}, [job_in(DAMAGED)])

    assert one.standing.message == "job 'copy' is DAMAGED: so it is"


# ---- the gauges


def test_each_state_is_counted_and_each_job_has_its_state_as_a_number(
    world: World, player: Player, gauges: Gauges
) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("fine")
    world.shop.run("reader", upstream="fine")
    fail(world, "broken")

    told(player)

    counts = {name.removeprefix("bookmark.jobs."): n for (name, job), n in gauges.sent.items() if job is None}
    assert counts == {metrics._name_of(state): 0 for state in (DAMAGED, *HealthState)} | {"failed": 1, "ok": 2}
    ranks = {job: value for (name, job), value in gauges.sent.items() if name == "bookmark.health"}
    assert ranks == {"fine": 9, "reader": 9, "broken": 1}
    assert gauges.sent["bookmark.lag_seconds", "reader"] == 0
    assert ("bookmark.lag_seconds", "fine") not in gauges.sent  # it reads no other job


def test_lag_is_the_time_since_the_oldest_unread_run(
    world: World, player: Player, gauges: Gauges, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.shop.run("fine")
    world.shop.run("reader", upstream="fine")
    world.shop.put("a.txt", "a")
    world.shop.run("fine")
    later = world.store.now() + timedelta(hours=2)
    monkeypatch.setattr(BookmarkStore, "now", lambda self: later)

    told(player)

    assert gauges.sent["bookmark.lag_seconds", "reader"] >= 7200


def test_below_eight_somebody_has_to_look() -> None:
    """What alarms and the documentation say; a negative gauge would be a decrement in StatsD."""
    ranks = {state.value: 1 + state.rank for state in HealthState}

    assert {state.value for state in HealthState if state.is_trouble} == {s for s, rank in ranks.items() if rank < 8}
    assert min(ranks.values()) == 1


# ---- the hook


def test_hook_returns_the_health_of_all_jobs_the_worst_first(world: World) -> None:
    world.shop.run("fine")
    fail(world, "broken")

    rows = BookmarkHook().healths()

    assert [(row["job"], row["health"], row["is_trouble"]) for row in rows] == [
        ("broken", "FAILED", True),
        ("fine", "OK", False),
    ]
    assert rows[0]["reason"] == "the last try failed: AnalysisException: no such column"
    assert rows[0]["since"] is not None


def test_sharded_job_is_one_and_as_bad_as_its_worst_shard(world: World) -> None:
    world.shop.run("copy~00")
    fail(world, "copy~01")

    (job,) = health_of_all(world.store)

    assert (job.job, job.state) == ("copy", "FAILED")
