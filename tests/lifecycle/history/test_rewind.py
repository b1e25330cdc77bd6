"""Promises RESET-1, RESET-6, RESET-7 and STORE-3: reset and rewind are one transaction that touches no data."""

from __future__ import annotations

import itertools

import pytest

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    FencedError,
    JobBusyError,
    JobUnknownError,
    OptionError,
    RunUnknownError,
)
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop


def three_runs(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run(run_id=f"run-{name}")


def test_after_a_reset_everything_is_read_again_and_history_stays(shop: Shop) -> None:
    three_runs(shop)
    before = shop.target_lines()
    changed = reset(shop.store, "copy", reason="schema changed", who="ada")
    assert shop.target_lines() == before
    assert changed.as_dict()["undone_run_count"] == 3
    assert [row["state"] for row in history(shop.store, "copy")] == ["UNDONE"] * 3
    lines, summary = shop.run()
    assert sorted(lines) == ["a", "b", "c"]
    assert (summary.run_number, summary.epoch) == (4, 2)
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1}


def test_after_a_rewind_the_state_is_as_after_that_run(shop: Shop) -> None:
    three_runs(shop)
    watermarks = [row["watermark"] for row in history(shop.store, "copy")]
    rewind(shop.store, "copy", "run-a", reason="bad data", who="ada")
    head = shop.store.head("copy")
    assert (head.epoch, head.run_number, head.data_run_number) == (2, 3, 1)
    assert {ctx: s.watermark for ctx, s in head.contexts.items()} == watermarks[0]
    assert sorted(shop.run()[0]) == ["b", "c"]
    assert [row["state"] for row in history(shop.store, "copy")] == ["PUBLISHED", "UNDONE", "UNDONE", "PUBLISHED"]


def test_rewind_after_a_rewind_follows_the_living_line(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, reason="x", who="ada")
    shop.put("d.txt", "d")
    shop.run()
    with pytest.raises(RunUnknownError, match="undone"):
        rewind(shop.store, "copy", 3, reason="x", who="ada")
    rewind(shop.store, "copy", 4, reason="x", who="ada")
    assert shop.run()[0] == []


def test_change_is_refused_while_a_run_holds_the_lease(shop: Shop) -> None:
    three_runs(shop)
    run = shop.begin(run_id="working")
    with pytest.raises(JobBusyError, match="working"):
        reset(shop.store, "copy", reason="x", who="ada")
    assert shop.store.head("copy").epoch == 1
    reset(shop.store, "copy", reason="x", who="ada", force=True)
    with pytest.raises(FencedError):
        run.commit()


def test_change_keeps_who_when_why_before_and_after(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, reason="bad data", who="ada")
    (event,) = shop.store.events("copy")
    assert (event["kind"], event["who"], event["why"], event["to_run"]) == ("rewind", "ada", "bad data", 1)
    assert (event["version_before"], event["epoch_before"], event["epoch_after"]) == (3, 1, 2)
    assert event["watermarks_before"]
    assert str(event["at"]).endswith("Z")


def test_change_needs_a_reason(shop: Shop) -> None:
    three_runs(shop)
    with pytest.raises(OptionError, match="reason"):
        reset(shop.store, "copy", reason=" ", who="ada")


def test_change_of_an_unknown_job_or_to_an_unknown_run_is_an_error(shop: Shop) -> None:
    with pytest.raises(JobUnknownError):
        reset(shop.store, "copy", reason="x", who="ada")
    three_runs(shop)
    for run in ("9", "0", "nobody"):
        with pytest.raises(RunUnknownError):
            rewind(shop.store, "copy", run, reason="x", who="ada")
    assert shop.store.head("copy").epoch == 1


def test_change_is_refused_when_the_version_moved(shop: Shop) -> None:
    three_runs(shop)
    with pytest.raises(ChangedMeanwhileError, match="version 3 and not 2"):
        reset(shop.store, "copy", reason="x", who="ada", expected_version=2)


def test_two_namespaces_of_one_table_do_not_meet(shop: Shop) -> None:
    three_runs(shop)
    other = Shop(shop.root / "other", BookmarkStore(shop.store.table, "other"))
    other.raw.mkdir(parents=True)
    other.put("z.txt", "z")
    held = shop.begin(run_id="held")
    assert other.run()[0] == ["z"]
    held.commit()
    partition = shop.store.keys("copy").partition
    before = dict(shop.store.table.query(partition))
    reset(other.store, "copy", reason="x", who="ada")
    assert dict(shop.store.table.query(partition)) == before
    assert [name for name, _ in shop.store.jobs()] == ["copy"]


def test_numbers_only_grow_through_resets(shop: Shop) -> None:
    seen: list[tuple[int, int, int, int]] = []
    for i in range(6):
        shop.put(f"{i}.txt", str(i))
        shop.run()
        head = shop.store.head("copy")
        seen.append((head.version, head.epoch, head.fence, head.run_number))
        if i % 2:
            reset(shop.store, "copy", reason="x", who="ada")
            head = shop.store.head("copy")
            seen.append((head.version, head.epoch, head.fence, head.run_number))
    for before, after in itertools.pairwise(seen):
        assert all(b <= a for b, a in zip(before, after, strict=True))
        assert before != after


def test_bookmark_shows_who_changed_it_when_and_why(shop: Shop) -> None:
    three_runs(shop)
    rewind(shop.store, "copy", 1, reason="bad data", who="ada")
    (change,) = bookmark(shop.store, "copy")["changes"]
    assert (change["kind"], change["who"], change["why"], change["to_run"]) == ("rewind", "ada", "bad data", 1)


def test_run_zero_and_runs_before_a_reset_are_explained(shop: Shop) -> None:
    three_runs(shop)
    with pytest.raises(RunUnknownError, match="is a reset"):
        rewind(shop.store, "copy", 0, reason="x", who="ada")
    reset(shop.store, "copy", reason="x", who="ada")
    with pytest.raises(RunUnknownError, match="undone"):
        rewind(shop.store, "copy", 3, reason="x", who="ada")
