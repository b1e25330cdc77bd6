"""Items as they are stored, for what examines, exports, imports and collects them; everything else sees core's objects.

What writes them is private to the store: see `airflow_bookmarks.store.transitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.table import Key

if TYPE_CHECKING:
    from collections.abc import Mapping


def item_bytes(partition: str, sort_key: str, attributes: Mapping[str, object]) -> int:
    """Return the size of an item in bytes, as DynamoDB counts it.

    Raises:
        StoreError: no table takes it: it is above 400 KB, or holds a value that no table takes.
    """
    return check_item(Key(partition, sort_key), attributes)
