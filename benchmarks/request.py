"""The requests that reach a state table: recorded with their sizes, and sent again without the package above them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.table import Attributes, Equals, Key, Operation, Put, Table, Update
from airflow_bookmarks.store.table_settings import DEFAULT, FoundSettings, TableSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RequestKind = Literal["get", "query", "transact"]


@dataclass(slots=True)
class Request:
    """One call of a `Table`. Bytes are those of items, as DynamoDB counts them; `is_blob`: it carries ledger or plan
    chunks.
    """

    kind: RequestKind
    keys: tuple[Key, ...] = ()
    range: tuple[str, str, str | None, str | None, bool, int | None] | None = None
    operations: tuple[Operation, ...] = ()
    token: str | None = None
    read_items: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    @property
    def is_blob(self) -> bool:
        """Whether it reads or writes chunks of a blob, which a large ledger or plan needs."""
        pks = [key.pk for key in self.keys] + [one.key.pk for one in self.operations]
        return any("#BLOB#" in pk for pk in [*pks, *([self.range[0]] if self.range else [])])

    def moved_to(self, namespace: str, other: str) -> Request:
        """Return the same request to another namespace. Names of one length give requests of one size."""

        def moved(key: Key) -> Key:
            return replace(key, pk=_moved(key.pk, namespace, other))

        where = self.range and (_moved(self.range[0], namespace, other), *self.range[1:])
        operations = tuple(replace(one, key=moved(one.key)) for one in self.operations)
        # A token stands for one set of operations: the same one for another set is refused.
        token = self.token and self.token[::-1]
        return Request(self.kind, tuple(map(moved, self.keys)), where, operations, token)

    def send(self, table: Table) -> None:
        """Send it again, and read what it reads to the end."""
        match self.kind:
            case "get":
                table.get(self.keys)
            case "transact":
                table.transact(self.operations, token=self.token)
            case "query" if self.range is not None:
                pk, prefix, after, until, reverse, limit = self.range
                for _ in table.query(pk, prefix=prefix, after=after, until=until, reverse=reverse, limit=limit):
                    pass


class RecordingTable:
    """A table that keeps what it is asked in `requests`, and passes it on."""

    def __init__(self, table: Table) -> None:
        self.inner = table
        self.requests: list[Request] = []

    def take(self) -> list[Request]:
        """Return the requests since the last take."""
        taken, self.requests = self.requests, []
        return taken

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""
        request = self._note(Request("get", keys=tuple(keys)))
        found = self.inner.get(keys)
        request.read_items = len(found)
        request.read_bytes = sum(check_item(key, attributes) for key, attributes in found.items())
        return found

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
        """See `Table.query`."""
        request = self._note(Request("query", range=(pk, prefix, after, until, reverse, limit)))
        rows = self.inner.query(pk, prefix=prefix, after=after, until=until, reverse=reverse, limit=limit)
        return _counted(request, rows)

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""
        written = sum(_written_bytes(one) for one in operations)
        self._note(Request("transact", operations=tuple(operations), token=token, written_bytes=written))
        self.inner.transact(operations, token=token)

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.scan`. No run scans, and what does is not counted."""
        return self.inner.scan(prefix, names=names)

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`."""
        return self.inner.create(settings)

    def settings(self) -> FoundSettings | None:
        """See `Table.settings`."""
        return self.inner.settings()

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        return self.inner.describe()

    def close(self) -> None:
        """See `Table.close`."""
        self.inner.close()

    def _note(self, request: Request) -> Request:
        self.requests.append(request)
        return request


def counted(requests: Iterable[Request]) -> dict[str, int]:
    """Return how many requests of each kind there are, those for blobs apart: `get`, `query`, `transact`, `blob`."""
    counts = Counter("blob" if one.is_blob else one.kind for one in requests)
    return {kind: counts[kind] for kind in ("get", "query", "transact", "blob")}


def _counted(request: Request, rows: Iterator[tuple[Key, Attributes]]) -> Iterator[tuple[Key, Attributes]]:
    for key, attributes in rows:
        request.read_items += 1
        request.read_bytes += check_item(key, attributes)
        yield key, attributes


def _written_bytes(operation: Operation) -> int:
    match operation:
        case Put(key, attributes):
            return check_item(key, attributes)
        case Update(key, new):
            return check_item(key, new)
        case _:
            return sum(len(c.name) for c in operation.conditions if isinstance(c, Equals))


def _moved(pk: str, namespace: str, other: str) -> str:
    return other + pk.removeprefix(namespace) if pk.startswith(f"{namespace}#") else pk
