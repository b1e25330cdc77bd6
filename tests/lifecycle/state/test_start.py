"""Promises of where a job without a bookmark begins, and of a renamed job (RUN-25)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.rules.start import BEGINNING, Start
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.reason import BEFORE_START
from airflow_bookmarks.lifecycle.changes.change import reset, set_position
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.files.commit import advance_files
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from tests.lifecycle.shop import FILES, Shop

NOW = Start.of("now")
NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())


def run(shop: Shop, start: Start, job: str = "copy", **kwargs: Any) -> tuple[list[str], Summary]:
    """Make one whole run of a job with a start; return the lines read and the summary."""
    begun = shop.begin(job, start=start)
    lines = shop.copy(begun, **kwargs)
    return sorted(lines), begun.commit()


# ---- what a start may be


def test_start_is_a_word_or_a_time_with_a_zone_in_any_form() -> None:
    assert Start.of("beginning") == BEGINNING
    east = NOON.astimezone(timezone(timedelta(hours=1)))
    assert Start.of("2013-01-31T12:00:00Z") == Start.of("2013-01-31T13:00:00+01:00") == Start.of(east)
    assert [Start.of(Start.of(value).text).text for value in ("now", "beginning", NOON)] == [
        "now",
        "beginning",
        "2013-01-31T12:00:00+00:00",
    ]


@pytest.mark.parametrize("value", ["", "NOW", "yesterday", "2013-01-31", "2013-01-31T12:00", datetime(2013, 1, 31), 5])  # noqa: DTZ001
def test_any_other_start_is_refused(value: str | datetime) -> None:
    with pytest.raises(OptionError, match=r"expected 'beginning', 'now', or a time with a zone"):
        Start.of(value)


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_time_that_is_none_in_utc_is_refused_as_start_and_as_value_of_a_set(shop: Shop, value: str) -> None:
    shop.put("a.txt", "a")
    shop.run()
    with pytest.raises(OptionError, match=r"expected 'beginning', 'now', or a time with a zone"):
        Start.of(value)
    with pytest.raises(OptionError, match=r"neither 'now' nor a time"):
        set_position(shop.store, "copy", "raw", value, reason="test", who="test")


# ---- files


def test_job_that_starts_now_reads_what_comes_after_its_first_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    lines, summary = run(shop, NOW)
    assert (lines, summary.is_empty) == ([], True)
    assert summary.contexts["raw"]["skipped"] == {"before_start": 1}
    shop.put("b.txt", "b", seconds=1)
    shop.put("a.txt", "aa", seconds=SECONDS)
    assert run(shop, NOW)[0] == ["aa", "b"]


def test_run_that_starts_now_at_an_empty_folder_loses_nothing_that_comes(shop: Shop) -> None:
    run(shop, NOW)
    shop.put("a.txt", "a")
    assert run(shop, NOW)[0] == ["a"]


def test_job_that_starts_at_a_time_reads_what_is_not_older(shop: Shop) -> None:
    shop.put("old.txt", "old", seconds=SECONDS - 1)
    shop.put("same.txt", "same", seconds=SECONDS)
    shop.put("new.txt", "new", seconds=SECONDS + 1)
    lines, summary = run(shop, Start.of(NOON))
    assert lines == ["new", "same"]
    assert summary.contexts["raw"]["skipped"] == {"before_start": 1}
    shop.put("late.txt", "a file that is older and comes later is new", seconds=SECONDS - 9)
    lines, summary = run(shop, Start.of(NOON))
    assert lines == ["a file that is older and comes later is new"]
    assert (summary.contexts["raw"]["known"], summary.contexts["raw"]["skipped"]) == (3, {})


def test_start_holds_for_each_context_of_the_first_run_and_for_none_that_comes_later(shop: Shop) -> None:
    shop.put("a.txt", "a")
    first = shop.begin(start=NOW)
    plans = [first.plan(ctx, FileSource(FILES, [str(shop.raw)])) for ctx in ("one", "two")]
    assert [len(plan) for plan in plans] == [0, 0]
    first.commit()
    begun = shop.begin(start=NOW)
    assert len(begun.plan("other", FileSource(FILES, [str(shop.raw)]))) == 1
    begun.abort("done looking")


def test_job_that_was_reset_reads_everything_whatever_its_start(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, NOW)
    reset(shop.store, "copy", reason="a test", who="me")
    assert run(shop, NOW)[0] == ["a"]


def test_first_run_that_fails_leaves_the_start_to_the_next(shop: Shop) -> None:
    shop.put("a.txt", "a")
    begun = shop.begin(start=NOW)
    shop.copy(begun)
    begun.abort("an exception in the block")
    assert run(shop, NOW)[0] == []
    assert run(shop, NOW)[0] == []


def test_pause_before_the_first_run_shows_what_it_would_read_and_disable_reads_all(shop: Shop) -> None:
    shop.put("a.txt", "a")
    for option, lines in (("pause", []), ("disable", ["a"])):
        choice = Choice.of(option, None, None)
        side = DetachedRun.begin(shop.store, "copy", shop.identity(), choice, shop.environment, start=NOW)
        assert shop.copy(side) == lines
        side.commit()
    assert run(shop, NOW)[0] == []


def test_stored_plan_knows_what_counts_as_read_for_whoever_takes_the_run_over(shop: Shop) -> None:
    shop.put("a.txt", "a")
    begun = shop.begin(start=NOW)
    shop.copy(begun)
    (stored,) = [r.plans["raw"] for r in shop.store.runs("copy")]
    plan = FilePlan.decode(shop.store.blobs.get(stored.body))
    assert [file.path for file in plan.unread[BEFORE_START]] == [str(shop.raw / "a.txt")]
    position = advance_files(plan, PlanInput())
    assert position is not None
    begun.commit()
    assert shop.store.head("copy").contexts["raw"].watermark == position.watermark


def test_plan_without_unread_files_is_stored_as_before() -> None:
    plan = FilePlan(Listing.of([]), ("/d",), 0, 0)
    assert dict(FilePlan.decode(plan.encode()).unread) == {}


# ---- upstream


def test_consumer_that_starts_now_begins_after_what_its_upstream_has_published(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    lines, summary = run(shop, NOW, "down", upstream="up")
    assert (lines, summary.is_empty) == ([], True)
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert edge.run_number == 1
    shop.put("b.txt", "b")
    shop.run("up")
    assert run(shop, NOW, "down", upstream="up")[0] == ["b"]


def test_consumer_that_starts_now_reads_a_run_that_was_committed_and_not_yet_published(shop: Shop) -> None:
    def die(point: Failpoint) -> None:
        if point is Failpoint.COMMITTED:
            raise KeyboardInterrupt

    shop.put("a.txt", "a")
    shop.run("up")
    shop.put("b.txt", "b")
    shop.environment = RunEnvironment(at=die, lease_time=timedelta(seconds=0))
    with pytest.raises(KeyboardInterrupt):
        shop.run("up")
    shop.environment = RunEnvironment()
    assert run(shop, NOW, "down", upstream="up")[0] == []
    shop.run("up")
    assert run(shop, NOW, "down", upstream="up")[0] == ["b"]


def test_consumer_that_starts_at_a_time_begins_with_the_first_run_committed_since(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.put("b.txt", "b")
    shop.run("up")
    second = shop.store.committed_run("up", 2)
    assert second is not None
    assert second.committed_at is not None
    assert run(shop, Start.of(second.committed_at), "down", upstream="up")[0] == ["b"]


def test_consumer_that_starts_now_before_its_upstream_published_reads_all_of_it(shop: Shop) -> None:
    shop.put("a.txt", "a")
    begun = shop.begin("up")
    begun.abort("nothing yet")
    assert run(shop, NOW, "down", upstream="up")[0] == []
    shop.run("up")
    assert run(shop, NOW, "down", upstream="up")[0] == ["a"]


# ---- a renamed job


def test_first_run_whose_source_another_job_reads_warns_once_and_names_it(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    shop.run("old_dag.copy")
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
    shop.run("new_dag.copy")
    (warning,) = [r.getMessage() for r in caplog.records if "adopt" in r.getMessage()]
    assert "is read already by 'old_dag.copy'." in warning
    assert "airflow-bookmarks adopt" in warning
    assert "on trial, nothing needs to be done" in warning
    shop.run("new_dag.copy")
    assert len([r for r in caplog.records if "adopt" in r.getMessage()]) == 1


def test_first_run_of_another_source_warns_of_nothing(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    assert "adopt" not in caplog.text
