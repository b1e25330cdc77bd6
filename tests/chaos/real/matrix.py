"""The kill matrix as a table of docs/concepts/guarantees.md.

python -m tests.chaos.real.matrix   writes the table from the results in build/kill_matrix, which a whole run of
                                    tests/chaos/real leaves
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.real.cell import RESULTS, Cell, Result, Tries, load_results
from tests.chaos.real.order import CommitPath

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "guarantees.md"
BEGIN = "<!-- kill matrix: made by python -m tests.chaos.real.matrix -->"
END = "<!-- end of the kill matrix -->"

_COLUMNS = [(path, tries) for path in CommitPath for tries in Tries]


class MatrixError(Exception):
    """Raised when results are missing, or two of one cell say different things."""


def texts_of(results: Iterable[Result]) -> dict[Cell, str]:
    """Return what each cell says.

    Raises:
        MatrixError: two engines or two stores came to different ends.
    """
    texts: dict[Cell, str] = {}
    for result in results:
        if texts.setdefault(result.cell, result.text) != result.text:
            raise MatrixError(
                f"{result.cell}: {texts[result.cell]!r}, and on {result.engine}, {result.backend}: {result}"
            )
    return texts


def table_of(texts: Mapping[Cell, str]) -> str:
    """Return the table, one line a point.

    Raises:
        MatrixError: a cell has no result.
    """
    missing = [
        cell for point in Failpoint for path, tries in _COLUMNS if (cell := Cell(point, path, tries)) not in texts
    ]
    if missing:
        raise MatrixError(f"{len(missing)} cells have no result in {RESULTS}, the first: {missing[0]}")
    lines = [
        _row("killed at", *(f"{path}, {tries}" for path, tries in _COLUMNS)),
        _row("---", *("---" for _ in _COLUMNS)),
        *(_row(f"`{point}`", *(texts[Cell(point, *column)] for column in _COLUMNS)) for point in Failpoint),
    ]
    return "\n".join(lines)


def read_table(page: str) -> dict[Cell, str]:
    """Return what each cell of the table in a page says."""
    rows = [line.strip("|").split("|") for line in _table_in(page).splitlines()[2:]]
    return {
        Cell(Failpoint(row[0].strip(" `")), *column): text.strip()
        for row in rows
        for column, text in zip(_COLUMNS, row[1:], strict=True)
    }


def with_table(page: str, table: str) -> str:
    """Return the page with another table between its markers."""
    return page.replace(f"{BEGIN}\n{_table_in(page)}\n{END}", f"{BEGIN}\n{table}\n{END}")


def _table_in(page: str) -> str:
    after = page.partition(f"{BEGIN}\n")[2]
    table, end, _ = after.partition(f"\n{END}")
    if not end:
        raise MatrixError(f"the page has no lines {BEGIN!r} and {END!r}")
    return table


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the table into the page."""
    try:
        PAGE.write_text(with_table(PAGE.read_text(), table_of(texts_of(load_results()))))
    except MatrixError as error:
        sys.exit(f"{error}. {PAGE} is as before. Run: CHAOS=full pytest tests/chaos/real")


if __name__ == "__main__":
    main()
