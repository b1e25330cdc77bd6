"""Figures of a benchmark: what was measured so many times, with its middle and its ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table: the median of what was measured, its least and its most, and how often it was measured."""

    measure: str
    case: str
    unit: str
    median: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, measure: str, case: str, unit: str, values: Sequence[float]) -> Figure:
        """Make a figure of values; there has to be one at least."""
        return cls(measure, case, unit, median(values), min(values), max(values), len(values))

    def as_dict(self) -> dict[str, Any]:
        """Return it as it stands in the file of results."""
        return asdict(self)


def beside(
    measure: str, unit: str, ours: tuple[str, Sequence[float]], plain: tuple[str, Sequence[float]]
) -> list[Figure]:
    """Return two series that were measured in turns as figures: each by itself, then difference and ratio by pairs."""
    pairs = list(zip(ours[1], plain[1], strict=True))
    return [
        Figure.of(measure, plain[0], unit, plain[1]),
        Figure.of(measure, ours[0], unit, ours[1]),
        Figure.of(measure, "difference", unit, [one - other for one, other in pairs]),
        Figure.of(measure, "ratio", "times", [one / other for one, other in pairs]),
    ]


_COLUMNS = (("measure", 46), ("case", 28), ("median", 11), ("least", 11), ("most", 11), ("unit", 9), ("rounds", 6))


def header() -> str:
    """Return the head of the table."""
    return " ".join(name.ljust(width) for name, width in _COLUMNS).rstrip()


def line(figure: Figure) -> str:
    """Return a figure as a line of the table."""
    values = figure.as_dict()
    return " ".join(_cell(values[name]).ljust(width) for name, width in _COLUMNS).rstrip()


def _cell(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
