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
    """Open an empty store that no other test sees and that is gone after the block.

    It follows the rules of a store in DynamoDB; only the table lies in the memory of this process. So the job has to
    run in this process too: a spark-submit of its own needs a file (`sqlite:////tmp/x/bookmarks.db?create=true`).

    Args:
        namespace: of its jobs.

    Raises:
        NameInvalidError: the namespace can't be a name.

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
