"""Write units of DynamoDB, counted as its documentation says: by the size of each item that a request writes or checks.

A unit is 1 KB of an item, begun ones whole, of the larger of the item before and after; in a transaction each item
counts twice, one that is only checked as well. DynamoDB Local says something else of transactions: it doubles what one
item takes again, counts items that take the same only once, and those that are checked as read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import boto3.session

    from airflow_bookmarks.store.backends.wire import Wire

UNIT_BYTES = 1024
_NAMES = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete"}
_ASKED = "bookmark_asked"  # in the context of a request of boto3: its parameters


def item_bytes(item: Mapping[str, Wire]) -> int:
    """Return the size of an item as DynamoDB counts it.

    Example:
        >>> item_bytes({"pk": {"S": "a"}, "data": {"B": b"12345"}, "size": {"N": "1200"}})
        18
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Wire) -> int:
    ((kind, inner),) = value.items()
    match kind:
        case "S":
            return len(str(inner).encode())
        case "B":
            return len(bytes(inner))
        case "N":
            digits = str(inner).lstrip("-").strip("0")
            return (len(digits) + 1) // 2 + 1 + int(str(inner).startswith("-"))
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in inner)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_bytes(each) for name, each in inner.items())
        case _:
            return 1  # NULL, BOOL


@dataclass(frozen=True, slots=True)
class Written:
    """One request that writes, and the units of each of its items."""

    operation: str
    items: tuple[tuple[str, int], ...]

    @property
    def units(self) -> int:
        """What the request takes."""
        return sum(units for _, units in self.items)


@dataclass
class WriteUnits:
    """What the writes of a table take, request by request; `look` returns an item of it as it is now.

    Watch a table from its beginning: what an item was before a write is known from the write before.
    """

    look: Callable[[Wire], Mapping[str, Wire]]
    requests: list[Written] = field(default_factory=list)
    _sizes: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The units of all requests."""
        return sum(request.units for request in self.requests)

    def by_item(self) -> Counter[str]:
        """Return the units by what they are for: the first part of each sort key, `BLOB` for blobs."""
        counts: Counter[str] = Counter()
        for request in self.requests:
            for name, units in request.items:
                counts[name] += units
        return counts

    def watch(self, session: boto3.session.Session) -> None:
        """Count each write of a session's clients from now on."""
        session.events.register("before-parameter-build.dynamodb.*", self._remember)
        session.events.register("after-call.dynamodb.*", self._count)

    def _remember(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context[_ASKED] = params

    def _count(self, model: Any, context: dict[str, Any], **_: Any) -> None:
        asked = context[_ASKED]
        if model.name == "TransactWriteItems":
            items = [(name, 2 * units) for one in asked["TransactItems"] for name, units in self._units(one)]
        elif model.name in _NAMES:
            items = self._units({_NAMES[model.name]: asked})
        else:
            return
        self.requests.append(Written(model.name, tuple(items)))

    def _units(self, operation: Wire) -> list[tuple[str, int]]:
        ((_, request),) = operation.items()
        key = request["Key"] if "Key" in request else {name: request["Item"][name] for name in ("pk", "sk")}
        pk, sk = key["pk"]["S"], key["sk"]["S"]
        before, after = self._sizes.get(f"{pk} {sk}", 0), item_bytes(self.look(key))
        self._sizes[f"{pk} {sk}"] = after
        name = "BLOB" if "#BLOB#" in pk else "JOBS" if pk.endswith("#JOBS") else sk.partition("#")[0]
        return [(name, max(1, -(-max(before, after) // UNIT_BYTES)))]
