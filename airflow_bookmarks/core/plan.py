"""Plans: exactly what a run will read from one context, fixed and stored before the first byte is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.amount import Amount


class Plan(Protocol):
    """What a run reads from one context, of any kind of source: the interface that all callers use."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether a bound left something to the next run."""
        ...

    @property
    def edge(self) -> UpstreamWindow | None:
        """The runs of another job that it covers; None if it reads no job."""
        ...

    @property
    def amount(self) -> Amount:
        """How much there is to read."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """How much is neither known nor planned, by reason."""
        ...

    @property
    def read_again(self) -> int:
        """How much of it was read before."""
        ...

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it: plain JSON values, the amount as `Amount.stats` has it."""
        ...

    def summary(self) -> str:
        """Return it as one line for a log."""
        ...

    def encode(self) -> bytes:
        """Return it as stored; its kind reads it back."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamWindow:
    """Which runs of another job a plan covers: (`after`, `until`], as seen in `epoch` with `changes`.

    `runs` are (run number, revision) pairs, ascending. `replaced` counts files of these runs that a later published run
    has overwritten: they are not part of the plan.
    """

    job: str
    output: str
    after: int
    until: int
    epoch: int
    changes: int
    runs: tuple[tuple[int, int], ...] = ()
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One part of a source that a run reads by itself: the rows that have one value in a column, or one partition.

    `value` is its exact text; None: NULL.

    Example:
        >>> str(PlanPart("region", "eu")), str(PlanPart("region", None))
        ("region='eu'", 'region=NULL')
    """

    column: str
    value: str | None

    def __str__(self) -> str:
        return f"{self.column}={'NULL' if self.value is None else repr(self.value)}"
