"""Edges: what a consumer has consumed of another job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
