from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import Shop


@pytest.fixture
def store(tmp_path: Path) -> BookmarkStore:
    """Open a fresh store on SQLite."""
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    return store


@pytest.fixture
def shop(tmp_path: Path, store: BookmarkStore) -> Shop:
    """Open a shop whose raw folder is there and empty."""
    shop = Shop(tmp_path, store)
    shop.raw.mkdir()
    return shop
