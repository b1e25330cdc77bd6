"""A staging folder out of reach stops a run only where a dropped publish could still be moved out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop


@pytest.fixture
def moved(shop: Shop) -> Shop:
    """Return a shop whose job has staged elsewhere once, in a folder that can't be listed any more."""
    run, target = shop.begin(), str(shop.root / "copy")
    folder = run.place("out", StagingRequest("files", target, staging=str(shop.root / "old")))
    Path(folder).mkdir(parents=True)
    Path(folder, "part").write_text("first\n")
    run.staged("out", collect_staged(FILES, folder, target, run.file_token, Mode.APPEND, rows=1, schema=None))
    run.commit()
    for path in sorted((shop.root / "old").rglob("*"), reverse=True):
        path.rmdir()
    (shop.root / "old").rmdir()
    (shop.root / "old").symlink_to("old")  # a link that leads to itself: no right to list it would be the same
    return shop


def test_run_goes_on_where_a_former_staging_folder_is_out_of_reach(
    moved: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    moved.put("a.txt", "a")
    assert moved.run()[0] == ["a"]
    assert "is out of reach" in caplog.text
    assert moved.target_lines() == {"first": 1, "a": 1}


def test_run_stops_where_a_dropped_publish_may_still_come_out_of_a_folder_out_of_reach(moved: Shop) -> None:
    store = moved.store
    run = store.committed_run("copy", 1)
    assert run is not None
    key = store.keys("copy").run(run.key)
    store.table.transact([Update(key, set={"state": "COMMITTED"})])  # as a forced rewind leaves it
    with pytest.raises(OSError, match="old"):
        moved.begin()
    assert store.head("copy").lease is None


def test_doctor_names_a_staging_folder_out_of_reach_and_looks_at_all_else(moved: Shop) -> None:
    moved.put("a.txt", "a")
    moved.run()
    left = moved.root / "copy/_bookmarks/test/copy/1.1/out"
    left.mkdir(parents=True)
    assert sorted(found.code for found in examine(moved.store)) == ["staging-orphaned", "staging-unreachable"]
