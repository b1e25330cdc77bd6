"""Edges: how far a consumer has read another job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.run import Run


@dataclass(frozen=True, slots=True)
class Edge:
    """Consumer C has consumed job J up to run `run_number`, seen in epoch `epoch` with J's change count `changes`.

    One edge per upstream and consumer. `contexts` maps each of the consumer's contexts that reads this upstream to the
    run number up to which it has read; `run_number` is the lowest of them.
    """

    consumer: str
    run_number: int
    epoch: int
    changes: int
    contexts: Mapping[str, int] = field(default_factory=dict)
    updated_at: str | None = None

    @property
    def highest(self) -> int:
        """The highest run that any of the consumer's contexts has read; `run_number` is the lowest."""
        return max([self.run_number, *self.contexts.values()])


def lowest_replayed(runs: Iterable[Run], changes: int) -> Run | None:
    """Return the first of `runs` (those consumed, oldest first) that was replayed after the change count was `changes`.

    A run keeps the count that its last replay gave the job.
    """
    return next((run for run in runs if run.state.is_committed and run.revision > 0 and run.changes > changes), None)
