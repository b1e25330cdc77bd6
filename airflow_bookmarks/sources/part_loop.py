"""A loop over the parts of a source, each read by a run of its own: what its runs share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import PlanPart


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
