"""A loop over the parts of a source, each read by a run of its own: what its runs share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.plan import PlanPart

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

MOST_PARTS = 10_000  # values that a position names
_NAMED = 5  # values that an error names

M = TypeVar("M")


def left_behind(label: str, column: str, values: Collection[str | None], given: str) -> SourceError:
    """Return the error for a read by something else while values of a column are left.

    Args:
        label: what messages begin with.
        given: what this read has: "no per=".
    """
    named = [str(PlanPart(column, value)) for value in itertools.islice(values, _NAMED)]
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    return SourceError(
        f"{label}: {', '.join(named)}{more} are not read as far as the rest, and this read has {given}. Nothing was "
        f"read or changed. Read with per={column!r} until none is left; or set or reset the context."
    )


def check_not_too_many(label: str, column: str, values: Collection[str | None], news: str) -> None:
    """Make sure that a position can name the values of a column that are left.

    Args:
        label: what messages begin with.
        news: what they have: "new rows".

    Raises:
        SourceError: they are more than `MOST_PARTS`.
    """
    if len(values) > MOST_PARTS:
        raise SourceError(
            f"{label}: more than {MOST_PARTS:,} values of {column} have {news}, too many to name in the bookmark. "
            "Nothing was read or changed. Choose a column with fewer values, or read without per=..."
        )


def in_order(values: Collection[str | None]) -> list[str | None]:
    """Return values in the order in which a loop takes them on: that of their text, and NULL last.

    Example:
        >>> in_order([None, "us", "eu"])
        ['eu', 'us', None]
    """
    return sorted(values, key=lambda value: (value is None, value or ""))


def by_mark(marks: Mapping[str | None, M]) -> list[tuple[M, list[str | None]]]:
    """Return values as stored: most are left at one and the same mark, which is stored once.

    Example:
        >>> by_mark({"eu": 7, "us": 7, "asia": 3})
        [(7, ['eu', 'us']), (3, ['asia'])]
    """
    found: dict[M, list[str | None]] = {}
    for value, mark in marks.items():
        found.setdefault(mark, []).append(value)
    return list(found.items())


@dataclass(frozen=True, slots=True)
class PartsLeft(Generic[M]):
    """The values of a column that are not read up to the mark of a position, each with how far it is read.

    A mark is what the kind of source calls so: a key, a version, a snapshot; None: nothing of that value is read.
    `looked_by` is the execution that found them, whose next try reads these and looks for no others.
    """

    column: str
    looked_by: str
    marks: Mapping[str | None, M | None]

    def without(self, marks: Mapping[str | None, M | None]) -> PartsLeft[M] | None:
        """Return what is left if only `marks` are; None: nothing."""
        return replace(self, marks=marks) if marks else None

    def refused(self, label: str, given: str) -> SourceError:
        """Return the error for a read by something else while values are left: see `left_behind`."""
        return left_behind(label, self.column, self.marks, given)

    def stored(self, stored_mark: Callable[[M], Any]) -> dict[str, Any]:
        """Return it as plain values; `stored_mark` returns a mark as these."""
        marks = [[None if mark is None else stored_mark(mark), values] for mark, values in by_mark(self.marks)]
        return {"column": self.column, "looked_by": self.looked_by, "marks": marks}

    @classmethod
    def of_stored(cls, stored: Mapping[str, Any] | None, mark_of: Callable[[Any], M | None]) -> PartsLeft[M] | None:
        """Return what `stored` returned, None for None; `mark_of` returns a mark of its plain values."""
        if stored is None:
            return None
        marks = {value: None if mark is None else mark_of(mark) for mark, values in stored["marks"] for value in values}
        return cls(stored["column"], stored["looked_by"], marks)


@dataclass(slots=True)
class PartLoop:
    """What the runs of one loop share: which values were taken on, which of them failed, and whether any is left.

    Args:
        ctx: the context whose values they are.
        seen: what was found of parts of the source that never change, by the part.
    """

    ctx: str
    taken: set[PlanPart] = field(default_factory=set)
    failed: dict[PlanPart, Exception] = field(default_factory=dict)
    current: PlanPart | None = None  # of the run that is on; None: it has not planned one
    is_read: bool = False
    is_planned: bool = False
    is_over: bool = False
    seen: dict[Any, Any] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin another run of the loop."""
        self.current, self.is_read, self.is_planned = None, False, False

    def take(self, part: PlanPart | None, *, is_last: bool) -> None:
        """Take on a value, or none that is left; `is_last`: no other one follows."""
        self.current, self.is_planned, self.is_over = part, True, is_last
        if part is not None:
            self.taken.add(part)
