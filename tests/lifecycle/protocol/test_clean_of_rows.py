"""A clean of a sink that commits by itself: a driver that only seemed dead comes too late, whenever it wakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.sinks.registry import SINKS
from tests.lifecycle.protocol.test_adopt import begin, fence_of, finish, plan_and_place
from tests.lifecycle.rows import ErasableRows
from tests.lifecycle.shop import Shop


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ErasableRows:
    """Open an empty sink, and make it known to each process, as an installed package does."""
    opened = ErasableRows(tmp_path / "rows.db")
    monkeypatch.setitem(SINKS.sinks, opened.kind, opened)
    return opened


@pytest.mark.parametrize("wakes", ["before the clean", "while it is prepared", "after it"])
def test_late_driver_leaves_no_row_that_is_read_again(shop: Shop, rows: ErasableRows, wakes: str) -> None:
    shop.put("a.txt", "a")
    late = begin(shop, rows, 1)
    lines = plan_and_place(shop, late)
    reset(shop.store, "copy", reason="a test", who="me", force=True, clean=True)

    def write() -> None:
        assert rows.write(fence_of(late), lines) is (wakes == "before the clean")

    if wakes == "before the clean":
        write()
    elif wakes == "while it is prepared":
        rows.while_prepared = write
    heir = begin(shop, rows, 2)
    if wakes == "after it":
        write()
    assert finish(shop, rows, heir) == ["a"]
    assert (rows.lines(), shop.store.head("copy").cleaning) == (["a"], None)
