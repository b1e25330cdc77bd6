"""Watermarks that a run has added and not committed: the commit makes them visible, together with the rows.

add_watermark   kept in `job.state`, seen by this run alone
job.commit      the positions, the staged rows and `job.state` take effect together
then            each is written to its table
a death here    the next run of the job writes it, when its script first asks the table for anything
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from airflow_bookmarks.glue.watermarks.values import AttributeValue

STATE = "glue.watermarks"  # the value of `job.state`

_TABLE, _REGION, _ITEM = "table", "region", "item"

Item = Mapping[str, AttributeValue]
Write = Callable[[Item], None]


class WatermarkTable(NamedTuple):
    """The table of a watermark."""

    table: str
    region: str


class WatermarkState(Protocol):
    """A JSON value that the job keeps from run to run."""

    def get(self, default: Any = None) -> Any:
        """Return the value; `default` if there is none."""
        ...

    def set(self, value: Any) -> None:
        """Set the value that the commit stores."""
        ...


class AddedWatermark(NamedTuple):
    """A watermark that this run has added: where, its item as DynamoDB takes it, and what writes it there."""

    place: WatermarkTable
    item: Item
    write: Write


class KeptWatermarks:
    """The watermarks that one run keeps until its commit.

    Args:
        state: returns a value that the job keeps from run to run, by its name.
    """

    def __init__(self, state: Callable[[str], WatermarkState]) -> None:
        self._state = state
        self._added: list[AddedWatermark] = []
        self._left: Sequence[Mapping[str, Any]] | None = None  # by the run before; None: not looked at yet
        self._settled: set[WatermarkTable] = set()
        self._lock = threading.RLock()  # scripts work on several tables in several threads

    def settle(self, place: WatermarkTable, write: Write) -> None:
        """Write what an earlier run has committed for a table, and may not have come to write; once in a run."""
        with self._lock:
            if place in self._settled:
                return
            for entry in self._left_by_the_last():
                if _place(entry) == place:
                    write(entry[_ITEM])
            self._settled.add(place)

    def add(self, added: AddedWatermark) -> None:
        """Keep a watermark.

        Raises:
            OptionError: `job.state` would have more than 16 KB. Nothing was kept.
        """
        with self._lock:
            others = [entry for entry in self._left_by_the_last() if _place(entry) not in self._settled]
            own = [{**each.place._asdict(), _ITEM: dict(each.item)} for each in (*self._added, added)]
            self._state(STATE).set([*others, *own])
            self._added.append(added)

    def of(self, place: WatermarkTable) -> list[Item]:
        """Return the items that this run has added to a table, in their order."""
        with self._lock:
            return [each.item for each in self._added if each.place == place]

    def write(self) -> None:
        """Write what was added to its tables: the run is committed."""
        with self._lock:
            while self._added:
                self._added[0].write(self._added[0].item)
                del self._added[0]

    def _left_by_the_last(self) -> Sequence[Mapping[str, Any]]:
        if self._left is None:
            self._left = list(self._state(STATE).get([]))
        return self._left


def _place(entry: Mapping[str, Any]) -> WatermarkTable:
    return WatermarkTable(entry[_TABLE], entry[_REGION])
