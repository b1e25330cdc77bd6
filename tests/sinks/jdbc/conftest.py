"""A state store for the tests of the sink `jdbc`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store


@pytest.fixture
def store() -> Iterator[BookmarkStore]:
    """Open an empty store."""
    with memory_store() as opened:
        yield opened


@pytest.fixture
def blobs(store: BookmarkStore) -> BlobStore:
    return store.blobs
