"""The position of a context that reads an Iceberg table, and its plans, as they are stored.

A plan reads pieces, one after the other; mostly it is one:

    WholeTable      the table as of a snapshot
    AppendedRows    what the snapshots behind one, up to another, have appended
    ChangedRows     what they have changed
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.order import TIME, text_of_micros
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.deflated import deflated, inflated
from airflow_bookmarks.sources.tables.stored_body import decoded
from airflow_bookmarks.sources.tables.versioned import VersionOptions, total

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class IcebergRecipe:
    """Which table a run read, and how. `name` is its full name, with the catalog, `location` its folder."""

    name: str
    location: str
    options: VersionOptions = field(default_factory=VersionOptions)

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"name": self.name, "location": self.location, "options": self.options.stored()}

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> IcebergRecipe:
        """Return what `stored` returned."""
        return cls(values["name"], values["location"], VersionOptions.of_stored(values["options"]))


@dataclass(frozen=True, slots=True)
class IcebergPosition:
    """The snapshot up to which a table was read; None: it had none.

    `time_ms` is when the snapshot was committed, or for none the time of nothing: 0.
    """

    snapshot: int | None
    time_ms: int = 0

    def stored(self) -> list[Any]:
        """Return it as plain values. An id has up to 19 digits, which other readers of JSON round: it is text."""
        return [None if self.snapshot is None else str(self.snapshot), self.time_ms]

    @classmethod
    def of_stored(cls, values: Sequence[Any]) -> IcebergPosition:
        """Return what `stored` returned."""
        snapshot, time_ms = values
        return cls(None if snapshot is None else int(snapshot), int(time_ms))

    def encode(self) -> bytes:
        """Return it as stored."""
        return deflated({"version": _FORMAT, "at": self.stored()})

    @classmethod
    def decode(cls, body: bytes) -> IcebergPosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        return _decoded(body, "position", lambda values: cls.of_stored(values["at"]))

    def position(self) -> Position:
        """Return it for the lifecycle: its watermark is the time of its commit."""
        watermark = None if self.snapshot is None else text_of_micros(self.time_ms * 1000)
        return Position(self.encode(), watermark, order=TIME)

    def __str__(self) -> str:
        return "no snapshot" if self.snapshot is None else f"snapshot {self.snapshot}"


# ---- pieces


@dataclass(frozen=True, slots=True)
class WholeTable:
    """The table as of a snapshot."""

    snapshot: int

    def stored(self) -> list[str]:
        """Return it as plain values."""
        return ["whole", str(self.snapshot)]

    @property
    def needed(self) -> int:
        """The snapshot that has to be kept for it."""
        return self.snapshot


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """What the snapshots behind `start`, up to `end`, have appended."""

    start: int
    end: int

    def stored(self) -> list[str]:
        """Return it as plain values."""
        return ["appended", str(self.start), str(self.end)]

    @property
    def needed(self) -> int:
        """The snapshot that has to be kept for it, with all from `start` on."""
        return self.end


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What the snapshots behind `start`, up to `end`, have changed."""

    start: int
    end: int

    def stored(self) -> list[str]:
        """Return it as plain values."""
        return ["changed", str(self.start), str(self.end)]

    @property
    def needed(self) -> int:
        """The snapshot that has to be kept for it, with all from `start` on."""
        return self.end


TablePiece: TypeAlias = WholeTable | AppendedRows | ChangedRows


def _piece(values: Sequence[Any]) -> TablePiece:
    name, *rest = values
    ids = list(map(int, rest))
    if name == "whole":
        return WholeTable(*ids)
    if name == "appended":
        return AppendedRows(*ids)
    if name == "changed":
        return ChangedRows(*ids)
    raise ValueError(f"{name!r} is no piece of a plan")


# ---- plans


