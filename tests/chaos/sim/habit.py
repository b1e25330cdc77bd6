"""How a job of a world reads: bounds, batches, late files, and files that went meanwhile.

Drawn apart from all else, so that a world is the same without its habits: those are `Settings.plain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.lifecycle.state.verification import OnMissing
from airflow_bookmarks.sources.files.options import FileOptions

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Habit:
    """What a script says where it reads; an upstream knows no late files."""

    bound: Bound = UNBOUND
    in_batches: bool = False
    late_after: timedelta | None = None
    on_missing: OnMissing = "error"

    @classmethod
    def of(cls, random: Random, *, is_consumer: bool, appends: bool) -> Habit:
        """Draw one; batches are for those that append alone."""
        bound = random.choice(_bounds(is_consumer)) if random.random() < 0.5 else UNBOUND
        in_batches = appends and bound.is_given and random.random() < 0.6
        if is_consumer:
            return cls(bound, in_batches)
        late_after = random.choice([6 * HOUR, 20 * HOUR, 60 * HOUR]) if random.random() < 0.4 else None
        return cls(bound, in_batches, late_after, "skip" if random.random() < 0.4 else "error")

    @property
    def options(self) -> FileOptions:
        """What a source of files is told."""
        return FileOptions(bound=self.bound, late_after=self.late_after)

    @property
    def late_after_ms(self) -> int | None:
        return self.options.late_after_ms


PLAIN = Habit()


def _bounds(is_consumer: bool) -> list[Bound]:
    if is_consumer:
        return [Bound(max_files=1), Bound(max_files=3), Bound(max_rows=2)]
    return [Bound(max_files=1), Bound(max_files=2), Bound(max_bytes=230), Bound(window=HOUR)]
