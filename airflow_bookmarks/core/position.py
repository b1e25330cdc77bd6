"""Positions: where a context stands after a run. Edges: how far a consumer has read another job."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_bookmarks.core.run import Run

_MOST_BYTES = 65_536  # of a position in an upstream: two names and three numbers


@dataclass(frozen=True, slots=True)
class Position:
    """Where a context stands: `body` is what its source needs to go on, `watermark` what people can compare.

    `blobs` are bytes by content hash that `body` refers to and that are not stored yet. `keeps_watermark` tells that
    the watermark of the context stays as it is, whatever that is.
    """

    body: bytes
    watermark: str | None = None
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    keeps_watermark: bool = False


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
