"""Items as they are stored, for what examines, exports, imports and collects them; everything else sees core's objects.

What writes them is private to the store: see `airflow_bookmarks.store.transitions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.table import Attributes, Key, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

ItemKey: TypeAlias = Key
"""The key of an item: `StateReader.keys` makes it."""

StoredValue: TypeAlias = Value
"""What an attribute of an item may hold."""

StoredItem: TypeAlias = Attributes
"""The attributes of an item by name; `codec.item` decodes those that core has a class for."""

IndexEntry: TypeAlias = StoredItem
"""The entry of a name in the index of jobs, to be read by `transitions.naming` and `core.rules.owner`."""

SideRecord: TypeAlias = StoredItem
"""What a pause or disable run left: for people alone, no run reads it."""


def item_bytes(partition: str, sort_key: str, attributes: Mapping[str, object]) -> int:
    """Return the size of an item in bytes, as DynamoDB counts it.

    Raises:
        StoreError: no table takes it: it is above 400 KB, or holds a value that no table takes.
    """
    return check_item(ItemKey(partition, sort_key), attributes)