@dataclass(frozen=True, slots=True)
class IcebergPlan:
    """What a run reads of a table.

    `leads_to` is the position behind it, None for a plan over nothing. `after` is the position before, None where there
    was none. `is_anew` tells that the table is read whole because it was changed. `files`, `size_bytes` and `rows` are
    those that it reads; None: not known.
    """

    recipe: IcebergRecipe
    pieces: tuple[TablePiece, ...]
    leads_to: IcebergPosition | None
    after: IcebergPosition | None = None
    files: int = 0
    size_bytes: int | None = None
    rows: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    has_more: bool = False
    read_again: int = 0
    is_anew: bool = False
    edge: None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return not self.pieces

    @property
    def amount(self) -> Amount:
        """How many files of the table there are to read."""
        return Amount(FILES, self.files, self.size_bytes, self.rows)

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it. Ids of snapshots are text: a browser would round them."""
        return {
            **self.amount.stats(),
            **({} if self.rows is None else {"planned_rows": self.rows}),
            "skipped": dict(self.skipped),
            "snapshot_after": _id_of(self.after),
            "snapshot_until": _id_of(self.leads_to),
            "table": self.recipe.name,
            **({"read_anew": True} if self.is_anew else {}),
        }

    def summary(self) -> str:
        """Return it as one line for a log."""
        what = counted(self.files, "file")
        if self.after is None or self.is_anew:
            anew = " anew, because it was changed" if self.is_anew else ""
            return f"processing {what} of the table as of {self.leads_to or 'no snapshot'}{anew}"
        feed = " of changes" if any(isinstance(piece, ChangedRows) for piece in self.pieces) else ""
        return f"processing {what}{feed} behind {self.after} up to {self.leads_to}"

    def encode(self) -> bytes:
        """Return it as stored."""
        return deflated(
            {
                "version": _FORMAT,
                "recipe": self.recipe.stored(),
                "pieces": [piece.stored() for piece in self.pieces],
                "leads_to": None if self.leads_to is None else self.leads_to.stored(),
                "after": None if self.after is None else self.after.stored(),
                "amount": [self.files, self.size_bytes, self.rows],
                "skipped": dict(self.skipped),
                "has_more": self.has_more,
                "read_again": self.read_again,
                "is_anew": self.is_anew,
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> IcebergPlan:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> IcebergPlan:
            leads_to, after, (files, size_bytes, rows) = values["leads_to"], values["after"], values["amount"]
            return cls(
                IcebergRecipe.of_stored(values["recipe"]),
                tuple(map(_piece, values["pieces"])),
                None if leads_to is None else IcebergPosition.of_stored(leads_to),
                None if after is None else IcebergPosition.of_stored(after),
                files,
                size_bytes,
                rows,
                values["skipped"],
                values["has_more"],
                values["read_again"],
                values["is_anew"],
            )

        return _decoded(body, "plan", read)

    def position_from(self, found: bytes | None) -> Position | None:
        """Return the position behind it, where that is another one than what was `found`."""
        if self.leads_to is None or (found is not None and IcebergPosition.decode(found) == self.leads_to):
            return None
        return self.leads_to.position()


def united(plans: Sequence[IcebergPlan]) -> IcebergPlan:
    """Return one plan that reads what some plans have read, oldest first."""
    if not plans:
        return IcebergPlan(IcebergRecipe("", ""), (), None)
    read = [plan for plan in plans if not plan.is_empty]
    return replace(
        plans[-1],
        pieces=tuple(_joined(list(itertools.chain.from_iterable(plan.pieces for plan in read)))),
        after=plans[0].after,
        files=sum(plan.files for plan in read),
        size_bytes=total([plan.size_bytes for plan in read]),
        rows=total([plan.rows for plan in read]),
        skipped={},
        has_more=False,
        read_again=0,
        is_anew=False,
    )


def _joined(pieces: Sequence[TablePiece]) -> list[TablePiece]:
    """Return pieces with neighbours joined where one read does for both."""
    joined: list[TablePiece] = []
    for piece in pieces:
        before = joined[-1] if joined else None
        if (
            before is not None
            and not isinstance(before, WholeTable)
            and not isinstance(piece, WholeTable)
            and type(before) is type(piece)
            and before.end == piece.start
        ):
            joined[-1] = replace(before, end=piece.end)
        else:
            joined.append(piece)
    return joined


def _id_of(position: IcebergPosition | None) -> str | None:
    return None if position is None or position.snapshot is None else str(position.snapshot)


def _decoded(body: bytes, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    what = f"{what} of an Iceberg table"
    return decoded(what, _FORMAT, lambda: inflated(body, what), read)
