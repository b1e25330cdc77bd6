"""Waiting: many waits are answered together, by few requests, and as each would be alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    BookmarkError,
    NameInvalidError,
    OptionError,
    StateCorruptError,
    TableLayoutError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.condition import (
    DagRunDone,
    LogicalDateDone,
    NewsFor,
    NewsSince,
    RunReached,
    WatermarkReached,
)
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.naming import adopt, delete, rename
from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitAnswer, WaitStatus, condition_of
from airflow_bookmarks.lifecycle.inspect.waiting import Memory, evaluate
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import MAX_OPERATIONS, Attributes, Delete, Key, Update
from benchmarks.request import RecordingTable
from tests.lifecycle.shop import Shop

DAY = datetime(2026, 5, 3, tzinfo=UTC)
WHY: Any = {"reason": "a test", "who": "w"}


class Stopped(BaseException):
    """Stands for a process that ended at a point."""


def news(job: str = "up", consumer: str = "down") -> Wait:
    return Wait((job,), NewsFor(consumer))


def ask(shop: Shop, wait: Wait, memory: Memory | None = None) -> WaitAnswer:
    (answer,) = evaluate(shop.store, [wait], memory)
    return answer


def one(shop: Shop, wait: Wait, memory: Memory | None = None) -> WaitStatus:
    (standing,) = ask(shop, wait, memory).standings
    return standing


def found_number(shop: Shop, wait: Wait, memory: Memory | None = None) -> str | None:
    """Return the number of the run that satisfies a wait, None while none does."""
    answer = ask(shop, wait, memory)
    return answer.found[0]["run_number"] if answer.is_met else None


def publish(shop: Shop, job: str = "up", *, seconds: int = 1_700_000_000) -> None:
    """Let a job publish a run with data."""
    shop.put(f"{shop.runs_made:05d}.txt", f"line {shop.runs_made}", seconds=seconds)
    shop.run(job)


def commit_only(shop: Shop, job: str = "up", *, seconds: int = 1_700_000_000) -> None:
    """Let a job commit a run, and end before any of it is published."""

    def stop(at: Failpoint) -> None:
        if at is Failpoint.COMMITTED:
            raise Stopped

    dying = replace(shop, environment=replace(shop.environment, at=stop, lease_time=timedelta(0)))
    with pytest.raises(Stopped):
        publish(dying, job, seconds=seconds)


def run_for(shop: Shop, logical_date: datetime, job: str = "up", dag_run_id: str = "scheduled") -> ActiveRun:
    """Begin a run by a DAG run of a logical date, and stage what it writes."""
    run_id = f"flights/{dag_run_id}/work"
    identity = RunIdentity(run_id, 1, "flights", "work", dag_run_id=dag_run_id, logical_date=to_text(logical_date))
    run = ActiveRun.begin(shop.store, job, identity, shop.environment)
    shop.copy(run)
    return run


# ---- a wait is plain data


@pytest.mark.parametrize(
    "condition",
    [
        NewsFor("down"),
        RunReached(7),
        DagRunDone("scheduled__2026-05-03T00:00:00+00:00"),
        LogicalDateDone(DAY),
        WatermarkReached("2026-05-03T00:00:00Z"),
        WatermarkReached("42", "raw"),
    ],
)
def test_wait_survives_being_stored(condition: Any) -> None:
    wait = Wait(("one", "two"), condition)

    assert Wait.of(wait.as_dict()) == wait


@pytest.mark.parametrize(
    "stored",
    [
        {"jobs": ["up"]},
        {"jobs": "up", "run_number": "1"},
        {"jobs": [], "run_number": "1"},
        {"jobs": ["up"], "run_number": "1", "consumer": "down"},
        {"jobs": ["up"], "run_number": "1", "watermark_ctx": "raw"},
        {"jobs": ["up"], "weather": "fine"},
    ],
)
def test_what_is_no_wait_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Wait.of(stored)


def test_job_that_can_not_be_one_is_refused_at_once() -> None:
    with pytest.raises(NameInvalidError):
        Wait(("a#b",), RunReached(1))


def test_what_a_watcher_waits_for_is_not_stored() -> None:
    with pytest.raises(OptionError, match="keeps that place itself"):
        Wait(("up",), NewsSince(1)).as_dict()


# ---- a logical date


def test_run_of_a_logical_date_is_found_by_whichever_dag_run_it_had(shop: Shop) -> None:
    wait = Wait(("up",), condition_of("upstream_logical_date", "2026-05-03 02:00:00+02:00"))
    run_for(shop, DAY - timedelta(days=1), dag_run_id="before").commit()
    assert found_number(shop, wait) is None

    run = run_for(shop, DAY, dag_run_id="manual__x")
    assert "has begun and is not finished" in one(shop, wait).verdict.standing
    run.commit()

    assert found_number(shop, wait) == "2"


def test_executions_are_listed_anew_only_when_the_job_moved(tmp_path: Path) -> None:
    shop, table = recorded_shop(tmp_path)
    run_for(shop, DAY - timedelta(days=1), dag_run_id="before").commit()
    waits = [Wait(("up",), LogicalDateDone(DAY + timedelta(days=day))) for day in range(20)]
    memory = Memory()
    assert [one.kind for one in asked(table, shop, waits, memory)].count("query") == 1

    assert [one.kind for one in asked(table, shop, waits, memory)] == ["get"]

    run_for(shop, DAY, dag_run_id="now").commit()
    assert sum(answer.is_met for answer in evaluate(shop.store, waits, memory)) == 1


def test_undone_run_of_a_logical_date_releases_nobody(shop: Shop) -> None:
    run_for(shop, DAY).commit()
    reset(shop.store, "up", **WHY)

    assert "was undone" in one(shop, Wait(("up",), LogicalDateDone(DAY))).verdict.standing


# ---- a watermark

AT = 1_700_000_000  # 2023-11-14T22:13:20Z
LATER = AT + 3600


def mark(text: str, ctx: str | None = None, *jobs: str) -> Wait:
    return Wait(jobs or ("up",), WatermarkReached.of(text, ctx))


def test_watermark_is_waited_for_until_a_published_run_has_it(shop: Shop) -> None:
    wait = mark("2023-11-14T23:13:20Z")
    assert not ask(shop, wait).is_met

    publish(shop, seconds=AT)
    assert "watermark 2023-11-14T22:13:20" in one(shop, wait).verdict.standing

    publish(shop, seconds=LATER)
    assert found_number(shop, wait) == "2"
    assert found_number(shop, mark("2023-11-14T23:13:21Z")) is None
    assert found_number(shop, mark("2023-11-15T00:13:20+01:00", "raw")) == "2"


def test_watermark_of_a_committed_run_counts_when_it_is_published(shop: Shop) -> None:
    publish(shop, seconds=AT)
    commit_only(shop, seconds=LATER)
    wait, memory = mark("2023-11-14T23:13:20Z"), Memory()
    answer = ask(shop, wait, memory)
    assert not answer.is_met
    assert "run 2 is committed and not published" in str(answer)

    shop.run("up")  # publishes it first

    assert ask(shop, wait, memory).is_met


def test_undone_watermark_does_not_count(shop: Shop) -> None:
    publish(shop, seconds=AT)
    publish(shop, seconds=LATER)
    rewind(shop.store, "up", 1, **WHY)

    assert not ask(shop, mark("2023-11-14T23:13:20Z")).is_met


def test_watermark_that_a_person_set_counts_once_a_run_has_it(shop: Shop) -> None:
    publish(shop, seconds=AT)
    shop.put("skipped.txt", "skipped", seconds=LATER)
    set_position(shop.store, "up", "raw", "now", **WHY)
    wait = mark("2023-11-14T23:13:20Z")
    assert not ask(shop, wait).is_met

    shop.run("up")

    assert ask(shop, wait).is_met


def test_of_several_jobs_the_lowest_watermark_counts(shop: Shop) -> None:
    publish(shop, "one", seconds=AT)
    publish(shop, "two", seconds=LATER)
    assert not ask(shop, mark("2023-11-14T23:13:20Z", None, "one", "two")).is_met

    shop.run("one")

    assert [found["job"] for found in ask(shop, mark("2023-11-14T23:13:20Z", None, "one", "two")).found] == [
        "one",
        "two",
    ]


def test_watermark_of_another_kind_is_an_error_and_not_a_wait(shop: Shop) -> None:
    publish(shop)

    for text in ("42", "2023-11-14", "2023-11-14T22:13:20"):
        error = ask(shop, mark(text)).error
        assert isinstance(error, OptionError)
        assert "can't be compared" in str(error)


@pytest.mark.parametrize("text", ["yesterday", "9" * 5000])
def test_text_is_no_watermark_to_wait_for_while_no_order_is_known(shop: Shop, text: str) -> None:
    error = ask(shop, mark(text)).error
    assert isinstance(error, OptionError)
    assert "expected a number or an ISO 8601 time" in str(error)


def test_context_that_was_never_read_is_waited_for_and_those_there_are_named(shop: Shop) -> None:
    publish(shop)

    assert "of 'row' is published yet, contexts are raw" in str(ask(shop, mark("2023-11-14T22:13:20Z", "row")))


# ---- names


def test_job_is_waited_for_by_the_name_that_it_gets_meanwhile(shop: Shop) -> None:
    wait, memory = news("lake.clean"), Memory(names_kept_s=0)
    publish(shop)
    assert not ask(shop, wait, memory).is_met

    rename(shop.store, "up", "lake.clean", **WHY)

    assert found_number(shop, wait, memory) == "1"


def test_job_that_had_begun_under_a_name_is_followed_when_the_name_adopts_another(shop: Shop) -> None:
    publish(shop)
    shop.begin("new").abort("a test")
    wait, memory = news("new"), Memory()
    assert not ask(shop, wait, memory).is_met

    adopt(shop.store, "new", "up", **WHY)

    assert found_number(shop, wait, memory) == "1"


def test_job_that_is_renamed_while_it_is_waited_for_is_found_by_both_names(shop: Shop) -> None:
    publish(shop, "up")
    shop.run("down", upstream="up")
    memory = Memory(names_kept_s=0)
    assert found_number(shop, news("up"), memory) is None

    rename(shop.store, "up", "höher", **WHY)
    publish(shop, "up")  # which stays its key

    assert found_number(shop, news("up"), memory) == "2"
    assert found_number(shop, news("höher"), memory) == "2"


def test_job_that_is_deleted_while_it_is_waited_for_counts_as_gone_back(shop: Shop) -> None:
    publish(shop, "up")
    shop.run("down", upstream="up")
    memory = Memory()
    assert found_number(shop, Wait(("up",), RunReached(2)), memory) is None

    delete(shop.store, "up", typed_name="up", **WHY)

    assert "went back to run 0" in one(shop, news("up"), memory).verdict.standing
    assert found_number(shop, Wait(("up",), RunReached(2)), memory) is None
    publish(shop, "up")
    assert found_number(shop, Wait(("up",), RunReached(2)), memory) == "2"


def test_consumer_is_known_by_each_of_its_names(shop: Shop) -> None:
    publish(shop)
    shop.run("down", upstream="up")
    rename(shop.store, "down", "reports.delays", **WHY)

    assert not ask(shop, news(consumer="reports.delays")).is_met
    publish(shop)
    assert ask(shop, news(consumer="reports.delays")).is_met


# ---- what it costs


def recorded_shop(folder: Path) -> tuple[Shop, RecordingTable]:
    table = RecordingTable(SqliteTable(":memory:"))
    store = BookmarkStore(table, "test")
    store.init()
    shop = Shop(folder, store)
    shop.raw.mkdir()
    return shop, table


def asked(table: RecordingTable, shop: Shop, waits: Sequence[Wait], memory: Memory) -> list[Any]:
    """Return the requests of one look."""
    table.take()
    evaluate(shop.store, waits, memory)
    return table.take()


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, RecordingTable]:
    """200 jobs that have published a run with data, each consumed by a job of its own."""
    shop, table = recorded_shop(tmp_path_factory.mktemp("market"))
    shop.put("a.txt", "a")
    for number in range(200):
        identity = RunIdentity(f"flights/first/{number}", 1, f"dag_{number}", "work", dag_run_id="first")
        run = ActiveRun.begin(shop.store, f"up_{number}", identity, shop.environment)
        shop.copy(run)
        run.commit()
        shop.run(f"down_{number}", upstream=f"up_{number}")
    return shop, table


MARKET = pytest.mark.xdist_group("market")  # which takes half a minute to make, in each process that has such a test

WAITS_OF_200: dict[str, Callable[[int], Wait]] = {
    "consumers": lambda number: news(f"up_{number}", f"down_{number}"),
    "DAG runs": lambda number: Wait((f"up_{number}",), DagRunDone("second")),
    "run numbers": lambda number: Wait((f"up_{number}",), RunReached(99)),
    "watermarks": lambda number: mark("2099-01-01T00:00:00Z", None, f"up_{number}"),
    "consumers of jobs that are not there": lambda number: news(f"absent_{number}", f"down_{number}"),
}


@MARKET
@pytest.mark.parametrize("kind", WAITS_OF_200)
@pytest.mark.seldom  # half a minute
def test_200_waits_on_200_jobs_cost_at_most_four_requests_a_look(
    market: tuple[Shop, RecordingTable], kind: str
) -> None:
    shop, table = market
    waits = [WAITS_OF_200[kind](number) for number in range(200)]
    memory = Memory()
    assert not any(answer.is_met for answer in evaluate(shop.store, waits, memory))

    requests = asked(table, shop, waits, memory)

    assert [request.kind for request in requests] == ["get"] * len(requests)
    assert 2 <= len(requests) <= 4


@pytest.mark.seldom
@MARKET
def test_only_the_job_that_moved_is_asked_for_its_runs(market: tuple[Shop, RecordingTable]) -> None:
    shop, table = market
    waits = [news(f"up_{number}", f"down_{number}") for number in range(200)]
    memory = Memory()
    evaluate(shop.store, waits, memory)
    shop.put("b.txt", "b")
    shop.run("up_7")

    requests = asked(table, shop, waits, memory)

    assert [request.range[0] for request in requests if request.kind == "query"] == ["test#JOB#up_7"]
    assert len(requests) == 5
    assert [answer.is_met for answer in evaluate(shop.store, waits, memory)].index(True) == 7
    shop.run("down_7", upstream="up_7")


@MARKET
def test_waits_for_one_thing_cost_what_one_of_them_costs(market: tuple[Shop, RecordingTable]) -> None:
    shop, table = market
    alone = asked(table, shop, [news("up_1", "another")], Memory())

    together = asked(table, shop, [news("up_1", "another")] * 50, Memory())

    assert len(together) == len(alone)


def test_lease_that_is_renewed_makes_nobody_look_closer(tmp_path: Path) -> None:
    shop, table = recorded_shop(tmp_path)
    publish(shop)
    shop.run("down", upstream="up")
    reset(shop.store, "up", **WHY)
    shop.run("down", upstream="up", on_rewind="ignore")
    identity = shop.identity()
    grant = shop.store.take("up", identity, shop.store.snapshot("up", identity.run_id), timedelta(minutes=1))
    assert grant is not None
    memory = Memory()
    evaluate(shop.store, [news()], memory)

    shop.store.renew(grant, timedelta(hours=1))

    assert [request.kind for request in asked(table, shop, [news()], memory)] == ["get"]


# ---- what it is sure of


def test_wait_that_is_wrong_fails_alone(shop: Shop) -> None:
    publish(shop)

    wrong, right = evaluate(shop.store, [mark("42"), news()])

    assert isinstance(wrong.error, BookmarkError)
    assert (wrong.is_met, right.is_met) == (False, True)


def test_damaged_job_fails_only_who_waits_for_it(shop: Shop) -> None:
    publish(shop, "up")
    publish(shop, "damaged")
    shop.store.table.transact([Update(shop.store.keys("damaged").head, set={"published": "many"})])

    right, wrong = evaluate(shop.store, [news("up"), news("damaged")])

    assert right.is_met
    assert isinstance(wrong.error, StateCorruptError)


@MARKET
def test_one_wait_for_more_jobs_than_a_request_takes_needs_all_of_them(market: tuple[Shop, RecordingTable]) -> None:
    shop, _ = market
    jobs = tuple(f"up_{number}" for number in range(200))
    assert len(jobs) > MAX_OPERATIONS

    assert [one["job"] for one in ask(shop, Wait(jobs, NewsFor("another"))).found] == list(jobs)
    missing = ask(shop, Wait((*jobs, "gone"), NewsFor("another")))
    assert not missing.is_met
    assert "Where it stands: 'gone': no bookmark of that name yet; " in str(missing)
    assert "and 191 more; 200 of 201 jobs are there." in str(missing)


def test_table_of_another_layout_answers_nobody(shop: Shop) -> None:
    shop.store.table.transact([Delete(Key("SCHEMA", "SCHEMA"))])

    with pytest.raises(TableLayoutError):
        ask(shop, news())


class _TornTable(RecordingTable):
    """A table in which something happens between the items of one batch: it gives no snapshot."""

    between: Callable[[], object] | None = None

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        if self.between is None or len(keys) < 2:
            return super().get(keys)
        happen, self.between = self.between, None
        found = super().get(keys[:1])
        happen()
        return found | super().get(keys[1:])


def test_edge_that_is_newer_than_the_head_beside_it_is_not_taken_for_a_rewind(tmp_path: Path) -> None:
    table = _TornTable(SqliteTable(":memory:"))
    store = BookmarkStore(table, "test")
    store.init()
    shop = Shop(tmp_path, store)
    shop.raw.mkdir()
    publish(shop)
    shop.run("down", upstream="up")

    def go_back_and_read_again() -> None:
        reset(store, "up", **WHY)
        shop.run("up")
        shop.run("down", upstream="up", on_rewind="rewind")

    memory = Memory()
    ask(shop, news(), memory)
    table.between = go_back_and_read_again

    assert not ask(shop, news(), memory).is_met


class _Story:
    """Random things that happen to an upstream and its consumer."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop, self.random = shop, random.Random(seed)

    def step(self) -> str:
        steps = [self.publish, self.publish, self.empty, self.consume, self.consume, self.back, self.undo, self.replay]
        steps += [self.commit_only, self.rewind_consumer]
        step = self.random.choice(steps)
        try:
            step()
        except BookmarkError as error:
            return f"{step.__name__}: {type(error).__name__}"
        return step.__name__

    def publish(self) -> None:
        publish(self.shop, seconds=AT + self.random.randint(0, 10) * 3600)

    def empty(self) -> None:
        self.shop.run("up")

    def consume(self) -> None:
        self.shop.run("down", upstream="up", on_rewind=self.random.choice(["rewind", "ignore"]))

    def back(self) -> None:
        published = self.shop.store.head("up").published
        if published < 2 or self.random.random() < 0.3:
            reset(self.shop.store, "up", force=True, **WHY)
        else:
            rewind(self.shop.store, "up", self.random.randint(1, published), force=True, **WHY)

    def undo(self) -> None:
        undo(self.shop.store, "up", force=True, **WHY)

    def rewind_consumer(self) -> None:
        reset(self.shop.store, "down", force=True, **WHY)

    def replay(self) -> None:
        number = self.random.randint(1, max(1, self.shop.store.head("up").published))
        run = ReplayRun.begin_replay(self.shop.store, "up", self.shop.identity(), self.shop.environment, number)
        self.shop.copy(run)
        run.commit()

    def commit_only(self) -> None:
        commit_only(self.shop, seconds=AT + self.random.randint(0, 10) * 3600)


