"""An empty store in memory, for one test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def memory_store(namespace: str = "test") -> Iterator[BookmarkStore]:
    """Open an empty store that no other test sees, and discard it after the block.

    It follows the same rules as a store in DynamoDB, but its table is in the memory of this process, so the job must
    run in this process too. A job run by spark-submit needs a file (`sqlite:////tmp/x/bookmarks.db?create=true`).

    Args:
        namespace: the namespace of the store; default: "test".

    Raises:
        NameInvalidError: the namespace is not a valid name.

    Example:
        >>> with memory_store() as store:
        ...     store.jobs()
        []
    """
    table = SqliteTable(":memory:")
    try:
        store = BookmarkStore(table, namespace)
        store.init()
        yield store
    finally:
        table.close()
