"""What a benchmark has to report: figures, the lines they are held against, and counts that have to be right."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.chart import Chart, draw_all
from benchmarks.figure import Figure, line


@dataclass(frozen=True, slots=True)
class Line:
    """A promise: a figure, and what it may be at most (of a ratio of speeds: has to be at least)."""

    promise: str
    found: float
    allowed: float
    unit: str
    is_least: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether the figure is on the right side."""
        return self.found >= self.allowed if self.is_least else self.found <= self.allowed

    def in_words(self) -> str:
        """Return it as a sentence."""
        bound = "at least" if self.is_least else "at most"
        kept = "kept" if self.is_kept else "BROKEN"
        return f"{kept}: {self.promise}: {self.found:,.2f} {self.unit}; {bound} {self.allowed:,.2f} are promised"


@dataclass(frozen=True, slots=True)
class Check:
    """A count, which no load of the machine can excuse."""

    what: str
    expected: int
    found: int

    def in_words(self) -> str:
        """Return it as a sentence."""
        return f"{self.what}: {self.found:,}, and {self.expected:,} was expected"


@dataclass
class Report:
    """What was found so far; each figure is printed when it is known."""

    figures: list[Figure] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    charts: dict[str, Chart] = field(default_factory=dict)

    def add(self, measure: str, case: str, unit: str, values: Sequence[float]) -> Figure:
        """Keep a figure, and print it."""
        figure = Figure.of(measure, case, unit, values)
        self.figures.append(figure)
        print(line(figure), flush=True)
        return figure

    def promise(self, line: Line) -> None:
        """Hold a figure against a line."""
        self.lines.append(line)

    def check(self, what: str, expected: int, found: int) -> None:
        """Hold a count against what it has to be."""
        self.checks.append(Check(what, expected, found))

    @property
    def wrong(self) -> Sequence[Check]:
        """The counts that are not what they have to be."""
        return [check for check in self.checks if check.expected != check.found]

    def write(self, folder: Path) -> None:
        """Write `report.json`, `report.md` and a picture of each chart."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
            **self.facts,
            "figures": [one.as_dict() for one in self.figures],
            "lines": [{**asdict(one), "is_kept": one.is_kept} for one in self.lines],
            "checks": [asdict(one) for one in self.checks],
            "charts": {name: chart.as_dict() for name, chart in self.charts.items()},
        }
        (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n")
        draw_all(self.charts, folder)
        (folder / "report.md").write_text("\n".join(self._markdown()) + "\n")

    def _markdown(self) -> Iterator[str]:
        yield "| what | whose | median | least | most | unit | rounds |"
        yield "|---|---|---:|---:|---:|---|---:|"
        for one in self.figures:
            values = " | ".join(f"{value:,.2f}" for value in (one.median, one.least, one.most))
            yield f"| {one.measure} | {one.case} | {values} | {one.unit} | {one.rounds} |"
        yield ""
        yield from (f"- {one.in_words()}" for one in self.lines)
        yield from (f"- WRONG: {one.in_words()}" for one in self.wrong)
        yield f"- {len(self.checks) - len(self.wrong)} of {len(self.checks)} counts are right"
        yield from (f"- {name}: {value}" for name, value in self.facts.items())
