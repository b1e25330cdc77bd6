"""Promises of `job.state` (RUN-19) and of expectations (RUN-13)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airflow_bookmarks.core.errors import ExpectationError, MisuseError, NameInvalidError, OptionError
from airflow_bookmarks.core.job_state import MAX_STATE_BYTES
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.job_state import JobStates
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop


def passed(shop: Shop, value: Any) -> ActiveRun:
    """Make one run without a source that sets the state `cursor`."""
    run = shop.begin()
    run.state("cursor").set(value)
    run.commit()
    return run


def seen(shop: Shop) -> Any:
    """Return what a paused run reads of `cursor`."""
    run = shop.side()
    value = run.state("cursor").get("absent")
    run.abort("done looking")
    return value


# ---- state: read, set, stored


def test_state_is_absent_on_the_first_run_and_then_what_the_last_one_set(shop: Shop) -> None:
    run = shop.begin()
    assert run.state("cursor").get() is None
    assert run.state("cursor").get("2013") == "2013"
    run.state("cursor").set({"page": 1, "ids": [1, 2.5, None, True, "é"]})
    run.commit()
    run = shop.begin()
    assert run.state("cursor").get() == {"page": 1, "ids": [1, 2.5, None, True, "é"]}
    assert run.state("other").get() is None
    run.abort("done looking")


def test_state_that_was_set_is_seen_within_the_run_and_a_change_in_place_is_not_kept(shop: Shop) -> None:
    run = shop.begin()
    given = [1]
    run.state("cursor").set(given)
    given.append(2)
    run.state("cursor").get().append(3)
    assert run.state("cursor").get() == [1]
    run.commit()
    assert seen(shop) == [1]


def test_run_that_sets_one_name_keeps_the_others_and_none_removes_one(shop: Shop) -> None:
    for name in ("a", "b"):
        run = shop.begin()
        run.state(name).set(name)
        run.commit()
    run = shop.begin()
    assert (run.state("a").get(), run.state("b").get()) == ("a", "b")
    run.state("a").set(None)
    run.commit()
    run = shop.begin()
    assert (run.state("a").get(), run.state("b").get()) == (None, "b")
    run.abort("done looking")


def test_state_alone_makes_a_committed_run_and_no_context_of_its_summary(shop: Shop) -> None:
    run = shop.begin()
    run.state("cursor").set(1)
    summary = run.commit()
    assert (summary.run_number, summary.is_published, dict(summary.contexts)) == (1, True, {})


def test_run_without_input_that_sets_a_state_is_not_empty_and_stores_it(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()
    shop.copy(run)
    run.state("cursor").set(2)
    summary = run.commit()
    assert (summary.is_empty, list(summary.contexts)) == (False, ["raw"])
    assert shop.store.head("copy").data_run_number == 2
    assert seen(shop) == 2


def test_run_that_sets_what_was_there_or_only_reads_moves_no_state(shop: Shop) -> None:
    passed(shop, {"b": 1, "a": 2})
    passed(shop, {"a": 2, "b": 1})
    run = shop.begin()
    run.state("cursor").get()
    run.commit()
    (state,) = shop.store.head("copy").contexts.values()
    assert state.run.number == 1


def test_exception_leaves_the_state_as_it_was(shop: Shop) -> None:
    passed(shop, 1)
    run = shop.begin()
    run.state("cursor").set(2)
    run.abort("an exception in the block")
    assert seen(shop) == 1


def test_driver_that_dies_before_its_commit_leaves_the_state_as_it_was(shop: Shop) -> None:
    passed(shop, 1)

    def die(point: Failpoint) -> None:
        if point is Failpoint.BEFORE_COMMIT:
            raise KeyboardInterrupt

    shop.environment = RunEnvironment(at=die)
    with pytest.raises(KeyboardInterrupt):
        passed(shop, 2)
    assert seen(shop) == 1


def test_pause_reads_the_state_and_stores_nothing_and_disable_finds_none(shop: Shop) -> None:
    passed(shop, 1)
    for option, found in (("pause", 1), ("disable", "absent")):
        side = shop.side(option=option)
        assert side.state("cursor").get("absent") == found
        side.state("cursor").set(7)
        assert side.state("cursor").get() == 7
        side.commit()
    assert seen(shop) == 1


def test_paused_window_reads_the_state_as_it_was_before_the_window(shop: Shop) -> None:
    for value in (1, 2, 3):
        passed(shop, value)
    for low, found in (("0", "absent"), ("1", 1), ("2", 2)):
        side = shop.side("copy", "pause", low, "3")
        assert side.state("cursor").get("absent") == found
        side.abort("done looking")


# ---- state: history


def test_rewind_undo_and_reset_take_the_state_along(shop: Shop) -> None:
    for value in (1, 2, 3):
        passed(shop, value)
    rewind(shop.store, "copy", 2, reason="a test", who="me")
    assert seen(shop) == 2
    undo(shop.store, "copy", reason="a test", who="me")
    assert seen(shop) == 3
    reset(shop.store, "copy", reason="a test", who="me")
    assert seen(shop) == "absent"


def test_state_as_an_earlier_run_saw_it_is_there_for_its_replay(shop: Shop) -> None:
    for value in (1, 2, 3):
        passed(shop, value)
    second = shop.store.committed_run("copy", 2)
    first = shop.store.committed_run("copy", 1)
    assert first is not None
    assert second is not None
    assert JobStates.seen_by(shop.store, "copy", second).get("cursor", None) == 1
    assert JobStates.seen_by(shop.store, "copy", first).get("cursor", None) is None


def test_run_record_names_the_state_and_does_not_show_its_value(shop: Shop) -> None:
    passed(shop, "a secret token")
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    assert run.metrics["state"] == {"from": None, "names": ["cursor"]}


# ---- state: what is refused


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        {1, 2},
        b"bytes",
        (1, 2),
        {"a": [(1,)]},
        {1: "a key that is no text"},
        Path("/x"),
        np.int64(1),
    ],
)
def test_value_that_json_does_not_give_back_is_refused_and_the_old_one_stays(shop: Shop, value: Any) -> None:
    run = shop.begin()
    run.state("cursor").set(1)
    with pytest.raises(OptionError, match=r"state 'cursor'.*no JSON value.*as before"):
        run.state("cursor").set(value)
    assert run.state("cursor").get() == 1
    run.commit()
    assert seen(shop) == 1


def test_values_of_sixteen_kilobytes_together_are_stored_and_one_byte_more_is_refused(shop: Shop) -> None:
    room = MAX_STATE_BYTES - len('{"cursor":"","b":"x"}')
    run = shop.begin()
    run.state("b").set("x")
    run.state("cursor").set("y" * room)
    with pytest.raises(OptionError, match="16,385 bytes of JSON, and 16,384 is the most"):
        run.state("cursor").set("y" * (room + 1))
    run.commit()
    assert seen(shop) == "y" * room


def test_state_is_not_set_after_the_run_is_over_and_its_name_is_a_name(shop: Shop) -> None:
    run = passed(shop, 1)
    with pytest.raises(MisuseError, match="this run is over"):
        run.state("cursor").set(2)
    with pytest.raises(NameInvalidError):
        run.state(".cursor")


def test_no_context_of_a_user_can_have_the_place_of_the_state(shop: Shop) -> None:
    run = shop.begin()
    with pytest.raises(NameInvalidError):
        run.plan(".state", FileSource(FILES, [str(shop.raw)]))
    run.abort("done looking")


# ---- expectations


def test_failed_expectation_commits_nothing_and_is_kept_on_the_run(shop: Shop, store: BookmarkStore) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.expect(True, "this holds")
    with pytest.raises(ExpectationError, match=r"more than 10 rows.*Nothing was committed") as failed:
        run.expect(lambda: False, "more than 10 rows")
    run.abort(f"ExpectationError: {failed.value}")
    (row,) = history(store, "copy", with_open=True)
    assert row["state"] == "FAILED"
    assert "more than 10 rows" in row["error"]
    assert (shop.target_lines(), store.head("copy").run_number) == ({}, 0)
    assert shop.run()[0] == ["a"]


def test_failed_expectation_is_kept_also_where_nothing_was_planned(shop: Shop, store: BookmarkStore) -> None:
    run = shop.begin()
    with pytest.raises(ExpectationError):
        run.expect(np.bool_(False), "the lake is there")
    run.abort("ValueError: something else")
    (row,) = history(store, "copy", with_open=True)
    assert row["state"] == "FAILED"
    assert "the lake is there" in row["error"]
    assert "After that: ValueError: something else" in row["error"]
    shop.run()
    (open_run, _) = history(store, "copy", with_open=True)
    assert open_run["state"] == RunState.ABANDONED.value


def test_run_that_failed_without_an_expectation_and_planned_nothing_leaves_no_item(shop: Shop) -> None:
    run = shop.begin()
    run.abort("ValueError: something else")
    assert history(shop.store, "copy", with_open=True) == []


@pytest.mark.parametrize("option", ["enable", "pause"])
def test_caught_expectation_still_blocks_the_commit(shop: Shop, option: str) -> None:
    shop.put("a.txt", "a")
    run = shop.begin() if option == "enable" else shop.side(option=option)
    shop.copy(run)
    with pytest.raises(ExpectationError):
        run.expect(False, "some rows")
    with pytest.raises(ExpectationError, match="some rows"):
        run.commit()
    run.abort("the end")
    assert (shop.target_lines(), shop.staged_files() if option == "pause" else []) == ({}, [])


@pytest.mark.parametrize("condition", [1, 0, None, "yes", [], lambda: None])
def test_expectation_that_is_neither_true_nor_false_is_refused(
    shop: Shop, condition: bool | Callable[[], bool]
) -> None:
    run = shop.begin()
    with pytest.raises(OptionError, match=r"expect\(..., 'some rows'\).*Give True or False"):
        run.expect(condition, "some rows")
    run.abort("the end")


def test_expectation_after_the_commit_is_refused_because_it_blocks_nothing(shop: Shop) -> None:
    run = passed(shop, 1)
    with pytest.raises(MisuseError, match="this run is over"):
        run.expect(True, "too late")


def test_watermarks_that_people_see_leave_job_state_out(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    run.state("cursor").set("x")
    shop.copy(run)
    run.commit()

    (row,) = history(shop.store, "copy")
    looked = preview(shop.store, "copy", Change("reset"))
    assert [
        set(marks) for marks in (row["watermark"], bookmark(shop.store, "copy")["watermark"], looked.watermarks)
    ] == [{"raw"}] * 3
