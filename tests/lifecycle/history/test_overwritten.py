"""Promise CHANGE: no change goes to a position that counts as made what runs it undoes have overwritten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.lifecycle.changes.change import Change, rename_context, reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.options import FileOptions
from tests.lifecycle.shop import Shop

WHY: dict[str, Any] = {"reason": "a test", "who": "ada"}
WHOLE = FileOptions(reread="partition")


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Return a shop that has replaced one partition in each of two runs."""
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.put("month=1/a.txt", "a")
    make(shop)
    shop.put("month=2/b.txt", "b")
    make(shop)
    return shop


def make(shop: Shop) -> list[str]:
    return sorted(shop.run(options=WHOLE)[0])


def refused(shop: Shop, change: Change, by: str) -> None:
    """Let a change be refused beforehand and when it is made, and leave all as it was."""
    before, rows = shop.store.head("copy"), shop.target_lines()
    with pytest.raises(ChangeRefusedError, match=by):
        preview(shop.store, "copy", change)
    with pytest.raises(ChangeRefusedError, match=by):
        undo(shop.store, "copy", **WHY) if change.kind == "undo" else rewind(
            shop.store, "copy", change.to_run or "", clean=change.clean, **WHY
        )
    assert shop.store.head("copy") == before
    assert shop.target_lines() == rows


def test_undo_does_not_bring_back_a_run_whose_files_a_run_made_since_has_overwritten(shop: Shop) -> None:
    consumer = replace(shop, mode=Mode.APPEND)
    rewind(shop.store, "copy", 1, **WHY)
    assert make(shop) == ["b"]
    refused(shop, Change("undo"), "undo run 3, which has overwritten 1 file")
    assert sorted(consumer.run("report", upstream="copy")[0]) == ["a", "b"]


def test_rewind_behind_a_context_that_was_reset_does_not_remove_what_it_made_anew(shop: Shop) -> None:
    reset(shop.store, "copy", contexts=["raw"], **WHY)
    assert make(shop) == ["a", "b"]
    for clean in (False, True):
        refused(shop, Change("rewind", "2", clean=clean), "rewind would undo run 3, which has overwritten 2 file")
    reset(shop.store, "copy", clean=True, **WHY)
    assert make(shop) == ["a", "b"]
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_undo_of_a_set_back_does_not_remove_what_it_made_anew(shop: Shop) -> None:
    set_position(shop.store, "copy", "raw", "2013-01-31T00:00:00Z", **WHY)
    assert make(shop) == ["a", "b"]
    refused(shop, Change("undo"), "undo run 3, which has overwritten 2 file")


def test_change_after_which_all_is_read_again_is_made(shop: Shop) -> None:
    shop.put("month=1/c.txt", "c")
    assert make(shop) == ["a", "c"]
    rewind(shop.store, "copy", 2, clean=True, **WHY)
    assert make(shop) == ["a", "c"]
    rewind(shop.store, "copy", 1, clean=True, **WHY)
    assert make(shop) == ["a", "b", "c"]
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1}


def test_undo_of_what_skipped_input_reads_it_after_overwrites_too(shop: Shop) -> None:
    shop.put("month=1/skipped.txt", "s")
    set_position(shop.store, "copy", "raw", "now", **WHY)
    shop.put("month=2/d.txt", "d")
    assert make(shop) == ["b", "d"]
    undo(shop.store, "copy", **WHY)
    assert make(shop) == ["a", "b", "d", "s"]
    assert shop.target_lines() == {"a": 1, "b": 1, "d": 1, "s": 1}


def test_undo_before_any_run_was_made_is_made(shop: Shop) -> None:
    rewind(shop.store, "copy", 1, **WHY)
    undo(shop.store, "copy", **WHY)
    assert make(shop) == []


def test_undo_of_a_renamed_context_is_made(shop: Shop) -> None:
    rename_context(shop.store, "copy", "raw", "orders", **WHY)
    rename_context(shop.store, "copy", "orders", "raw", **WHY)
    shop.put("month=1/c.txt", "c")
    assert make(shop) == ["a", "c"]
    undo(shop.store, "copy", **WHY)
    assert "orders" in shop.store.head("copy").contexts


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("is_back_before", [True, False])
def test_correction_that_was_taken_back_is_made_again_as_it_was(shop: Shop, clean: bool, is_back_before: bool) -> None:
    shop.put("month=1/b.txt", "b of 1")
    make(shop)
    shop.put("month=1/a.txt", "wrong", seconds=1_700_001_000)
    assert make(shop) == ["b of 1", "wrong"]
    if is_back_before:
        shop.put("month=1/a.txt", "a")
    rewind(shop.store, "copy", 3, clean=clean, **WHY)
    if not is_back_before:
        shop.put("month=1/a.txt", "a")
    assert make(shop) == ["a", "b of 1"]
    assert shop.target_lines() == {"a": 1, "b": 1, "b of 1": 1}
    assert make(shop) == []


def test_rewind_behind_a_correction_is_taken_back(shop: Shop) -> None:
    shop.put("month=1/a.txt", "wrong", seconds=1_700_001_000)
    make(shop)
    position = shop.store.head("copy").contexts["raw"]
    rewind(shop.store, "copy", 2, **WHY)
    undo(shop.store, "copy", **WHY)
    assert shop.store.head("copy").contexts["raw"] == position
    assert make(shop) == []


def test_whole_target_that_a_correction_replaced_is_made_again_as_it_was(shop: Shop) -> None:
    whole = replace(shop, mode=Mode.OVERWRITE, root=shop.root / "whole")
    whole.put("full.txt", "right")
    whole.run("whole")
    whole.put("full.txt", "wrong", seconds=1_700_001_000)
    whole.run("whole")
    whole.put("full.txt", "right")
    rewind(whole.store, "whole", 1, clean=True, **WHY)
    assert whole.run("whole")[0] == ["right"]


def test_consumer_that_overwrites_goes_by_the_same_rule(shop: Shop) -> None:
    consumer = replace(shop, mode=Mode.OVERWRITE)
    consumer.run("report", upstream="copy")
    reset(shop.store, "report", contexts=["raw"], **WHY)
    consumer.run("report", upstream="copy")
    with pytest.raises(ChangeRefusedError, match="undo run 2, which has overwritten"):
        rewind(shop.store, "report", 1, clean=True, **WHY)
