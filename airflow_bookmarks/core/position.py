"""Positions: where a context stands after a run. Edges: how far a consumer has read another job."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.order import later

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.order import Order
    from airflow_bookmarks.core.run import ContextState, Run

_MOST_BYTES = 65_536  # of a position in an upstream: two names and three numbers


@dataclass(frozen=True, slots=True)
class Position:
    """Where a context stands: `body` is what its source needs to go on, `watermark` what people can compare.

    `blobs` are bytes by content hash that `body` refers to and that are not stored yet. `keeps_watermark` tells that
    the watermark of the context stays as it is, whatever that is. `order` is how the watermark compares; None: as that
    of its kind, or as it looks. `artifacts` are the folders that belong to the position (a snapshot, a spool), by URI,
    each made by `PlanInput.new_artifact`: they stay as long as anything refers to the position, and then `gc` removes
    them. `set_aside` is how many files are in quarantine there; None: its kind sets none aside.
    """

    body: bytes
    watermark: str | None = None
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    keeps_watermark: bool = False
    order: Order | None = None
    artifacts: tuple[str, ...] = ()
    set_aside: int | None = None


@dataclass(frozen=True, slots=True)
class Greatest:
    """The greatest value of `column` among the rows that a run has read; None: there was none, or it is not known.

    `order` is how the values of the column compare, by its type; None: that is not known.
    """

    column: str
    value: str | None = None
    order: Order | None = None


def state_after(
    state: ContextState, position: Position, before: ContextState | None, greatest: Greatest | None
) -> ContextState:
    """Return where a context stands after a run, with its watermark.

    Args:
        state: kind, source and run of the context.
        position: where the run has left it; it says how its watermark compares.
        before: where it stood, if the run went on from there; else None.
        greatest: what was read of the column whose values are the watermark; None: the source tells its watermark.

    A watermark of another column, or of no column, says nothing of this one: the first value of the column replaces it.
    Until then there is none: a sensor that waits for a value of the column must not be released by the time of a file.
    """
    state = replace(state, artifacts=position.artifacts, set_aside=position.set_aside)
    if greatest is None:
        return replace(state, watermark=position.watermark, order=_name(position.order))
    is_same = before is not None and before.watermark_column == greatest.column
    mark = later(before.watermark, greatest.value, greatest.order) if before is not None and is_same else greatest.value
    order = before.order if before is not None and is_same and greatest.value is None else _name(greatest.order)
    return replace(state, watermark=mark, watermark_column=greatest.column, order=order)


def _name(order: Order | None) -> str | None:
    return None if order is None else order.name


@dataclass(frozen=True, slots=True)
class UpstreamPosition:
    """A consumer has read `job` up to run `run_number`, seen in `epoch` with `changes`."""

    job: str
    output: str
    run_number: int
    epoch: int
    changes: int

    def encode(self) -> bytes:
        """Return it as stored: a JSON object with exactly these names."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}, ensure_ascii=False).encode()

    @classmethod
    def decode(cls, body: bytes) -> UpstreamPosition:
        """Return what `encode` wrote.

        Raises:
            StateCorruptError: it is something else.
        """
        try:
            if len(body) > _MOST_BYTES:
                raise ValueError(f"it has {len(body):,} bytes")
            position = cls(**json.loads(body))
            numbers = (position.run_number, position.epoch, position.changes)
            if not all(isinstance(n, int) for n in numbers) or not all(
                isinstance(text, str) for text in (position.job, position.output)
            ):
                raise TypeError("a part of it is of another type")
            return position
        except (ValueError, TypeError, RecursionError) as error:
            raise StateCorruptError(
                f"a stored upstream position can't be read ({error}); nothing was changed"
            ) from error


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
