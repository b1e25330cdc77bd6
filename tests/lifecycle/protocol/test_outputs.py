"""Promises of several outputs in one run (SINK-5): all become visible or none, or the next run finishes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop

ROOT = Path(__file__).parents[3]
NAMES = ("one", "two")


def stage_both(shop: Shop, run: ActiveRun) -> None:
    """Stage one file for each of two outputs."""
    for name in NAMES:
        target = str(shop.root / name)
        folder = run.place(name, StagingRequest("files", target))
        Path(folder).mkdir(parents=True)
        Path(folder, "part").write_text(f"{name}\n")
        staged = collect_staged(FILES, folder, target, run.file_token, Mode.APPEND, rows=1, schema=None)
        run.staged(name, staged)


def visible(shop: Shop) -> dict[str, int]:
    """Return how many files a reader of each target sees."""
    return {name: len(FILES.list(str(shop.root / name)).files) for name in NAMES if (shop.root / name).exists()}


def drive(root: str, number: int) -> None:
    """Make a run with two outputs in this process, which dies when so many files were moved."""
    moved = 0

    def die(point: Failpoint) -> None:
        nonlocal moved
        moved += point is Failpoint.MOVED
        if moved == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store = BookmarkStore(SqliteTable(Path(root) / "bookmarks.db"), "test")
    shop = Shop(Path(root), store, RunEnvironment(at=die))
    run = shop.begin(run_id="task")
    stage_both(shop, run)
    run.commit()


@pytest.mark.parametrize("moved", [1, 2])
def test_run_killed_between_the_publishes_of_two_outputs_is_finished_by_the_next(shop: Shop, moved: int) -> None:
    code = f"from tests.lifecycle.protocol.test_outputs import drive; drive({str(shop.root)!r}, {moved})"
    driver = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True)
    assert driver.returncode == -signal.SIGKILL, driver.stderr.decode()
    assert sum(visible(shop).values()) == moved
    head = shop.store.head("copy")
    assert (head.run_number, head.published) == (1, 0)
    shop.begin(run_id="task", attempt=2).abort("it only had to finish what was due")
    assert visible(shop) == {"one": 1, "two": 1}
    assert shop.store.head("copy").published == 1


def test_outputs_of_a_run_become_visible_with_its_commit_and_none_without(shop: Shop) -> None:
    run = shop.begin()
    stage_both(shop, run)
    run.abort("an exception in the block")
    assert visible(shop) == {"one": 0, "two": 0}
    run = shop.begin()
    stage_both(shop, run)
    assert visible(shop) == {"one": 0, "two": 0}
    run.commit()
    assert visible(shop) == {"one": 1, "two": 1}
