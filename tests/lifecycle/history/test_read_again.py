"""Promises of files that are read again because their version changed: counted everywhere (FILE-3, RUN-17)."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.sinks.staging import Mode
from tests.lifecycle.shop import Shop


def correct_one(shop: Shop) -> None:
    """Read two files, then change one and add one."""
    shop.put("a.txt", "a1")
    shop.put("b.txt", "b1")
    shop.run()
    shop.put("a.txt", "a1", "a2")
    shop.put("c.txt", "c1")


def test_file_read_again_is_counted_in_summary_history_and_pending(shop: Shop) -> None:
    correct_one(shop)
    found = pending(shop.store, "copy").as_dict()
    assert [(row["files"], row["read_again"]) for row in found["contexts"]] == [(2, 1)]
    lines, summary = shop.run()
    assert sorted(lines) == ["a1", "a2", "c1"]
    assert summary.as_dict()["contexts"]["raw"]["read_again"] == 1
    assert "raw: 2 files (1 read again)" in summary.in_words()
    assert [row["read_again"] for row in history(shop.store, "copy")] == [0, 1]


def test_file_read_again_is_told_in_the_log(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    correct_one(shop)
    shop.run()
    assert any("1 known, 1 read again" in line for line in caplog.messages)


def test_stored_plan_says_which_of_its_files_were_read_before(shop: Shop) -> None:
    correct_one(shop)
    shop.run()
    stored = shop.store.committed_run("copy", 2)
    assert stored is not None
    plan = FilePlan.decode(shop.store.blobs.get(stored.plans["raw"].body))
    assert plan.again == {str(shop.raw / "a.txt")}
    assert (plan.read_again, plan.companions) == (1, frozenset())


@pytest.mark.parametrize(("mode", "warned"), [(Mode.APPEND, True), (Mode.OVERWRITE, False)])
def test_file_read_again_into_an_output_that_appends_is_a_warning(
    shop: Shop, caplog: pytest.LogCaptureFixture, mode: Mode, warned: bool
) -> None:
    shop.mode = mode
    correct_one(shop)
    assert "appends" not in caplog.text
    shop.run()
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [("1 of context 'raw'" in line, "output 'out' appends" in line) for line in warnings] == [
        (True, True)
    ] * warned


def test_file_that_vanished_before_the_commit_does_not_count_as_read_again(shop: Shop) -> None:
    correct_one(shop)
    summary = shop.run(on_missing="skip", between=lambda: shop.put("a.txt", "a9", seconds=1_700_000_900))[1]
    assert summary.contexts["raw"]["read_again"] == 0