@pytest.mark.seldom
@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_changes_no_answer(shop: Shop, seed: int) -> None:
    waits = [news(), news(consumer="late"), Wait(("up",), DagRunDone("x")), Wait(("up",), LogicalDateDone(DAY))]
    waits += [Wait(("up",), RunReached(number)) for number in (1, 4, 9)]
    waits += [mark(to_text(datetime.fromtimestamp(AT + hours * 3600, UTC))) for hours in (0, 4, 9)]
    waits += [Wait(("up",), NewsSince(number, epoch)) for number, epoch in ((0, 1), (3, 1))]
    story, memory = _Story(shop, seed), Memory()

    for _ in range(25):
        happened = story.step()
        for known, fresh in zip(evaluate(shop.store, waits, memory), evaluate(shop.store, waits), strict=True):
            assert known.error is None, happened
            assert (str(known), known.found) == (str(fresh), fresh.found), happened


# ---- since a place in history (the watcher)


def since(shop: Shop, place: NewsSince) -> WaitStatus:
    return one(shop, Wait(("up",), place))


def test_first_look_of_a_watcher_says_where_the_job_stands(shop: Shop) -> None:
    assert since(shop, NewsSince()).now == NewsSince(0)

    publish(shop)
    standing = since(shop, NewsSince())

    assert (standing.verdict.is_met, standing.now) == (False, NewsSince(1))


