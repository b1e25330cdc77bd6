"""A loop over the parts of a source, each read by a run of its own: what its runs share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.plan import PlanPart

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


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


@dataclass(slots=True)
class PartLoop:
    """What the runs of one loop share: which values were taken on, which of them failed, and whether any is left.

    Args:
        ctx: the context whose values they are.
    """

    ctx: str
    taken: set[PlanPart] = field(default_factory=set)
    failed: dict[PlanPart, Exception] = field(default_factory=dict)
    current: PlanPart | None = None  # of the run that is on; None: it has not planned one
    is_read: bool = False
    is_planned: bool = False
    is_over: bool = False

    def begin(self) -> None:
        """Begin another run of the loop."""
        self.current, self.is_read, self.is_planned = None, False, False

    def take(self, part: PlanPart | None, *, is_last: bool) -> None:
        """Take on a value, or none that is left; `is_last`: no other one follows."""
        self.current, self.is_planned, self.is_over = part, True, is_last
        if part is not None:
            self.taken.add(part)
