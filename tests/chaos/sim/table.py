"""A table in memory, fast and without aliasing, and the same with whatever befalls its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    StoreError,
    StoreUnavailableError,
    TableMissingError,
)
from airflow_bookmarks.store.backends.limits import check_item, check_key, check_keys, check_operations, check_range
from airflow_bookmarks.store.table import Attributes, Delete, Key, Operation, Put, Update, Value, evaluate
from airflow_bookmarks.store.table_settings import DEFAULT, TableSettings
from tests.chaos.sim.scheduler import Scheduler

Row = tuple[Key, Attributes]
Written = Mapping[Key, tuple[Attributes | None, Attributes | None]]
PAGE_BYTES = 1_000_000


class SimTable:
    """Items in a dict. `on_write` is told each transaction: per key the item before and after."""

    def __init__(self, *, page_items: int = 1000) -> None:
        self._partitions: dict[str, dict[str, Attributes]] | None = None
        self._tokens: dict[str, Sequence[Operation]] = {}
        self._lock = RLock()
        self._is_closed = False
        self._page_items = page_items
        self.on_write: Callable[[Written], None] = lambda written: None

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""
        check_keys(keys)
        with self._lock:
            return {key: _copied(item) for key in keys if (item := self._item(key)) is not None}

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """See `Table.query`."""
        pages = self.pages(pk, prefix=prefix, after=after, until=until, reverse=reverse, limit=limit)
        return (row for page in pages for row in page)

    def pages(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[list[Row]]:
        """Yield what `query` does, page by page: each is one request."""
        check_range(pk, prefix, after, until, limit)
        return self._pages(pk, _within(prefix, after, until), reverse, limit)

    def _pages(self, pk: str, within: Callable[[str], bool], reverse: bool, limit: int | None) -> Iterator[list[Row]]:
        last: str | None = None
        left = limit
        while True:
            with self._lock:
                partition = self._all().get(pk, {})
                rest = sorted((sk for sk in partition if within(sk)), reverse=reverse)
                if last is not None:
                    rest = [sk for sk in rest if (sk < last if reverse else sk > last)]
                size = self._page_items if left is None else min(left, self._page_items)
                page = [(Key(pk, sk), _copied(partition[sk])) for sk in rest[:size]]
            yield page
            if left is not None:
                left -= len(page)
            if len(rest) <= len(page) or left == 0:
                return
            last = page[-1][0].sk

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[Row]:
        """See `Table.scan`."""
        if not prefix:
            raise StoreError("a scan takes the beginning of partition keys, and it is empty. Nothing was read.")
        return self._scan(prefix, names)

    def _scan(self, prefix: str, names: Sequence[str]) -> Iterator[Row]:
        with self._lock:
            found = [
                (Key(pk, sk), _copied({name: item[name] for name in names if name in item}))
                for pk, partition in self._all().items()
                if pk.startswith(prefix)
                for sk, item in partition.items()
            ]
        yield from found

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""
        check_operations(operations, token)
        with self._lock:
            self._all()
            if token is not None and token in self._tokens:
                if list(operations) != list(self._tokens[token]):
                    raise StoreError(f"token {token!r} was used for other operations. Nothing was written.")
                return
            self._write(operations)
            if token is not None:
                self._tokens[token] = list(operations)

    def forget(self, token: str | None) -> None:
        """Make a token count for nothing, as after its ten minutes."""
        self._tokens.pop(token or "", None)

    def _write(self, operations: Sequence[Operation]) -> None:
        before = {operation.key: self._item(operation.key) for operation in operations}
        failed = {
            index: None if (item := before[operation.key]) is None else _copied(item)
            for index, operation in enumerate(operations)
            if not evaluate(operation.conditions, before[operation.key])
        }
        if failed:
            raise ConditionFailedError(failed)
        after = {operation.key: _after(operation, before[operation.key]) for operation in operations}
        for key, item in after.items():
            if item is not None:
                check_item(key, item)
        for key, item in after.items():
            partition = self._all().setdefault(key.pk, {})
            if item is not None:
                partition[key.sk] = item
            else:
                partition.pop(key.sk, None)
        self.on_write({key: (before[key], after[key]) for key in after})

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`."""
        with self._lock:
            if self._partitions is not None:
                return False
            self._partitions = {}
            return True

    def settings(self) -> None:
        """See `Table.settings`."""

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        return {"kind": "simulated"}

    def close(self) -> None:
        """See `Table.close`."""
        self._is_closed = True

    def items(self, pk: str) -> Mapping[str, Attributes]:
        """Return the items of a partition as they lie: for looking, not for changing."""
        return self._all().get(pk, {})

    def partitions(self) -> list[str]:
        """Return all partition keys."""
        return sorted(self._all())

    def _item(self, key: Key) -> Attributes | None:
        return self._all().get(key.pk, {}).get(key.sk)

    def _all(self) -> dict[str, dict[str, Attributes]]:
        if self._is_closed:
            raise StoreError("the table is closed")
        if self._partitions is None:
            raise TableMissingError("the simulated table was not created. 'airflow-bookmarks init' creates one.")
        return self._partitions


