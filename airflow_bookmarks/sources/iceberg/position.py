"""The position of a context that reads an Iceberg table, and its plans, as they are stored.

A plan reads pieces, one after the other; mostly it is one:

    WholeTable      the table as of a snapshot
    AppendedRows    what the snapshots behind one, up to another, have appended
    ChangedRows     what they have changed

Of the first two a run may read the rows of one value of a column alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.order import TIME, text_of_micros
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.deflated import deflated, inflated
from airflow_bookmarks.sources.part_loop import PartsLeft
from airflow_bookmarks.sources.tables.stored_body import decoded
from airflow_bookmarks.sources.tables.versioned import VersionOptions, total

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

_FORMAT = 1
_WITH_PARTS = 2  # which a version that knows no parts must not read: it would take what is left for read


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

    `time_ms` is when the snapshot was committed, or for none the time of nothing: 0. `parts` are the values of a column
    that are not read so far, each with the position up to which it is; None: all are.
    """

    snapshot: int | None
    time_ms: int = 0
    parts: PartsLeft[IcebergPosition] | None = None

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
        if self.parts is None:
            return deflated({"version": _FORMAT, "at": self.stored()})
        return deflated(
            {"version": _WITH_PARTS, "at": self.stored(), "left": self.parts.stored(IcebergPosition.stored)}
        )

    @classmethod
    def decode(cls, body: bytes) -> IcebergPosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> IcebergPosition:
            left = PartsLeft.of_stored(values.get("left"), cls.of_stored)
            return replace(cls.of_stored(values["at"]), parts=left)

        return _decoded(body, "position", read)

    def position(self) -> Position:
        """Return it for the lifecycle: its watermark is the time of the commit up to which all values are read."""
        marks = [self] if self.parts is None else list(self.parts.marks.values())
        times = [None if mark is None or mark.snapshot is None else mark.time_ms for mark in marks]
        read = [time for time in times if time is not None]
        watermark = text_of_micros(min(read) * 1000) if read and len(read) == len(times) else None
        return Position(self.encode(), watermark, order=TIME)

    def __str__(self) -> str:
        return "no snapshot" if self.snapshot is None else f"snapshot {self.snapshot}"


# ---- pieces


@dataclass(frozen=True, slots=True)
class WholeTable:
    """The table as of a snapshot; `part`: the rows of one value of a column."""

    snapshot: int
    part: PlanPart | None = None

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return ["whole", str(self.snapshot), *_stored_part(self.part)]

    @property
    def needed(self) -> int:
        """The snapshot that has to be kept for it."""
        return self.snapshot


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """What the snapshots behind `start`, up to `end`, have appended; `part`: the rows of one value of a column."""

    start: int
    end: int
    part: PlanPart | None = None

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return ["appended", str(self.start), str(self.end), *_stored_part(self.part)]

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


def _stored_part(part: PlanPart | None) -> list[Any]:
    return [] if part is None else [[part.column, part.value]]


TablePiece: TypeAlias = WholeTable | AppendedRows | ChangedRows


def _piece(values: Sequence[Any]) -> TablePiece:
    name, *rest = values
    part = PlanPart(*rest.pop()) if isinstance(rest[-1], list) else None
    if name == "whole":
        return WholeTable(int(rest[0]), part)
    if name in ("appended", "changed"):
        start, end = map(int, rest)
        return AppendedRows(start, end, part) if name == "appended" else ChangedRows(start, end)
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
    files: int | None = 0
    size_bytes: int | None = None
    rows: int | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    has_more: bool = False
    read_again: int = 0
    is_anew: bool = False
    part: PlanPart | None = None
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
            **({} if self.part is None else {"part": str(self.part)}),
        }

    def summary(self) -> str:
        """Return it as one line for a log."""
        number = "an unknown number of files" if self.files is None else counted(self.files, "file")
        what = number + ("" if self.part is None else f" of {self.part}")
        if self.after is None or self.is_anew:
            anew = " anew, because it was changed" if self.is_anew else ""
            return f"processing {what} of the table as of {self.leads_to or 'no snapshot'}{anew}"
        feed = " of changes" if any(isinstance(piece, ChangedRows) for piece in self.pieces) else ""
        return f"processing {what}{feed} behind {self.after} up to {self.leads_to}"

    def encode(self) -> bytes:
        """Return it as stored."""
        return deflated(
            {
                "version": _FORMAT if self.recipe.options.per is None else _WITH_PARTS,
                **({} if self.part is None else {"part": [self.part.column, self.part.value]}),
                "recipe": self.recipe.stored(),
                "pieces": [piece.stored() for piece in self.pieces],
                "leads_to": None if self.leads_to is None else self.leads_to.stored(),
                **self._stored_left(),
                "after": None if self.after is None else self.after.stored(),
                "amount": [self.files, self.size_bytes, self.rows],
                "skipped": dict(self.skipped),
                "has_more": self.has_more,
                "read_again": self.read_again,
                "is_anew": self.is_anew,
            }
        )

    def _stored_left(self) -> dict[str, Any]:
        left = None if self.leads_to is None else self.leads_to.parts
        return {} if left is None else {"left": left.stored(IcebergPosition.stored)}

    @classmethod
    def decode(cls, body: bytes) -> IcebergPlan:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> IcebergPlan:
            leads_to, after, (files, size_bytes, rows) = values["leads_to"], values["after"], values["amount"]
            left = PartsLeft.of_stored(values.get("left"), IcebergPosition.of_stored)
            return cls(
                IcebergRecipe.of_stored(values["recipe"]),
                tuple(map(_piece, values["pieces"])),
                None if leads_to is None else replace(IcebergPosition.of_stored(leads_to), parts=left),
                None if after is None else IcebergPosition.of_stored(after),
                files,
                size_bytes,
                rows,
                values["skipped"],
                values["has_more"],
                values["read_again"],
                values["is_anew"],
                None if values.get("part") is None else PlanPart(*values["part"]),
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
        files=total([plan.files for plan in read]),
        size_bytes=total([plan.size_bytes for plan in read]),
        rows=total([plan.rows for plan in read]),
        skipped={},
        has_more=False,
        read_again=0,
        is_anew=False,
        part=None,
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
            and _part_of(before) == _part_of(piece)
            and before.end == piece.start
        ):
            joined[-1] = replace(before, end=piece.end)
        else:
            joined.append(piece)
    return joined


def _part_of(piece: TablePiece) -> PlanPart | None:
    return None if isinstance(piece, ChangedRows) else piece.part


def _id_of(position: IcebergPosition | None) -> str | None:
    return None if position is None or position.snapshot is None else str(position.snapshot)


def _decoded(body: bytes, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    what = f"{what} of an Iceberg table"
    return decoded(what, _WITH_PARTS, lambda: inflated(body, what), read)
