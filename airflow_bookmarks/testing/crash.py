"""Simulate a driver that dies at a point of the protocol: control leaves the job, and its store stops answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, StoreUnavailableError
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.store.table_settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_bookmarks.store.table import Attributes, Key, Operation, Table
    from airflow_bookmarks.store.table_settings import FoundSettings, TableSettings


class SimulatedCrash(BaseException):
    """Raised inside a job that a test makes die at `point`.

    It is not an Exception, so it also ends a script that catches every Exception.
    """

    def __init__(self, point: Failpoint) -> None:
        super().__init__(f"the driver dies at the point {point.value!r}, because the test asked for it")
        self.point = point


def crash_point(text: str) -> Failpoint:
    """Return the point of the protocol with this name.

    Raises:
        OptionError: no point has this name.

    Example:
        >>> crash_point("before_commit")
        <Failpoint.BEFORE_COMMIT: 'before_commit'>
    """
    if text not in set(Failpoint):
        raise OptionError(f"crash_at={text!r}: expected one of {', '.join(Failpoint)}. Nothing arrived or was run.")
    return Failpoint(text)


class DriverTable:
    """The state table as one driver sees it; once the driver is dead, every call fails.

    Code that still runs in the process after that (`finally`, `with`) would otherwise tidy up, which a killed driver
    never does. `close` does nothing, because the table belongs to the test.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.is_dead = False
        self.is_used = False

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""
        return self._reached().get(keys)

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
        return self._reached().query(pk, prefix=prefix, after=after, until=until, reverse=reverse, limit=limit)

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.scan`."""
        return self._reached().scan(prefix, names=names)

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""
        self._reached().transact(operations, token=token)

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`."""
        return self._reached().create(settings)

    def settings(self) -> FoundSettings | None:
        """See `Table.settings`."""
        return self._reached().settings()

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        return self._table.describe()

    def close(self) -> None:
        """Leave the table open."""

    def _reached(self) -> Table:
        self.is_used = True
        if self.is_dead:
            raise StoreUnavailableError(
                "this driver has died, because the test asked for it, and reaches its store no more. Nothing was "
                "changed. What the next run does is what the test is about."
            )
        return self._table
