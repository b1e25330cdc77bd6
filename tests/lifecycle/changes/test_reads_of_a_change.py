"""How often a change reads the state on its way: each item of the history at most once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.history.rewind import resolve_run
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Key
from tests.lifecycle.shop import Shop

REASON: dict[str, Any] = {"reason": "test", "who": "test"}


class CountedTable(SqliteTable):
    """A table that notes each read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.reads: list[str] = []

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        self.reads.append(f"get {sorted(key.sk for key in keys)}")
        return super().get(keys)

    def query(self, pk: str, **bounds: Any) -> Iterator[tuple[Key, Attributes]]:
        self.reads.append(f"query {pk} {bounds}")
        return super().query(pk, **bounds)


@pytest.fixture
def table(tmp_path: Path) -> CountedTable:
    return CountedTable(tmp_path / "bookmarks.db")


@pytest.fixture
def store(table: CountedTable) -> BookmarkStore:
    """Open a fresh store on a table that counts."""
    store = BookmarkStore(table, "test")
    store.init()
    return store


def five_runs(shop: Shop) -> None:
    for number in range(1, 6):
        shop.put(f"{number}.txt", f"line {number}", seconds=1_700_000_000 + number)
        shop.run()


CHANGES: dict[str, Callable[[BookmarkStore], object]] = {
    "reset": lambda store: reset(store, "copy", **REASON),
    "reset with clean": lambda store: reset(store, "copy", clean=True, **REASON),
    "rewind": lambda store: rewind(store, "copy", 2, **REASON),
    "rewind with clean": lambda store: rewind(store, "copy", 2, clean=True, **REASON),
    "set": lambda store: set_position(store, "copy", "raw", "now", **REASON),
    "undo": lambda store: undo(store, "copy", **REASON),
    "preview of a reset": lambda store: preview(store, "copy", Change("reset")),
}


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("reset", 5),
        ("reset with clean", 6),
        ("rewind", 6),
        ("rewind with clean", 7),
        ("set", 6),
        ("undo", 6),
        ("preview of a reset", 6),
    ],
)
def test_change_reads_the_state_few_times(shop: Shop, table: CountedTable, name: str, limit: int) -> None:
    five_runs(shop)
    rewind(shop.store, "copy", 4, **REASON)
    table.reads.clear()

    CHANGES[name](shop.store)

    assert len(table.reads) <= limit, "\n".join(table.reads)


def test_snapshot_reads_each_run_once_and_gives_parts_of_what_it_has(shop: Shop, table: CountedTable) -> None:
    five_runs(shop)
    history = HistorySnapshot.load(shop.store, "copy")
    table.reads.clear()

    assert [run.key.number for run in history.runs(0, 5)] == [1, 2, 3, 4, 5]
    assert [run.key.number for run in history.runs(2, 4)] == [3, 4]
    assert list(history.runs(5, 5)) == []
    assert len(table.reads) == 1


@pytest.mark.parametrize("reference", ["5", "3"])
def test_run_is_found_with_one_look_at_what_was_collected(shop: Shop, table: CountedTable, reference: str) -> None:
    five_runs(shop)
    head = shop.store.head("copy")
    table.reads.clear()

    assert resolve_run(shop.store, "copy", head, reference).key.number == int(reference)
    assert len([read for read in table.reads if read.startswith("get ")]) == 1, "\n".join(table.reads)
