"""Fixtures for pytest, which a project enables by naming this module.

Example, in the project's topmost conftest.py:
    pytest_plugins = ["airflow_bookmarks.testing.fixtures"]
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store


@pytest.fixture
def bookmark_store() -> Iterator[BookmarkStore]:
    """Open an empty bookmark store in memory, for this test alone."""
    with memory_store() as store:
        yield store
