"""Load the history of a job once, for all that a change decides on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.timeline import Ancestry, Timeline, ancestry_after
from airflow_bookmarks.store.transitions.collection import collected_in, copied_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run, RunKey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch


@dataclass(frozen=True, eq=False)
class HistorySnapshot:
    """The history of a job that belongs to one head. What it is asked for is read when first needed, and then kept.

    What a change decides on it holds only while nothing moves; the transaction of the change proves that.
    """

    store: BookmarkStore
    job: str
    head: Head
    _runs: dict[tuple[int, int], list[tuple[RunKey, Run | StateCorruptError]]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def load(cls, store: BookmarkStore, job: str) -> HistorySnapshot:
        """Read the head of a job, and then its index entry, so that nothing that the entry says is older than the head.

        Raises:
            JobUnknownError: this namespace has no bookmark of that name. StateCorruptError: its index entry is gone.
        """
        history = cls(store, job, store.head(job))
        collected_in(store, job, history._entry)
        return history

    @cached_property
    def _entry(self) -> Mapping[str, object] | None:
        return self.store.index_entry(self.job)

    @cached_property
    def collected(self) -> int:
        """The number up to which runs may be gone; 0 if all are there. A change proves it with `collection_check`."""
        return collected_in(self.store, self.job, self._entry)

    @cached_property
    def copied(self) -> int:
        """The number up to which runs came with an import; 0 if all were made here."""
        return copied_in(self.store, self.job, self._entry)

    @cached_property
    def lines(self) -> tuple[Timeline, ...]:
        """The lines of the job, oldest first; the first one (epoch 1) has no item."""
        return tuple(self.store.lines(self.job)) if self.head.epoch > 1 else ()

    @cached_property
    def living(self) -> Ancestry:
        """The history that is present now."""
        return Ancestry.of(self.head.epoch, self.lines)

    def after(self, parent: int | None, kept: int) -> Ancestry:
        """Return which runs are history after a switch to `kept` of the line `parent` (None: of the present one)."""
        return ancestry_after(self.head.epoch, self.lines, self.head.run_number, parent=parent, kept=kept)

    def after_switch(self, switch: TimelineSwitch) -> Ancestry:
        """Return which runs are history after a switch."""
        return self.after(switch.parent, switch.kept)

    def runs_or_damage(self, after: int, until: int) -> list[tuple[RunKey, Run | StateCorruptError]]:
        """Return the run items with a number in (after, until], oldest first; the error of one that can't be read."""
        if after >= until:
            return []
        for (low, high), rows in self._runs.items():
            if low <= after and until <= high:
                return [(key, run) for key, run in rows if after < key.number <= until]
        rows = list(self.store.runs_or_damage(self.job, after=after, until=until))
        self._runs[after, until] = rows
        return rows

    def runs(self, after: int, until: int) -> Iterator[Run]:
        """Yield the runs with a number in (after, until], oldest first.

        Raises:
            StateCorruptError: one of them can't be read.
        """
        for _, run in self.runs_or_damage(after, until):
            if isinstance(run, StateCorruptError):
                raise run
            yield run

    def open_runs(self) -> list[Run]:
        """Return the runs that were planned and neither committed nor given up; all carry the next number."""
        number = self.head.run_number
        return [run for run in self.runs(number, number + 1) if run.state.is_open]
