"""Charts of a benchmark: who took how much, over how many files or runs, as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter

_OURS = ("#1f6feb", "#0a3069", "#54aeff")
_OTHERS = ("#8c959f", "#bc4c00", "#57606a", "#9a6700")
_STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d0d7de",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
}

Points = dict[float, float]


@dataclass
class Chart:
    """One picture: for each case a line of points (x, y), or a bar where there is but one x.

    Cases that begin with "ours" have colours of their own. `scale` is that of both axes; a chart of bars has one axis.
    """

    title: str
    across: str
    up: str
    scale: Literal["log", "linear"] = "log"
    cases: dict[str, Points] = field(default_factory=dict)

    def point(self, case: str, x: float, y: float) -> None:
        """Add a point; a second one at the same x replaces it."""
        self.cases.setdefault(case, {})[x] = y

    def as_dict(self) -> dict[str, Any]:
        """Return it as it stands in the file of results."""
        return {
            "title": self.title,
            "across": self.across,
            "up": self.up,
            "cases": {case: sorted(points.items()) for case, points in self.cases.items()},
        }

    def draw(self, path: Path) -> None:
        """Write the picture."""
        with mpl.rc_context(_STYLE):
            canvas = Canvas(figsize=(7.2, 4.0), dpi=150, layout="constrained")
            axes = canvas.add_subplot()
            axes.set_title(self.title, loc="left", fontsize=11)
            if len({x for points in self.cases.values() for x in points}) == 1:
                self._draw_bars(axes)
            else:
                self._draw_lines(axes)
            canvas.savefig(path, metadata={"Software": None})

    def _draw_lines(self, axes: Any) -> None:
        for (case, points), colour in zip(self.cases.items(), _colours(list(self.cases)), strict=True):
            across = sorted(points)
            is_dense = len(across) > 20
            axes.plot(
                across,
                [points[x] for x in across],
                color=colour,
                linewidth=2 if _is_ours(case) else 1.4,
                marker=None if is_dense else "o",
                markersize=5,
                label=case,
            )
        axes.set_xscale(self.scale)
        axes.set_yscale(self.scale)
        axes.xaxis.set_major_formatter(FuncFormatter(_plain))
        axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        if self.scale == "linear":
            axes.set_ylim(bottom=0)
        axes.set_xlabel(self.across)
        axes.set_ylabel(self.up)
        axes.legend()

    def _draw_bars(self, axes: Any) -> None:
        cases = list(self.cases)
        values = [next(iter(self.cases[case].values())) for case in cases]
        bars = axes.barh(cases, values, color=_colours(cases), height=0.6)
        axes.bar_label(bars, labels=[f" {_plain(value)}" for value in values])
        axes.invert_yaxis()
        axes.set_xlim(right=max(values) * 1.15)
        axes.set_xlabel(self.up)
        axes.grid(visible=False, axis="y")


def draw_all(charts: Mapping[str, Chart], folder: Path) -> Sequence[Path]:
    """Draw each chart that has points to `<folder>/<name>.png`; return the files."""
    drawn = []
    for name, chart in charts.items():
        if chart.cases:
            path = folder / f"{name}.png"
            chart.draw(path)
            drawn.append(path)
    return drawn


def _is_ours(case: str) -> bool:
    return case.startswith("ours")


def _colours(cases: Sequence[str]) -> list[str]:
    ours, others = iter(_OURS * len(cases)), iter(_OTHERS * len(cases))
    return [next(ours) if _is_ours(case) else next(others) for case in cases]


def _plain(value: float, _: int | None = None) -> str:
    """Write a number as people do: 1,000,000 and 0.33."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".") if value >= 0.01 else f"{value:.3g}"
