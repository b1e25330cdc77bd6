"""`docs/reference/compatibility.md`: the table of the matrix, written from what its tests came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.matrix.cells import Cell
    from tools.matrix.outcome import Outcome

_PYTHON = "3.11"
_HEAD = f"""# What runs on what

`make matrix` installs each combination of the table in an environment of its own, runs the tests there, and writes this
page. Where nothing else is said, Python is {_PYTHON}. A row is the Spark of a driver, a column what a worker or a
driver has besides. Worker and driver need not have the same Spark: a worker with any of these Airflows submits to any
of these Sparks, so of a combination without figures each half is tested, and not both together.

"Off" are tests that need something that is not there: mostly a feature that this version lacks, some a tool of the
tests. The reasons stand below. What a user misses where is told in
[Spark versions](spark_versions.md#what-a-spark-lacks) and
[Versions of Airflow](../operations/upgrading.md#versions-of-airflow).

`make matrix ONLY=spark-3.5` runs one of them anew. Tests marked thorough, which show more of the same, are left out as
in `make test`; `THOROUGH=1` runs them too.
"""


def page_of(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> str:
    """Return the page for these cells. One without an outcome stands there as not run.

    Args:
        cells: The cells, in the order in which their rows and columns appear.
        outcomes: What each came to, by the name of the cell.
    """
    return "\n".join([_HEAD, *_table(cells, outcomes), "", *_details(cells, outcomes)])


def _table(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[str]:
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    at = {(cell.row, cell.column): cell for cell in cells}
    lines = [f"| Spark | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for row in rows:
        found = [at.get((row, column)) for column in columns]
        entries = ["" if cell is None else _entry(cell, outcomes.get(cell.name)) for cell in found]
        lines.append(f"| {row} | {' | '.join(entries)} |")
    return lines


def _entry(cell: Cell, outcome: Outcome | None) -> str:
    """Return what a cell came to, with its Python where that is a later one, which its column doesn't tell."""
    if outcome is None:
        return "not run"
    python = outcome.python or cell.python
    is_told = python == _PYTHON or python in cell.column
    return f"{'' if is_told else f'Python {python}: '}{_figures(outcome)}"


def _figures(outcome: Outcome) -> str:
    if outcome.stopped:
        return "not run to its end"
    off = sum(outcome.switched_off.values())
    parts = [f"{outcome.passed:,} passed", f"{off:,} off" if off else "", f"**{len(outcome.failed):,} failed**"]
    return ", ".join(part for part in parts[: 3 if outcome.failed else 2] if part)


def _details(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[str]:
    lines = []
    for cell in cells:
        outcome = outcomes.get(cell.name)
        if outcome is None:
            continue
        installed = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
        tests = "`, `".join(outcome.tests or cell.tests)
        date = f", {outcome.date}" if outcome.date else ""
        marked = " with the thorough ones" if outcome.is_thorough else ""
        lines += [
            f"## {cell.name}",
            "",
            f"Python {outcome.python or cell.python}, {installed}. Ran `{tests}`{marked}, of {outcome.commit}{date}.",
            "",
        ]
        if outcome.stopped:
            lines += [f"Not run to its end: {outcome.stopped}.", ""]
        if outcome.failed:
            lines += ["Failed:", "", *(f"- `{test}`" for test in outcome.failed), ""]
        if outcome.switched_off:
            reasons = sorted(outcome.switched_off.items(), key=lambda item: (-item[1], item[0]))
            lines += ["| Switched off | Tests |", "|---|---:|"]
            lines += [f"| {reason.replace('|', '/')} | {count:,} |" for reason, count in reasons]
            lines.append("")
    return lines
