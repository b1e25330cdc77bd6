"""The lower layer of the state store: items under a two-part key, and transactions with declarative conditions.

A `Table` knows nothing of bookmarks. Implementations: `DynamoTable` and `SqliteTable`; one conformance suite
(`tests/store/conformance.py`) runs against both, on SQLite, moto and DynamoDB Local.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from airflow_bookmarks.store.table_settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.store.table_settings import FoundSettings, TableSettings

# What an attribute may hold. Numbers are integers; anything with a fraction or more than 38 digits is stored as text.
Value: TypeAlias = "str | int | bool | bytes | list[Value] | dict[str, Value] | None"
Attributes: TypeAlias = dict[str, Value]

MAX_OPERATIONS = 100  # DynamoDB: one transaction holds 100 items at most
MAX_UPDATED = 200  # attributes of one update: an expression of DynamoDB has 4 KB
MAX_ITEM_BYTES = 400_000  # DynamoDB: one item holds 400 KB at most, names included


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The primary key of an item: partition key and sort key, both non-empty text."""

    pk: str
    sk: str


@dataclass(frozen=True, slots=True)
class Exists:
    """Holds when the item is there."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Holds when there is no item under the key."""


@dataclass(frozen=True, slots=True)
class Equals:
    """Holds when the item is there and its attribute has exactly this value."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Lacks:
    """Holds when the item has no such attribute, or there is no item."""

    name: str


Condition: TypeAlias = Exists | Missing | Equals | Lacks


@dataclass(frozen=True, slots=True)
class Put:
    """Write the item whole, if all `conditions` hold."""

    key: Key
    attributes: Mapping[str, Value]
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Set and remove attributes by name, if all `conditions` hold; creates the item where there is none."""

    key: Key
    set: Mapping[str, Value] = field(default_factory=dict)
    remove: Sequence[str] = ()
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the item, if all `conditions` hold; no item is no error."""

    key: Key
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Write nothing; the transaction fails unless all `conditions` hold."""

    key: Key
    conditions: Sequence[Condition]


Operation: TypeAlias = Put | Update | Delete | Check


class Table(Protocol):
    """Items under a two-part key. Every read is strongly consistent.

    Each method raises `StoreUnavailableError` when the store did not answer within its limit, `StoreAccessError` when
    it refused, and `TableMissingError` when there is no table.
    """

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """Return the items that exist under `keys` (1 to 100, no repeats), in one request. Not one snapshot."""
        ...

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[Key, Attributes]]:
        """Yield the items of one partition in the order of their sort keys (bytes of UTF-8), page by page.

        `prefix` keeps the sort keys that start with it; `after` (exclusive) and `until` (inclusive) bound the sort key;
        `prefix` goes with neither of them. `limit` ends the iteration after that many items.
        """
        ...

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[tuple[Key, Attributes]]:
        """Yield every item whose partition key starts with `prefix` (not empty), in no order, with the attributes
        `names` alone.

        It reads the whole table, which costs accordingly: for housekeeping, never for a run. Not one snapshot: an item
        that is written meanwhile may come or not.
        """
        ...

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """Write all of `operations` (1 to 100, each key once) or none.

        `token` (up to 36 characters) makes a repeated call within ten minutes count once where the store can tell;
        the caller must not rely on it and reads back. Conflicts with other writers are retried inside.

        Raises:
            ConditionFailedError: a condition did not hold, with the items that were found.
        """
        ...

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """Create the table if it is absent and return whether it was.

        Raises:
            TableLayoutError: there is one of another layout. OptionError: there is one without what `settings` ask
                for, or this kind of table has none of that. Nothing was changed.
        """
        ...

    def settings(self) -> FoundSettings | None:
        """Return the table's present values of the settings that `create` takes; None if its kind has no settings."""
        ...

    def describe(self) -> dict[str, str]:
        """Describe the table for people: kind, name or path, region or host; no secret."""
        ...

    def close(self) -> None:
        """Release connections; the table can't be used afterwards."""
        ...


def evaluate(conditions: Iterable[Condition], item: Mapping[str, Value] | None) -> bool:
    """Return whether all `conditions` hold for `item` (None: there is none). Every table must keep this meaning."""
    return all(_holds(c, item) for c in conditions)


def _holds(condition: Condition, item: Mapping[str, Value] | None) -> bool:
    match condition:
        case Exists():
            return item is not None
        case Missing():
            return item is None
        case Equals(name, value):
            return item is not None and name in item and _same(item[name], value)
        case Lacks(name):
            return item is None or name not in item


def _same(left: Value, right: Value) -> bool:
    # True == 1 in Python, but not in a table, at whatever depth.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return left == right
