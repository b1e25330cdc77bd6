"""A first run that appends to files of runs that nobody knows has lost its bookmark: it stops and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import UnknownRunsError
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.sinks.staging import OnUnknownRuns, StagingRequest
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop

START = "2024-01-01T00:00:00Z"


@pytest.fixture
def lost(shop: Shop, tmp_path: Path) -> Shop:
    """Return a shop over the same folders, whose store was lost after two runs and made anew."""
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    store = BookmarkStore(SqliteTable(tmp_path / "anew.db"), "test")
    store.init()
    return Shop(shop.root, store)


def place(
    shop: Shop,
    job: str = "copy",
    target: Path | None = None,
    on_unknown_runs: OnUnknownRuns = "error",
    start: str = "beginning",
) -> None:
    """Begin a run, place an output of it, and give up."""
    run = shop.begin(job, start=Start.of(start))
    try:
        run.place("out", StagingRequest("files", str(target or shop.root / "copy"), on_unknown_runs=on_unknown_runs))
    finally:
        run.abort("tried")


def test_lost_store_that_was_made_anew_is_told_from_a_new_job(lost: Shop) -> None:
    before = lost.target_lines()
    with pytest.raises(
        UnknownRunsError, match=r"2 file\(s\) of runs .*Nothing was written .*restore or import"
    ) as found:
        place(lost)
    assert "on_unknown_runs=" in str(found.value)
    assert lost.target_lines() == before == {"a": 1, "b": 1}
    assert lost.store.head("copy").run_number == 0


def test_other_namespace_does_not_know_the_runs(shop: Shop, tmp_path: Path) -> None:
    shop.put("a.txt", "a")
    shop.run()
    with pytest.raises(UnknownRunsError, match="in namespace 'other'"):
        place(Shop(shop.root, BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "other")))


def test_lost_store_is_told_through_a_link_to_the_target(lost: Shop) -> None:
    (lost.root / "alias").symlink_to("copy")
    with pytest.raises(UnknownRunsError):
        place(lost, target=lost.root / "alias")


def test_person_may_say_that_another_store_writes_there(lost: Shop) -> None:
    place(lost, on_unknown_runs="keep")


@pytest.mark.parametrize("start", [START, "now"])
def test_job_that_begins_where_it_stopped_doubles_nothing(lost: Shop, start: str) -> None:
    place(lost, start=start)


def test_new_target_and_files_of_others_are_no_reason_to_stop(lost: Shop) -> None:
    place(lost, target=lost.root / "new")
    for name in ("part-0.txt", "run-1.txt", "side-01K7Q8ZC5T1V4H9W3M6N8P0R2S-part-0.txt", "_x/run-1.1-part-0.txt"):
        (lost.root / "mixed" / name).parent.mkdir(parents=True, exist_ok=True)
        (lost.root / "mixed" / name).write_text("x\n")
    place(lost, target=lost.root / "mixed")


def test_target_that_jobs_of_one_store_share_is_no_reason_to_stop(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    (shop.root / "alias").symlink_to("copy")
    place(shop, "second")
    place(shop, "second", target=shop.root / "alias")


def test_later_runs_and_runs_after_a_reset_do_not_look(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    (shop.root / "copy" / "file=a" / "run-7.7-part-0.txt").write_text("x\n")
    place(shop)
    assert shop.store.head("copy").run_number == 1


def test_one_file_of_an_unknown_run_among_those_of_a_known_job_is_seen(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    (shop.root / "copy" / "file=a" / "run-7.7-part-0.txt").write_text("x\n")
    with pytest.raises(UnknownRunsError, match=r"1 file\(s\).*run-7\.7-part-0"):
        place(shop, "second")
