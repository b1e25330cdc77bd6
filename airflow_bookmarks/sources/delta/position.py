"""The position of a context that reads a Delta table, and its plans, as they are stored.

A plan reads pieces, one after the other; mostly it is one:

    Whole     the table as of a version, by `versionAsOf`
    Added     some of its files, by an excerpt of its log
    Feed      the change feed of some versions, by `readChangeFeed`
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.deflated import deflated, inflated
from airflow_bookmarks.sources.delta.snapshot import TableState
from airflow_bookmarks.sources.part_loop import PartsLeft
from airflow_bookmarks.sources.tables.stored_body import decoded
from airflow_bookmarks.sources.tables.versioned import VersionOptions, total

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_bookmarks.sources.delta.commit import Action

T = TypeVar("T")

_FORMAT = 1
_WITH_PARTS = 2  # which a version that knows no parts must not read: it would take what is left for read


@dataclass(frozen=True, slots=True)
class DeltaRecipe:
    """Which table a run read, and how. `path` is its folder, `name` what the script called it."""

    path: str
    name: str
    options: VersionOptions = field(default_factory=VersionOptions)

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"path": self.path, "name": self.name, "options": self.options.stored()}

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> DeltaRecipe:
        """Return what `stored` returned."""
        return cls(values["path"], values["name"], VersionOptions.of_stored(values["options"]))


@dataclass(frozen=True, slots=True)
class DeltaPosition:
    """The version up to which a table was read.

    Attributes:
        version: The version.
        fingerprint: That of its commit, by which the same table is known again.
        state: What the table was then.
        files_read: Of a first read in several runs: how many files of that version were read; None: all.
        parts: The values of a partition column that are not read so far, with their versions; None: all are.
    """

    version: int
    fingerprint: str
    state: TableState
    files_read: int | None = None
    parts: PartsLeft[int] | None = None

    def stored(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **({} if self.parts is None else {"parts": self.parts.stored(int)}),
            "at": self.version,
            "fingerprint": self.fingerprint,
            "metadata": dict(self.state.metadata),
            "protocol": dict(self.state.protocol),
            "files_read": self.files_read,
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> DeltaPosition:
        """Return what `stored` returned."""
        state = TableState(values["metadata"], values["protocol"])
        parts = PartsLeft.of_stored(values.get("parts"), int)
        return cls(int(values["at"]), values["fingerprint"], state, values["files_read"], parts)

    def encode(self) -> bytes:
        """Return it as stored."""
        return deflated({"version": _FORMAT if self.parts is None else _WITH_PARTS, **self.stored()})

    @classmethod
    def decode(cls, body: bytes) -> DeltaPosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        return _decoded(body, "position", cls.of_stored)

    def position(self) -> Position:
        """Return it for the lifecycle; it has no watermark while files of its first version are left to read."""
        return Position(self.encode(), None if self.read_until is None else str(self.read_until), order=NUMBER)

    @property
    def read_until(self) -> int | None:
        """The version up to which all of the table is read; None while files of the first one are left."""
        if self.files_read is not None:
            return None
        marks = [self.version] if self.parts is None else list(self.parts.marks.values())
        return None if None in marks else min(mark for mark in marks if mark is not None)


# ---- pieces


@dataclass(frozen=True, slots=True)
class Whole:
    """The table as of a version."""

    version: int

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return ["whole", self.version]


@dataclass(frozen=True, slots=True)
class Added:
    """Some files of the table, with the columns of a version. `start` is the place of the first one among the files of
    that version, where a first read takes several runs; else they are what the versions up to it have appended.
    """

    version: int
    state: TableState
    files: tuple[Action, ...]
    start: int | None = None

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return [
            "added",
            self.version,
            dict(self.state.metadata),
            dict(self.state.protocol),
            list(self.files),
            self.start,
        ]


@dataclass(frozen=True, slots=True)
class Feed:
    """The change feed of the versions from `first` up to `last`."""

    first: int
    last: int

    def stored(self) -> list[Any]:
        """Return it as plain values."""
        return ["feed", self.first, self.last]


Piece: TypeAlias = Whole | Added | Feed


def _piece(values: Sequence[Any]) -> Piece:
    name, *rest = values
    if name == "added":
        version, metadata, protocol, files, start = rest
        return Added(int(version), TableState(metadata, protocol), tuple(files), start)
    if name == "feed":
        first, last = map(int, rest)
        return Feed(first, last)
    if name == "whole":
        return Whole(int(rest[0]))
    raise ValueError(f"{name!r} is no piece of a plan")


# ---- plans


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """What a run reads of a table.

    `leads_to` is the position behind it, None for a plan over nothing. `after` is the version that was read before,
    None where there was none. `is_anew` tells that the table is read whole because it was changed. `files`,
    `size_bytes` and `rows` are those that it reads; None: not known.
    """

    recipe: DeltaRecipe
    pieces: tuple[Piece, ...]
    leads_to: DeltaPosition | None
    after: int | None = None
    files: int = 0
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
        """Return what a person wants to know of it."""
        return {
            **self.amount.stats(),
            **({} if self.rows is None else {"planned_rows": self.rows}),
            "skipped": dict(self.skipped),
            "version_after": self.after,
            "version_until": None if self.leads_to is None else self.leads_to.version,
            "table": self.recipe.name,
            **({"read_anew": True} if self.is_anew else {}),
            **({} if self.part is None else {"part": str(self.part)}),
        }

    def summary(self) -> str:
        """Return it as one line for a log."""
        what = counted(self.files, "file") + ("" if self.part is None else f" of {self.part}")
        until = "no version" if self.leads_to is None else f"version {self.leads_to.version}"
        if self.after is None or self.is_anew:
            anew = " anew, because it was changed" if self.is_anew else ""
            return f"processing {what} of the table as of {until}{anew}"
        feed = " of the change feed" if any(isinstance(piece, Feed) for piece in self.pieces) else ""
        return f"processing {what}{feed} of versions ({self.after}, {until.removeprefix('version ')}]"

    def encode(self) -> bytes:
        """Return it as stored."""
        return deflated(
            {
                "version": _FORMAT if self.recipe.options.per is None else _WITH_PARTS,
                **({} if self.part is None else {"part": [self.part.column, self.part.value]}),
                "recipe": self.recipe.stored(),
                "pieces": [piece.stored() for piece in self.pieces],
                "leads_to": None if self.leads_to is None else self.leads_to.stored(),
                "after": self.after,
                "amount": [self.files, self.size_bytes, self.rows],
                "skipped": dict(self.skipped),
                "has_more": self.has_more,
                "read_again": self.read_again,
                "is_anew": self.is_anew,
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> DeltaPlan:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """

        def read(values: Mapping[str, Any]) -> DeltaPlan:
            leads_to, (files, size_bytes, rows) = values["leads_to"], values["amount"]
            return cls(
                DeltaRecipe.of_stored(values["recipe"]),
                tuple(map(_piece, values["pieces"])),
                None if leads_to is None else DeltaPosition.of_stored(leads_to),
                values["after"],
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
        if self.leads_to is None or (found is not None and DeltaPosition.decode(found) == self.leads_to):
            return None
        return self.leads_to.position()


def united(plans: Sequence[DeltaPlan]) -> DeltaPlan:
    """Return one plan that reads what some plans have read, oldest first."""
    if not plans:
        return DeltaPlan(DeltaRecipe("", ""), (), None)
    read = [plan for plan in plans if not plan.is_empty]
    pieces = _joined(list(itertools.chain.from_iterable(plan.pieces for plan in read)))
    return replace(
        plans[-1],
        pieces=tuple(pieces),
        after=plans[0].after,
        files=sum(plan.files for plan in read),
        size_bytes=total([plan.size_bytes for plan in read]),
        rows=total([plan.rows for plan in read]),
        skipped={},
        has_more=False,
        read_again=0,
        is_anew=False,
        part=None,
    )


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with neighbours joined where one read does for both."""
    joined: list[Piece] = []
    for piece in pieces:
        before = joined[-1] if joined else None
        if isinstance(before, Added) and isinstance(piece, Added):
            joined[-1] = replace(piece, files=(*before.files, *piece.files), start=before.start)
        elif isinstance(before, Feed) and isinstance(piece, Feed) and before.last + 1 == piece.first:
            joined[-1] = Feed(before.first, piece.last)
        else:
            joined.append(piece)
    return joined


def _decoded(body: bytes, what: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    what = f"{what} of a Delta table"
    return decoded(what, _WITH_PARTS, lambda: inflated(body, what), read)
