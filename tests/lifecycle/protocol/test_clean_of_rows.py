"""A clean of a sink that commits by itself: a driver that only seemed dead comes too late, whenever it wakes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList, CleanPart
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import StoredOutput
from tests.lifecycle.protocol.test_adopt import Rows, begin, fence_of, finish, plan_and_place
from tests.lifecycle.shop import Shop


@dataclass(frozen=True)
class Takeback:
    """The removal of the rows that were there when it was prepared."""

    db: sqlite3.Connection
    rows: Sequence[tuple[int]]

    def remove_staged(self) -> None:
        """Do nothing: nothing is staged."""

    def remove_visible(self) -> None:
        with self.db:
            self.db.executemany("DELETE FROM rows WHERE rowid = ?", self.rows)


class ErasableRows(Rows, CleanedSink):
    """Rows that a clean removes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.while_prepared: Callable[[], object] = lambda: None

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        return None

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        return CleanList(parts=(CleanPart.of(output),))

    def left(self, output: StoredOutput) -> CleanList | None:
        return None

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Takeback]:
        fences = [fence for part in listed.parts for fence in ground.output_of(part).run.fences]
        query = "SELECT rowid FROM rows WHERE fence = ?"
        there = [row for fence in fences for row in self._db.execute(query, [fence])]
        self.while_prepared()
        return [Takeback(self._db, there)]


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
