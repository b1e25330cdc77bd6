"""What one may wait for, as rules on the state alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.order import TEXT, order_like
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.rules.condition import (
    UNKNOWN,
    LogicalDateDone,
    RunReached,
    WatermarkReached,
    dag_run_done,
    is_reached,
    logical_date_done,
    newest_published,
    news_for_consumer,
    news_since,
    rewound_below,
    run_reached,
    unreached_by_head,
    watermark_context,
    watermark_reached,
)
from airflow_bookmarks.core.run import ContextState, Execution, Run, RunKey, RunState
from airflow_bookmarks.core.timeline import Ancestry, Timeline

FIRST = Ancestry.of(1, [])


def run(number: int, state: RunState = RunState.PUBLISHED, **changes: Any) -> Run:
    made = Run(RunKey(number, number), state, 1, "r", 1, "2026-05-03T00:00:00.000000Z")
    return replace(made, **changes)


def edge(number: int, epoch: int = 1, **contexts: int) -> Edge:
    return Edge("down", number, epoch, 0, contexts)


# ---- which run is the newest


def test_newest_is_the_first_that_is_published() -> None:
    assert newest_published([run(3, RunState.COMMITTED), run(2), run(1)], FIRST) == run(2)


@pytest.mark.parametrize("state", [RunState.PLANNED, RunState.FAILED, RunState.COMMITTED, RunState.ABANDONED])
def test_run_that_is_not_published_releases_nobody(state: RunState) -> None:
    assert newest_published([run(1, state)], FIRST) is None


def test_empty_run_counts_only_where_data_is_not_asked_for() -> None:
    runs = [run(2, is_empty=True), run(1)]

    assert newest_published(runs, FIRST) == runs[0]
    assert newest_published(runs, FIRST, with_data=True) == runs[1]


def test_undone_run_is_passed_over() -> None:
    living = Ancestry.of(2, [Timeline(2, parent=1, kept=1, start=2)])

    assert newest_published([run(2), run(1)], living) == run(1)


# ---- news for a consumer


def test_unknown_job_has_no_news() -> None:
    assert news_for_consumer("down", None, None, None, None) is UNKNOWN
    assert not UNKNOWN.is_met


def test_consumer_that_has_read_nothing_has_news_as_soon_as_there_is_data() -> None:
    assert news_for_consumer("down", Head(published=1), None, run(1), None).run == run(1)
    assert not news_for_consumer("down", Head(published=1), None, None, None).is_met


@pytest.mark.parametrize(("consumed", "is_met"), [(2, True), (3, False), (4, False)])
def test_news_lie_above_what_was_consumed(consumed: int, is_met: bool) -> None:
    verdict = news_for_consumer("down", Head(published=3), edge(consumed), run(3), None)

    assert verdict.is_met is is_met
    assert (verdict.run is not None) is is_met


def test_upstream_that_went_back_is_news_also_without_a_run() -> None:
    verdict = news_for_consumer("down", Head(published=3, epoch=2), edge(3), None, 0)

    assert (verdict.is_met, verdict.run, verdict.rewound_to) == (True, None, 0)


def test_what_is_waited_for_says_what_is_due() -> None:
    verdict = news_for_consumer("down", Head(published=3, publishing=RunKey(4, 9)), edge(3), None, None)

    assert "run 4 is committed and not published" in verdict.standing


# ---- rewinds below an edge


def test_rewind_above_the_edge_is_none_of_the_consumers_business() -> None:
    lines = [Timeline(2, parent=1, kept=2, start=4)]

    assert rewound_below(edge(2), Head(epoch=2), lines) is None
    assert rewound_below(edge(3), Head(epoch=2), lines) == 2
    assert rewound_below(None, Head(epoch=2), lines) is None


def test_edge_is_compared_by_the_context_that_has_read_furthest() -> None:
    # One context is at 2, another at 4; the rewind to 3 undid what the second has read.
    lines = [Timeline(2, parent=1, kept=3, start=4)]

    assert rewound_below(edge(2, slow=2, fast=4), Head(epoch=2), lines) == 3


# ---- a run number


@pytest.mark.parametrize(("number", "is_met"), [(2, True), (3, True), (4, False)])
def test_run_number_is_reached_by_that_run_or_a_later_one(number: int, is_met: bool) -> None:
    assert run_reached(number, Head(published=3), run(3)).is_met is is_met


def test_number_whose_runs_were_all_undone_is_not_reached() -> None:
    assert not run_reached(3, Head(published=4, epoch=2), None).is_met


# ---- a DAG run


def execution(**changes: Any) -> Execution:
    return replace(Execution("up/manual/task", 1, last_run=2, is_finished=True), **changes)


def test_dag_run_is_done_when_its_last_run_is_published() -> None:
    assert dag_run_done("up/manual/task", execution(), run(2), FIRST).run == run(2)


def test_empty_run_of_a_dag_run_releases_as_well() -> None:
    assert dag_run_done("up/manual/task", execution(), run(2, is_empty=True), FIRST).is_met


@pytest.mark.parametrize(
    ("made", "last", "said"),
    [
        (None, None, "has not begun"),
        (execution(attempt=0, last_run=None, is_finished=False), None, "has not begun"),
        (execution(last_run=None, is_finished=False), None, "is not finished"),
        (execution(is_finished=False), run(2), "is not finished"),
        (execution(), run(2, RunState.COMMITTED), "is COMMITTED and not published"),
        (execution(), run(2, epoch=7), "was undone"),
    ],
)
def test_dag_run_that_is_not_done_says_where_it_stands(made: Execution | None, last: Run | None, said: str) -> None:
    verdict = dag_run_done("up/manual/task", made, last, FIRST)

    assert (verdict.is_met, said in verdict.standing) == (False, True)


# ---- news since a place in history


def test_many_runs_are_one_piece_of_news_about_the_newest() -> None:
    verdict = news_since(2, Head(published=5), run(5), 3, None, None)

    assert (verdict.is_met, verdict.run, verdict.runs) == (True, run(5), 3)
    assert not news_since(5, Head(published=5), run(5), 0, None, None).is_met


def test_whoever_keeps_a_place_hears_of_rewinds_first_and_of_replays_last() -> None:
    replayed = run(1, revision=1)

    assert news_since(3, Head(published=3), run(2), 0, 2, replayed).rewound_to == 2
    assert news_since(2, Head(published=3), run(3), 1, None, replayed).run == run(3)
    assert news_since(3, Head(published=3), None, 0, None, replayed).run == replayed
    assert not news_since(3, Head(published=3), None, 0, None, replace(replayed, state=RunState.COMMITTED)).is_met


# ---- a logical date


def test_execution_of_a_logical_date_is_the_one_that_committed_last() -> None:
    moment = datetime(2026, 5, 3, tzinfo=UTC)
    text = "2026-05-03T00:00:00.000000Z"
    first, second = (execution(logical_date=text, last_run=number) for number in (2, 5))
    begun = execution(logical_date=text, last_run=None)
    other = execution(logical_date="2026-05-04T00:00:00.000000Z", last_run=9)

    assert logical_date_done([first, begun, second, other, execution()], moment) == second
    assert logical_date_done([begun], moment) == begun
    assert logical_date_done([other, execution()], moment) is None


@pytest.mark.parametrize("text", ["2026-05-03", "2026-05-03T00:00:00", "today", ""])
def test_logical_date_needs_a_zone(text: str) -> None:
    with pytest.raises(OptionError, match="ISO 8601 time with a zone"):
        LogicalDateDone.of(text)


# ---- a watermark


def context(watermark: str | None, **changes: Any) -> ContextState:
    return replace(ContextState("files", "files:/raw", RunKey(1, 1), watermark), **changes)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("42", 42),
        ("-7", -7),
        ("20260503", 20260503),
        ("2026-05-03T00:00:00Z", datetime(2026, 5, 3, tzinfo=UTC)),
        ("2026-05-03 00:00:00+00:00", datetime(2026, 5, 3, tzinfo=UTC)),
        ("part-00042", None),
        ("4.2", Decimal("4.2")),
        ("٤٢", None),
        ("", None),
    ],
)
def test_watermark_compares_as_what_it_is(text: str, mark: object) -> None:
    order = order_like(text)
    assert order.parse(text) == (text if mark is None else mark)
    assert (order is TEXT) is (mark is None)


@pytest.mark.parametrize(
    ("have", "wanted", "is_it"),
    [
        ("9", "10", False),
        ("10", "9", True),
        ("2026-05-03T02:00:00+02:00", "2026-05-03T00:00:00Z", True),
        ("2026-05-02T23:59:59.999999Z", "2026-05-03T00:00:00Z", False),
        ("2026-05-03", "2026-05-02T12:00:00", True),
    ],
)
def test_watermark_is_reached_by_a_higher_one(have: str, wanted: str, is_it: bool) -> None:
    assert is_reached("up", "raw", have, None, wanted) is is_it


@pytest.mark.parametrize(
    ("have", "wanted"),
    [("42", "2026-05-03T00:00:00Z"), ("2026-05-03T00:00:00Z", "2026-05-03T00:00:00"), ("part-00042", "42")],
)
def test_watermarks_of_two_kinds_are_not_compared(have: str, wanted: str) -> None:
    with pytest.raises(OptionError, match="can't be compared"):
        is_reached("up", "raw", have, None, wanted)


@pytest.mark.parametrize(
    ("order", "have", "wanted", "is_it"),
    [
        ("number", "10", "9", True),
        ("time", "2026-05-03T00:00:00Z", "2026-05-03T02:00:00.5+02:00", False),
        ("path", "10", "9", False),
        ("path", "2026/05/part-9", "2026/05", True),
    ],
)
def test_stored_order_decides_how_a_watermark_compares(order: str, have: str, wanted: str, is_it: bool) -> None:
    assert is_reached("up", "raw", have, order, wanted) is is_it


@pytest.mark.parametrize(("order", "wanted"), [("time", "42"), ("time", "2026-05-03"), ("number", "2026-05-03")])
def test_watermark_of_another_order_is_an_error_before_there_is_one(order: str, wanted: str) -> None:
    head = Head(contexts={"raw": context(None, order=order)})
    for condition in (WatermarkReached(wanted), WatermarkReached(wanted, "raw")):
        with pytest.raises(OptionError, match="can't be compared with the watermarks of 'raw'"):
            unreached_by_head("up", condition, head)


def test_order_of_a_newer_version_is_named_and_not_guessed() -> None:
    with pytest.raises(OptionError, match=r"compare by 'lsn', and this version knows number, time"):
        is_reached("up", "raw", "0/9", "lsn", "0/A0")


def test_watermark_is_that_of_the_published_run_and_not_of_the_head() -> None:
    head = Head(published=1, run_number=2, contexts={"raw": context("20")})
    wanted = WatermarkReached("20")

    assert unreached_by_head("up", wanted, head) is None
    assert not watermark_reached("up", wanted, head, run(1, contexts={"raw": context("10")})).is_met
    assert watermark_reached("up", wanted, head, run(2, contexts={"raw": context("20")})).is_met


def test_head_below_the_watermark_needs_no_look_at_runs_unless_it_was_set() -> None:
    wanted = WatermarkReached("20")

    early = unreached_by_head("up", wanted, Head(contexts={"raw": context("19")}))
    assert early is not None
    assert "watermark 19 of 'raw'" in early.standing
    assert unreached_by_head("up", wanted, Head(contexts={"raw": context("19", set_in=2)})) is None


def test_of_several_contexts_one_has_to_be_named() -> None:
    contexts = {"left": context("1"), "right": context("2"), "cursor": context(None)}

    with pytest.raises(OptionError, match=r"2 contexts with a watermark \(left, right\)"):
        watermark_context("up", contexts, None)
    assert watermark_context("up", contexts, "right") == "right"
    assert watermark_context("up", contexts, "cursor") is None
    assert watermark_context("up", {"left": context("1"), "cursor": context(None)}, None) == "left"


def test_nothing_published_has_no_watermark() -> None:
    assert watermark_reached("up", WatermarkReached("1"), None, None) is UNKNOWN
    assert "no watermark of 'raw'" in watermark_reached("up", WatermarkReached("1", "raw"), Head(), None).standing


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5", "²", ""])
def test_run_number_is_a_number_from_one(number: str) -> None:
    with pytest.raises(OptionError, match="a number from 1"):
        RunReached.of(number)
