"""One advice: a fact about a job that costs it something, with the evidence and the measured cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from airflow_bookmarks.core.text.redaction import redacted

Figures: TypeAlias = Mapping[str, int | float | str | None]

LEAST_RUNS = 3  # that tell a habit, as `core.health.cadence` has it: one run, or two, may be an exception
MOST = 0.5  # the greater part: below it, the habit of a job is another one


class AdviceCode(StrEnum):
    """What an advice is about; stable, for programs."""

    DEEP_PARTITIONS = "deep-partitions"
    COARSE_PARTITIONS = "coarse-partitions"
    UNORDERED_PARTITIONS = "unordered-partitions"
    NO_PARTITION_FILTER = "no-partition-filter"
    NULLABLE_KEY = "nullable-key"
    UPDATED_KEY = "updated-key"


@dataclass(frozen=True, slots=True)
class Advice:
    """One advice on a context of a job.

    `what` is one sentence; `evidence` and `cost` are from the records of this job, and `action` says what to do.
    `figures` are the numbers in these, for programs; one that is not recorded is None.
    """

    code: AdviceCode
    ctx: str
    what: str
    evidence: str
    cost: str
    action: str
    figures: Figures = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "ctx": self.ctx,
            "code": self.code.value,
            "what": redacted(self.what),
            "evidence": redacted(self.evidence),
            "cost": self.cost,
            "action": self.action,
            "figures": dict(self.figures),
        }


def is_most(part: int, whole: int) -> bool:
    """Whether a part is at least half of a whole that is not empty.

    Example:
        >>> is_most(1, 2), is_most(1, 3), is_most(0, 0)
        (True, False, False)
    """
    return whole > 0 and part >= MOST * whole
