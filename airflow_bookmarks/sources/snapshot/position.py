"""The position of a context that compares snapshots, and its plans, as they are stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_bookmarks.core.amount import ROWS, Amount
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts, TableSnapshot
from airflow_bookmarks.sources.tables.stored_body import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_VERSION = 1


@dataclass(frozen=True, slots=True)
class SnapshotPosition:
    """The snapshot up to which changes were read, by which keys; `identity` is that of the server, if it tells one."""

    keys: tuple[str, ...]
    snapshot: TableSnapshot
    identity: str | None = None

    def encode(self) -> bytes:
        """Return it as stored."""
        return _encoded({"keys": list(self.keys), "snapshot": self.snapshot.stored(), "identity": self.identity})

    @classmethod
    def decode(cls, body: bytes) -> SnapshotPosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> SnapshotPosition:
            return cls(tuple(values["keys"]), TableSnapshot.of_stored(values["snapshot"]), values["identity"])

        return _decoded(body, "position", read)

    def position(self, before: TableSnapshot | None) -> Position:
        """Return it for the lifecycle, with the time of the snapshot as its watermark.

        It keeps the snapshot `before` as well, with which the plan that leads here compares: a replay reads both.
        """
        kept = (self.snapshot.uri, *([] if before is None or before == self.snapshot else [before.uri]))
        return Position(self.encode(), self.snapshot.taken_at, order=TIME, artifacts=kept)


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """The changes from one snapshot to another one.

    `before` None: there was none, and each row is an insert. Where both are the same nothing is read. `leads_to` holds
    the later one. `counts` None: the plan covers several runs, and what is left of their changes was not counted.
    """

    before: TableSnapshot | None
    leads_to: SnapshotPosition | None
    counts: ChangeCounts | None
    skipped: Mapping[str, int] = field(default_factory=dict)
    has_more: bool = False
    read_again: int = 0
    edge: None = None

    @property
    def after(self) -> TableSnapshot | None:
        """The later snapshot; None for a plan over nothing."""
        return None if self.leads_to is None else self.leads_to.snapshot

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which a row is the same one; none: all of them."""
        return () if self.leads_to is None else self.leads_to.keys

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed."""
        return self.after == self.before or (self.counts is not None and self.counts.total == 0)

    @property
    def snapshots(self) -> tuple[TableSnapshot, ...]:
        """The snapshots that a frame reads."""
        return () if self.is_empty else tuple(each for each in (self.before, self.after) if each is not None)

    @property
    def amount(self) -> Amount:
        """How many rows have changed."""
        return Amount(ROWS, None if self.counts is None else self.counts.total)

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it."""
        counts = self.counts
        changes = {} if counts is None else {
            "inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted
        }  # fmt: skip
        return {
            **self.amount.stats(),
            **changes,
            "skipped": dict(self.skipped),
            "keys": list(self.keys),
            "table_rows": None if self.after is None else self.after.rows,
            "compared_with": None if self.before is None else self.before.taken_at,
        }

    def summary(self) -> str:
        """Return it as one line for a log."""
        rows = 0 if self.after is None else self.after.rows
        if self.counts is None:
            return f"processing what changed over several runs in a table of {rows:,} rows"
        counts = self.counts
        return (
            f"processing {counts.total:,} changes ({counts.inserted:,} inserted, {counts.updated:,} updated, "
            f"{counts.deleted:,} deleted) in a table of {rows:,} rows"
        )

    def encode(self) -> bytes:
        """Return it as stored."""
        counts = self.counts
        return _encoded(
            {
                "before": None if self.before is None else self.before.stored(),
                "leads_to": None if self.leads_to is None else self.leads_to.encode().decode(),
                "counts": None if counts is None else [counts.inserted, counts.updated, counts.deleted],
                "skipped": dict(self.skipped),
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> SnapshotPlan:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> SnapshotPlan:
            before, leads_to, counts = values["before"], values["leads_to"], values["counts"]
            return cls(
                None if before is None else TableSnapshot.of_stored(before),
                None if leads_to is None else SnapshotPosition.decode(leads_to.encode()),
                None if counts is None else ChangeCounts(*counts),
                values["skipped"],
            )

        return _decoded(body, "plan", read)

    def position_from(self, found: bytes | None) -> Position | None:
        """Return the position behind it, where that is another one than what was `found`."""
        if self.leads_to is None or (found is not None and SnapshotPosition.decode(found) == self.leads_to):
            return None
        return self.leads_to.position(self.before)


def _encoded(values: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **values}, ensure_ascii=False).encode()


def _decoded(body: bytes, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    what = f"{what} of a compared table"
    return decoded(what, _VERSION, lambda: json.loads(body), read)
