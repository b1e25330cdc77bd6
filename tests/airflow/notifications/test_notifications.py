"""The notifier: each trouble is told once, and its end once, however often a task fails or succeeds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, cast

import pytest
from airflow.models.variable import Variable
from airflow.sdk import DAG, BaseNotifier, Context, task
from airflow.utils.session import create_session
from sqlalchemy import delete, select

from airflow_bookmarks.core.errors import ExpectationError, OptionError
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.rules.lag import LagState
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.lag import Lag
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.notifications.bookmark import BookmarkNotifier
from airflow_bookmarks.notifications.health import OK, Health, Subject, news, standings
from airflow_bookmarks.notifications.notification_log import NotificationRecord
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.airflow.conftest import Player, World
from tests.lifecycle.shop import Shop


class Slack(BaseNotifier):
    """Takes the place of a notifier of a provider: it renders its text, and keeps what was sent."""

    template_fields = ("text",)
    sent: ClassVar[list[str]] = []

    def __init__(self, text: str = "{{ bookmark.state }}") -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Context) -> None:
        Slack.sent.append(self.text)


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    Slack.sent.clear()


class Watch:
    """A DAG whose task ends well or badly, and a notifier that looks after it."""

    def __init__(self, player: Player) -> None:
        self._player = player
        with create_session() as session:
            session.execute(delete(Variable))

    def plays(self, *notifiers: Callable[[Context], Any], fails: bool = False) -> list[str]:
        """Play one run; return what was sent because of it."""
        sent = len(Slack.sent)

        @task(on_failure_callback=list(notifiers), on_success_callback=list(notifiers))
        def job() -> None:
            if fails:
                raise RuntimeError("Spark ended with exit code 1")

        with DAG("copy", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
            job()
        assert self._player.play(dag).state == ("failed" if fails else "success")
        return Slack.sent[sent:]

    @property
    def variables(self) -> list[str]:
        with create_session() as session:
            return list(session.scalars(select(Variable.key)))


@pytest.fixture
def watch(player: Player) -> Watch:
    return Watch(player)


def notifier(*on: Subject, job: Any = "copy", **arguments: Any) -> BookmarkNotifier:
    return BookmarkNotifier(on=on, notify=Slack(), job=job, **arguments)


def fail(world: World, message: str = "rows > 0", job: str = "copy") -> None:
    """Make a run whose expectation fails."""
    run = world.shop.begin(job)
    world.shop.copy(run)
    with pytest.raises(ExpectationError) as raised:
        run.expect(False, message)
    run.abort(f"ExpectationError: {raised.value}")


# ---- the health of the job


@pytest.mark.seldom
def test_each_change_of_the_health_is_told_once(world: World, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    told = BookmarkNotifier(on=["health"], notify=Slack("{{ bookmark.state }}: {{ bookmark.message }}"), job="copy")
    for _ in range(COMMITS_KEPT):
        world.shop.run("copy")
    assert watch.plays(told) == []

    world.shop.begin("copy").abort("AnalysisException: no such column")
    (first,) = watch.plays(told, fails=True)
    assert first.startswith("FAILED: job 'copy' is FAILED since 20")
    assert first.endswith(": the last try failed: AnalysisException: no such column")
    world.shop.begin("copy").abort("another error")
    assert watch.plays(told, fails=True) == []

    world.shop.run("copy")
    assert watch.plays(told) == ["OK: job 'copy' is OK: it commits as usual"]
    later = world.store.now() + timedelta(days=2)
    monkeypatch.setattr(BookmarkStore, "now", lambda self: later)
    (late,) = watch.plays(told)
    assert late.startswith("LATE: job 'copy' is LATE since 20")


# ---- a failed expectation


def test_failed_expectation_is_told_once_and_its_end_once(world: World, watch: Watch) -> None:
    told = notifier("expectation")
    fail(world)
    assert watch.plays(told, fails=True) == ["FAILED: rows > 0"]

    fail(world)
    assert watch.plays(told, fails=True) == []

    world.shop.run("copy")
    assert watch.plays(told) == ["OK"]
    assert watch.plays(told) == []


def test_another_failed_expectation_is_told(world: World, watch: Watch) -> None:
    fail(world)
    watch.plays(notifier("expectation"), fails=True)

    fail(world, "no row twice")

    assert watch.plays(notifier("expectation"), fails=True) == ["FAILED: no row twice"]


def test_failure_before_anything_was_expected_says_nothing_of_it(world: World, watch: Watch) -> None:
    fail(world)
    watch.plays(notifier("expectation"), fails=True)
    run = world.shop.begin("copy")
    world.shop.copy(run)
    run.abort("OutOfMemoryError: heap")

    assert watch.plays(notifier("expectation"), fails=True) == []
    assert standings(world.store, "copy", ["expectation"])[0].state is None


def test_expectation_that_was_caught_and_raised_as_something_else_is_told(world: World) -> None:
    run = world.shop.begin("copy")
    world.shop.copy(run)
    with pytest.raises(ExpectationError):
        run.expect(False, "rows > 0")
    run.abort("KeyError: 'x'")

    (standing,) = standings(world.store, "copy", ["expectation"])

    assert standing.state == "FAILED: rows > 0"


# ---- an upstream that went back


def chain(world: World) -> None:
    for name in ("a.txt", "b.txt"):
        world.shop.put(name, name)
        world.shop.run("up")
    world.shop.run("copy", upstream="up")


@pytest.mark.seldom
def test_rewound_upstream_is_told_once_and_that_it_was_dealt_with(world: World, watch: Watch) -> None:
    chain(world)
    told = notifier("upstream")
    assert watch.plays(told) == []

    rewind(world.store, "up", 1, reason="r", who="w")
    assert watch.plays(told, fails=True) == ["REWOUND to run 1"]
    assert watch.plays(told, fails=True) == []

    reset(world.store, "up", reason="r", who="w")
    assert watch.plays(told, fails=True) == ["REWOUND to run 0"]

    world.shop.run("copy", upstream="up", on_rewind="ignore")
    assert watch.plays(told) == ["OK"]


def test_replayed_upstream_is_told(world: World, watch: Watch) -> None:
    chain(world)
    run = ReplayRun.begin_replay(world.store, "up", world.shop.identity(), world.shop.environment, 1)
    world.shop.copy(run)
    run.commit()

    assert watch.plays(notifier("upstream"), fails=True) == ["REPLAYED run 1"]


# ---- lag


def behind(world: World, job: str, state: LagState) -> Lag:
    return Lag(
        job, "up", "upstream", ("raw",), state, runs=3, files=3, why=None if state is LagState.OK else "so it is"
    )


@pytest.mark.parametrize(
    ("before", "now", "sent"),
    [
        (LagState.OK, LagState.LAGGING, ["LAGGING"]),
        (LagState.LAGGING, LagState.LAGGING, []),
        (LagState.LAGGING, LagState.STALLED, ["STALLED"]),
        (LagState.STOPPED, LagState.OK, ["OK"]),
        (LagState.LAGGING, LagState.UNKNOWN, []),
        (LagState.OK, LagState.REWOUND, []),
    ],
)
def test_change_of_lag_is_told(
    world: World, watch: Watch, monkeypatch: pytest.MonkeyPatch, before: LagState, now: LagState, sent: list[str]
) -> None:
    world.shop.run("copy")
    target = "airflow_bookmarks.notifications.health.lag"
    monkeypatch.setattr(target, lambda store, job: [behind(world, job, before)])
    watch.plays(notifier("lag"))
    monkeypatch.setattr(target, lambda store, job: [behind(world, job, now)])

    assert watch.plays(notifier("lag")) == sent


def test_real_lag_is_told_until_the_job_has_caught_up(world: World, watch: Watch) -> None:
    for until in (1, 2, 3):
        # A window of two days: however slow this test is, the last commit is not longer ago.
        shop = shop_at(world, datetime.now(UTC) - timedelta(days=3 - until))
        for name in ("a", "b"):
            shop.put(f"{name}{until}.txt", name)
            shop.run("up")
        consume(shop, until)

    told = BookmarkNotifier(on=["lag"], notify=Slack("{{ bookmark.message }}"), job="copy")
    (said,) = watch.plays(told)
    assert said.startswith("job 'copy' is LAGGING behind 'up': each of its last 3 runs left as much unread")
    assert said.endswith("(unread: 3 runs, 3 files)")

    consume(world.shop)
    assert watch.plays(told) == ["job 'copy' keeps up with 'up'"]


def shop_at(world: World, now: datetime) -> Shop:
    return Shop(world.folder, BookmarkStore(world.store.table, world.store.namespace, clock=lambda: now))


def consume(shop: Shop, until: int | None = None) -> None:
    run = shop.begin("copy")
    run.plan("raw", UpstreamSource(shop.store, "copy", "up", until=until))
    run.commit()


# ---- how it is told


def test_what_is_told_has_plain_fields_for_templates(world: World, watch: Watch) -> None:
    chain(world)
    rewind(world.store, "up", 1, reason="r", who="w")
    text = "{{ bookmark.job }}|{{ bookmark.subject }}|{{ bookmark.about }}|{{ bookmark.before }}|{{ bookmark.message }}"

    sent = watch.plays(BookmarkNotifier(on=["upstream"], notify=[Slack(text)], job="copy"))

    assert sent == ["copy|upstream|up|OK|upstream 'up' went back to run 1, and job 'copy' has read run 2"]


def test_several_jobs_and_several_notifiers_each_hear_of_it(world: World, watch: Watch) -> None:
    for job in ("one", "two"):
        fail(world, job=job)
    heard: list[Any] = []

    def function(context: Any) -> None:
        heard.append(context["bookmark"]["job"])

    sent = watch.plays(BookmarkNotifier(on=["expectation"], notify=[Slack(), function], job=["one", "{{ 'two' }}"]))

    assert sent == ["FAILED: rows > 0"] * 2
    assert heard == ["one", "two"]


def test_job_of_the_task_is_looked_at_by_default(world: World, watch: Watch) -> None:
    fail(world, job="copy.job")

    assert watch.plays(notifier("expectation", job=None), fails=True) == ["FAILED: rows > 0"]


def test_end_of_a_trouble_can_be_left_out(world: World, watch: Watch) -> None:
    told = notifier("expectation", recovery=False)
    fail(world)
    watch.plays(told, fails=True)
    world.shop.run("copy")

    assert watch.plays(told) == []

    fail(world)
    assert watch.plays(told, fails=True) == ["FAILED: rows > 0"]


def test_two_notifiers_of_one_job_are_told_apart_by_name(world: World, watch: Watch) -> None:
    fail(world)

    sent = watch.plays(notifier("expectation", name="chat"), notifier("expectation", name="pager"), fails=True)

    assert len(sent) == 2


def test_what_could_not_be_told_is_told_the_next_time(world: World, watch: Watch) -> None:
    fail(world)

    def broken(context: Any) -> None:
        raise ConnectionError("no route to the chat")

    assert watch.plays(BookmarkNotifier(on=["expectation"], notify=broken, job="copy"), fails=True) == []
    assert watch.plays(notifier("expectation"), fails=True) == ["FAILED: rows > 0"]


def test_job_without_a_bookmark_is_nothing_to_tell(world: World, watch: Watch) -> None:
    assert watch.plays(notifier("expectation", "upstream", "lag", job="none")) == []


# ---- what was told


def test_variable_is_there_only_while_something_is_wrong(world: World, watch: Watch) -> None:
    told = notifier("expectation")
    fail(world)
    watch.plays(told, fails=True)
    assert watch.variables == ["bookmarks.told.default.copy"]

    world.shop.run("copy")
    watch.plays(told)
    assert watch.variables == []


def test_person_who_deletes_the_variable_is_told_again(world: World, watch: Watch) -> None:
    fail(world)
    watch.plays(notifier("expectation"), fails=True)
    with create_session() as session:
        session.execute(delete(Variable))

    assert watch.plays(notifier("expectation"), fails=True) == ["FAILED: rows > 0"]


def test_longest_names_fit_the_key_of_a_variable() -> None:
    keys = {NotificationRecord(name, job).variable for name in ("chat", "p" * 250) for job in ("j" * 250, "k" * 250)}

    assert len(keys) == 4
    assert max(map(len, keys)) <= 250


def test_nothing_is_told_of_a_standing_that_is_not_known() -> None:
    unknown = Health("copy", "lag", "up", None)

    assert news({"lag up": "LAGGING"}, [unknown]) == []
    assert [one.is_recovery for one in news({"lag up": "LAGGING"}, [Health("copy", "lag", "up", OK)])] == [True]


@pytest.mark.parametrize(
    "arguments",
    [
        {"on": [], "notify": print},
        {"on": ["lagg"], "notify": print},
        {"on": "lag", "notify": print},
        {"on": ["lag"], "notify": []},
    ],
)
def test_wrong_arguments_are_an_error_when_the_dag_file_is_read(arguments: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        BookmarkNotifier(**arguments)


# ---- which job


def submit(**arguments: Any) -> BookmarkSparkSubmitOperator:
    return BookmarkSparkSubmitOperator(task_id="land", application="land.py", **arguments)


@pytest.mark.parametrize(
    ("operator", "job"),
    [
        (submit(), "copy.job"),
        (submit(bookmark_job="clean"), "clean"),
        (submit(glue=True, application_args=["--JOB_NAME", "nightly"]), "nightly"),
        (submit(bookmark_shard="1:3"), "copy.job~02"),
    ],
    ids=["by_default", "named", "of_aws_glue", "of_a_share"],
)
def test_notifier_without_a_job_looks_at_that_of_its_task(
    world: World, watch: Watch, operator: BookmarkSparkSubmitOperator, job: str
) -> None:
    fail(world, job=job)
    told = notifier("expectation", job=None)

    sent = watch.plays(lambda context: told.notify(cast("Context", {**context, "task": operator})), fails=True)

    assert sent == ["FAILED: rows > 0"]


def test_notifier_of_a_sharded_job_looks_at_each_of_its_shards(world: World, watch: Watch) -> None:
    for number in (2, 5):
        fail(world, job=f"clean~{number:02}")
    told = BookmarkNotifier(on=["expectation"], notify=Slack("{{ bookmark.job }}"), job="clean")

    assert watch.plays(told, fails=True) == ["clean~02", "clean~05"]
