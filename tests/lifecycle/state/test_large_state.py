"""Whole runs whose plans, lists and ledgers lie under `state_uri`: read, proven, carried over and collected."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import files_of
from airflow_bookmarks.lifecycle.maintenance.blobs import BLOB_GRACE
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.retention import RETENTION, collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.store import blobs as blob
from airflow_bookmarks.store import bookmark_store
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop

FILES = 200  # more than a ledger's root holds itself
WHY = "a test"
WHO = "me"


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small job have what only one of a million files has: 100,000 files take minutes."""
    monkeypatch.setattr(blob, "OBJECT_BYTES", 0)
    monkeypatch.setattr(bookmark_store, "INLINE_BYTES", 0)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def store(tmp_path: Path, state: Path) -> BookmarkStore:
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test", state_uri=str(state))
    store.init()
    return store


@pytest.fixture
def shop(shop: Shop) -> Shop:
    for number in range(FILES):
        shop.put(f"{number:03d}.txt", f"line {number}")
    return shop


def objects(state: Path) -> list[Path]:
    return [path for path in state.rglob("*") if path.is_file()]


def codes(shop: Shop) -> set[str]:
    return {finding.code for finding in examine(shop.store, with_lost=True)}


def test_runs_go_on_from_what_lies_there(shop: Shop, state: Path) -> None:
    first, _ = shop.run()
    shop.put("late.txt", "late")
    second, _ = shop.run()

    assert (len(first), second) == (FILES, ["late"])
    assert shop.target_lines().total() == FILES + 1
    assert len(objects(state)) >= 6  # of each run its plan, what it publishes, a ledger
    assert len(files_of(shop.store, "copy", "1")) == FILES
    assert codes(shop) == set()


def test_reset_and_rewind_find_what_lies_there(shop: Shop) -> None:
    shop.run()
    shop.put("late.txt", "late")
    shop.run()

    rewind(shop.store, "copy", "1", clean=True, reason=WHY, who=WHO)
    lines, _ = shop.run()
    assert lines == ["late"]

    reset(shop.store, "copy", clean=True, reason=WHY, who=WHO)
    lines, _ = shop.run()
    assert len(lines) == FILES + 1
    assert shop.target_lines().total() == FILES + 1


def test_ledger_whose_object_is_gone_stops_the_run_and_reads_nothing_twice(shop: Shop, state: Path) -> None:
    shop.run()
    for path in objects(state):
        path.unlink()

    with pytest.raises(StateCorruptError, match="is not there"):
        shop.run()

    assert shop.target_lines().total() == FILES
    assert shop.store.head("copy").version == 1


def test_doctor_names_objects_that_are_gone_changed_or_out_of_reach(shop: Shop, state: Path) -> None:
    shop.run()

    for path in objects(state):
        content = path.read_bytes()
        path.unlink()
        assert "blob-missing" in codes(shop)
        path.write_bytes(b"something else")
        assert "bytes-damaged" in codes(shop)
        path.write_bytes(content)
        assert codes(shop) == set()

    shutil.rmtree(state)
    state.write_text("no folder any more")
    assert {"blob-unreachable", "objects-unreachable"} <= codes(shop)


def test_object_that_an_item_names_is_no_orphan_however_state_uri_is_spelled(
    shop: Shop, state: Path, tmp_path: Path
) -> None:
    shop.run()
    before = objects(state)
    shop.store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test", state_uri=f"file://{state}")

    assert codes(shop) == set()
    collected = collect(shop.store, clock=lambda: utc_now() + BLOB_GRACE + timedelta(days=1))

    assert (collected.objects, objects(state)) == ((), before)


def test_doctor_tells_of_an_object_that_nothing_names(shop: Shop, state: Path) -> None:
    shop.run()
    one = objects(state)[0]
    orphan = one.with_name(f"{'0' * 64}-{one.name[-26:]}")
    orphan.write_bytes(b"of a driver that died")

    found = examine(shop.store, with_lost=True)

    assert [(f.code, f.where, f.severity.value) for f in found] == [("object-orphaned", str(orphan), "notice")]
    assert examine(shop.store) == []  # it takes a scan of the table


def test_export_carries_objects_into_a_store_without_a_state_uri(shop: Shop, state: Path, tmp_path: Path) -> None:
    shop.run()
    there = BookmarkStore(SqliteTable(tmp_path / "there.db"), "test")
    there.init()

    import_(there, export(shop.store), move=True, reason=WHY, who=WHO)
    shutil.rmtree(state)

    shop.store = there
    shop.put("late.txt", "late")
    lines, _ = shop.run()
    assert lines == ["late"]
    assert codes(shop) == set()


def test_import_writes_objects_where_there_is_a_state_uri(shop: Shop, tmp_path: Path) -> None:
    shop.run()
    other = tmp_path / "other"
    there = BookmarkStore(SqliteTable(tmp_path / "there.db"), "test", state_uri=str(other))
    there.init()

    done = import_(there, export(shop.store), move=True, reason=WHY, who=WHO)

    assert len(objects(other)) == done.blobs > 0
    shop.store = there
    assert codes(shop) == set()


def test_what_a_job_needs_is_never_collected_and_the_rest_goes_with_its_objects(shop: Shop, state: Path) -> None:
    shop.run()
    for number in range(3):
        shop.put(f"late-{number}.txt", "late")
        shop.run()
    before = len(objects(state))

    collected = collect(shop.store, clock=lambda: utc_now() + RETENTION + timedelta(days=1))

    assert len(collected.blobs) == before - len(objects(state)) > 0
    assert codes(shop) == set()
    assert shop.run()[0] == []
