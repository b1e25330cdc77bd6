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
page. A combination without figures is none that is tested. Tests that are switched off ask for a feature that this
version lacks; the reasons stand below. Where nothing else is said, Python is {_PYTHON}.

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
        entries = ["" if cell is None else _python(cell) + _figures(outcomes.get(cell.name)) for cell in found]
        lines.append(f"| {row} | {' | '.join(entries)} |")
    return lines


def _python(cell: Cell) -> str:
    """Return what a cell is headed with, whose column doesn't tell that its Python is a later one."""
    is_told = cell.python == _PYTHON or cell.python in cell.column
    return "" if is_told else f"Python {cell.python}: "


def _figures(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not run"
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
        tests = "`, `".join(cell.tests)
        marked = " with the thorough ones" if outcome.is_thorough else ""
        lines += [
            f"## {cell.name}",
            "",
            f"Python {cell.python}, {installed}. Runs `{tests}`{marked}, here of {outcome.commit}.",
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