def test_many_runs_are_one_piece_of_news(shop: Shop) -> None:
    publish(shop)
    place = since(shop, NewsSince()).now
    shop.run("up")
    assert not since(shop, place).verdict.is_met

    for _ in range(3):
        publish(shop)
    shop.run("up")
    standing = since(shop, place)

    assert standing.verdict.is_met
    assert standing.summary is not None
    assert (standing.summary["run_number"], standing.verdict.runs) == ("5", 3)
    assert not since(shop, standing.now).verdict.is_met


def test_reset_and_rewind_are_news(shop: Shop) -> None:
    publish(shop)
    publish(shop)
    place = since(shop, NewsSince()).now

    rewind(shop.store, "up", 1, **WHY)
    back = since(shop, place)
    assert (back.verdict.is_met, back.verdict.rewound_to, back.verdict.runs) == (True, 1, 0)
    assert back.summary is not None
    assert back.summary["run_number"] == "1"
    assert not since(shop, back.now).verdict.is_met

    reset(shop.store, "up", **WHY)
    again = since(shop, back.now)
    assert (again.verdict.rewound_to, again.verdict.run) == (0, None)


def test_replay_is_news_when_it_is_published_also_after_other_news(shop: Shop) -> None:
    publish(shop)
    place = since(shop, NewsSince()).now
    publish(shop)

    def stop(at: Failpoint) -> None:
        if at is Failpoint.COMMITTED:
            raise Stopped

    environment = replace(shop.environment, at=stop, lease_time=timedelta(0))
    run = ReplayRun.begin_replay(shop.store, "up", shop.identity(), environment, 1)
    shop.copy(run)
    with pytest.raises(Stopped):
        run.commit()
    newer = since(shop, place)
    assert newer.verdict.runs == 1

    assert not since(shop, newer.now).verdict.is_met
    shop.run("up")  # publishes the replay first
    assert "replayed run 1" in since(shop, newer.now).verdict.standing
