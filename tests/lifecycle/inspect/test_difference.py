"""Differences between runs of a job, and between a job in two stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import JobUnknownError, RunUnknownError
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.inspect.difference import diff, diff_stores
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop


@pytest.fixture
def copied(shop: Shop) -> Shop:
    """Return a shop whose runs 2 and 3 read b and c, undone then and read anew, with another b, by run 4."""
    for second, name in enumerate("abc", 1):
        shop.put(f"{name}.txt", name, seconds=1_700_000_000 + second)
        shop.run(run_id=f"run/{second}")
    rewind(shop.store, "copy", 1, reason="b was wrong", who="ann")
    shop.put("b.txt", "better", seconds=1_700_000_009)
    shop.run(run_id="run/4")
    return shop


def test_two_runs_differ_by_what_they_read_and_wrote(copied: Shop) -> None:
    found = diff(copied.store, "copy", "2", "run/4")

    raw = found["contexts"]["raw"]
    assert [Path(path).name for path in raw["only_in_b"]] == ["c.txt"]
    assert [Path(path).name for path in raw["other_version"]] == ["b.txt"]
    assert (raw["only_in_a"], raw["in_both"]) == ([], 1)
    assert raw["watermark"] == {"a": "2023-11-14T22:13:22.000000Z", "b": "2023-11-14T22:13:29.000000Z"}
    assert found["measured"]["files"] == {"a": 1, "b": 2}
    assert found["measured"]["state"] == {"a": "UNDONE", "b": "PUBLISHED"}
    assert found["outputs"]["out"]["a"]["rows"] == 1
    assert found["outputs"]["out"]["b"]["rows"] == 2


def test_run_does_not_differ_from_itself(copied: Shop) -> None:
    found = diff(copied.store, "copy", "2", "2")
    assert (found["measured"], found["outputs"], found["contexts"]["raw"]["other_version"]) == ({}, {}, [])


@pytest.mark.parametrize("reference", ["0", "9", "run/9"])
def test_unknown_run_is_an_error(copied: Shop, reference: str) -> None:
    with pytest.raises(RunUnknownError):
        diff(copied.store, "copy", "1", reference)


def test_job_in_two_stores_differs_by_where_it_stands(copied: Shop, tmp_path: Path) -> None:
    other = BookmarkStore(SqliteTable(tmp_path / "other.db"), "prod")
    other.init()
    with pytest.raises(JobUnknownError):
        diff_stores(copied.store, other, "copy")
    import_(other, export(copied.store), who="ann", reason="a copy")
    same = diff_stores(copied.store, other, "copy")
    assert (same["is_same"], same["numbers"], same["contexts"]) == (True, {}, {})

    copied.put("d.txt", "d", seconds=1_700_000_020)
    copied.run()

    found = diff_stores(copied.store, other, "copy")
    assert not found["is_same"]
    assert found["numbers"]["run_number"] == {"a": 5, "b": 4}
    assert found["contexts"]["raw"]["watermark"]["b"] == "2023-11-14T22:13:29.000000Z"
    assert found["stores"]["b"]["namespace"] == "prod"


def test_context_that_one_store_lacks_is_told(copied: Shop, tmp_path: Path) -> None:
    other = BookmarkStore(SqliteTable(tmp_path / "other.db"), "prod")
    other.init()
    Shop(tmp_path / "elsewhere", other).begin("copy").abort("nothing yet")
    found = diff_stores(copied.store, other, "copy")
    assert found["contexts"]["raw"]["kind"] == {"a": "files", "b": None}
