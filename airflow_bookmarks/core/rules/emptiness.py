"""Decide which runs are empty, and which outputs a run without new input publishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

WhenEmpty = Literal["publish", "discard", "rows"]

WHEN_EMPTY = "when_empty"  # among what is stored with an output: the choice of its script


@dataclass(frozen=True, slots=True)
class Increment:
    """What a run found: whether it read any context, whether one had input, whether `job.state` has changed.

    `idle` are the contexts that had nothing, or left all of it to the next run. `state_changed` is None where the
    script did not ask for it. `leaves_input` is whether planned input, which may have been read, is left to the next
    run because it changed or went.
    """

    reads: bool
    has_input: bool
    state_changed: bool | None
    leaves_input: bool = False
    idle: frozenset[str] = frozenset()

    @property
    def is_without_input(self) -> bool:
        """Whether the run read contexts and none of them had anything: `when_empty` counts in such a run alone."""
        return self.reads and not self.has_input

    def publishes(
        self,
        *,
        rows: int | None,
        files: int,
        overwrites: bool,
        when_empty: str | None,
        made_from: Sequence[str] = (),
    ) -> bool:
        """Decide whether what is staged for an output is published.

        Rows are published, because they were made of something else. But if neither a context nor `job.state` moved,
        the next run can make them again, while an overwrite would delete what can't be made again: it is left out. So
        are rows that the next run makes anew, because it reads the same input. An output without rows would add
        nothing, or wipe its target, and is left out too. With "rows" its rows alone decide, in any run; those that the
        next run makes anew are left out all the same.

        Args:
            rows: how many rows are staged; None: not known, then any staged file counts as one with rows.
            files: how many files are staged.
            overwrites: whether the publish deletes what it replaces.
            when_empty: what the script says; None: nothing.
            made_from: the contexts that it was made from, as far as that is known.
        """
        has_rows = files > 0 if rows is None else rows > 0
        if when_empty == "rows":
            return has_rows and not (self.is_without_input and self.leaves_input)
        if not self.is_without_input:
            is_of_idle = bool(made_from) and self.idle.issuperset(made_from)
            return has_rows or not is_of_idle or when_empty == "publish"
        if when_empty is not None:
            return when_empty == "publish"
        return has_rows and (bool(self.state_changed) or not (overwrites or self.leaves_input))

    def is_empty(self, *, publishes: bool) -> bool:
        """Decide whether the run is empty: nothing moved, and it publishes nothing.

        A run that asked for nothing, neither a context nor `job.state`, is not empty: what it did is not known here.
        """
        asks = self.reads or self.state_changed is not None
        return asks and not (self.has_input or self.state_changed or publishes)
