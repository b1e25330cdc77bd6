"""Promise RESET-3: what undone runs left in their targets is counted, shown, and taken by the next clean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine
from tests.lifecycle.shop import Shop

WHY: dict[str, Any] = {"reason": "bad day", "who": "me"}


def doubled(shop: Shop) -> None:
    """Let three runs append, and two of them again after a rewind that cleaned nothing."""
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run()
    rewind(shop.store, "copy", 1, **WHY)
    shop.run()
    assert shop.target_lines() == {"a": 1, "b": 2, "c": 2}


def test_clean_takes_what_runs_undone_before_left(shop: Shop) -> None:
    doubled(shop)
    reset(shop.store, "copy", clean=True, **WHY)
    shop.run()
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1}


def test_rewind_with_clean_takes_what_runs_undone_before_left(shop: Shop) -> None:
    doubled(shop)
    assert rewind(shop.store, "copy", 4, clean=True, **WHY).to_clean == 2
    shop.run()
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1}


def test_preview_counts_what_undone_runs_left(shop: Shop) -> None:
    doubled(shop)
    seen = preview(shop.store, "copy", Change("reset"))
    assert (seen.left_over, seen.to_clean) == (2, 0)
    seen = preview(shop.store, "copy", Change("reset", clean=True))
    assert (seen.left_over, seen.to_clean) == (2, 5)
    assert seen.as_dict()["files_left_by_undone_runs"] == 2


def test_what_a_person_tidied_away_counts_as_nothing_and_hinders_no_clean(shop: Shop) -> None:
    doubled(shop)
    tidied, other = (_published(shop, number) for number in (2, 3))
    tidied.unlink()
    other.write_text("somebody else's\n")
    assert preview(shop.store, "copy", Change("reset")).left_over == 0
    assert reset(shop.store, "copy", clean=True, **WHY).to_clean == 3
    shop.run()
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1, "somebody else's": 1}


def test_runs_that_an_undo_brought_back_left_nothing(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    reset(shop.store, "copy", **WHY)
    assert preview(shop.store, "copy", Change("reset")).left_over == 2
    assert preview(shop.store, "copy", Change("undo")).left_over == 0
    undo(shop.store, "copy", **WHY)
    assert preview(shop.store, "copy", Change("reset", clean=True)).left_over == 0
    reset(shop.store, "copy", clean=True, **WHY)
    shop.run()
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_target_out_of_reach_is_not_known_and_stops_no_preview(shop: Shop) -> None:
    doubled(shop)
    target = shop.root / "copy"
    target.rename(shop.root / "aside")
    target.write_text("a file where the folder was")
    assert preview(shop.store, "copy", Change("reset")).left_over in (0, None)


def test_doctor_says_that_undone_runs_left_rows(shop: Shop) -> None:
    doubled(shop)
    (found,) = [finding for finding in examine(shop.store) if finding.code == "undone-files-left"]
    assert "2 file(s) of runs that were undone (2, 3)" in found.what
    assert "--clean" in found.repair
    reset(shop.store, "copy", clean=True, **WHY)
    shop.run()
    assert examine(shop.store) == []


def _published(shop: Shop, number: int) -> Path:
    return next(path for path in (shop.root / "copy").rglob(f"run-{number}.*") if path.is_file())
