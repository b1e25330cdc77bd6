"""What the tests of a transfer share: a shop with history, and another store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.changes.naming import rename
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop


@pytest.fixture
def other(shop: Shop, tmp_path: Path) -> Shop:
    """Return a shop over the same files whose store is another, empty one."""
    store = BookmarkStore(SqliteTable(tmp_path / "other.db"), "test")
    store.init()
    return replace(shop, store=store)


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """Return a shop with history: runs, a rewind, a consumer, two names."""
    for second, name in enumerate("abc", 1):
        shop.put(f"{name}.txt", name, seconds=1_700_000_000 + second)
        shop.run()
    shop.run("report", upstream="copy")
    rewind(shop.store, "copy", 2, reason="wrong rows", who="ann")
    shop.run()
    shop.run("report", upstream="copy", on_rewind="ignore")
    rename(shop.store, "copy", "lake.copy", reason="new DAG", who="ann")
    return shop