def _after(operation: Operation, before: Attributes | None) -> Attributes | None:
    match operation:
        case Put(_, attributes):
            return _copied(attributes)
        case Update(_, new, gone):
            kept = {name: value for name, value in (before or {}).items() if name not in gone}
            return kept | _copied(new)
        case Delete():
            return None
    return before


def _copied(item: Mapping[str, Value]) -> Attributes:
    return {name: _copy(value) for name, value in item.items()}


def _copy(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value


def _within(prefix: str, after: str | None, until: str | None) -> Callable[[str], bool]:
    def is_within(sk: str) -> bool:
        return sk.startswith(prefix) and (after is None or sk > after) and (until is None or sk <= until)

    return is_within


class FaultyTable:
    """A table whose requests are points to switch at, and may fail, be lost, come late or twice."""

    def __init__(self, table: SimTable, scheduler: Scheduler, told: Callable[[Sequence[Key]], None]) -> None:
        self._table, self._scheduler, self._told = table, scheduler, told

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""

        def look() -> dict[Key, Attributes]:
            self._told(keys)
            return self._table.get(keys)

        what = f"get {', '.join(_short(key) for key in keys)}"
        return self._scheduler.call(what, look, _unavailable, changes=False)

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[Row]:
        """See `Table.query`."""
        pages = self._table.pages(pk, prefix=prefix, after=after, until=until, reverse=reverse, limit=limit)
        return self._rows(pages, f"query {_short(Key(pk, prefix or after or ''))}")

    def _rows(self, pages: Iterator[list[Row]], what: str) -> Iterator[Row]:
        while True:
            page = self._scheduler.call(what, lambda: next(pages, None), _unavailable, changes=False)
            if page is None:
                return
            yield from page

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[Row]:
        """See `Table.scan`."""
        rows = self._table.scan(prefix, names=names)
        yield from self._scheduler.call(f"scan {prefix}", lambda: list(rows), _unavailable, changes=False)

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""

        def effect() -> None:
            self._table.transact(operations, token=token)

        def again() -> None:
            self._table.forget(token)  # where a table can't tell, the second one meets its own effect
            effect()

        what = "write " + ", ".join(_told(operation) for operation in operations)
        self._scheduler.call(what, effect, _unavailable, changes=True, again=again)

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`."""
        return self._table.create(settings)

    def settings(self) -> None:
        """See `Table.settings`."""

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        return self._table.describe()

    def close(self) -> None:
        """See `Table.close`."""


def _unavailable() -> Exception:
    return StoreUnavailableError("the simulated table did not answer. Try again.")


def _short(key: Key) -> str:
    name = key.pk.rsplit("#", 1)[-1][:8]
    return f"{name}:{key.sk}".replace("#00000000", "#").replace("#~", "")


def _told(operation: Operation) -> str:
    kind = type(operation).__name__.lower()
    figures = ""
    if isinstance(operation, Put | Update):
        new = operation.attributes if isinstance(operation, Put) else operation.set
        named = ("state", "fence", "version", "epoch", "publishing", "published", "kind", "killed_attempt")
        figures = " ".join(f"{name}={new[name]!s}" for name in named if name in new)
        figures = f"({figures})" if figures else ""
    check_key(operation.key)
    return f"{kind} {_short(operation.key)}{figures}"
