"""The report: a line for each DAG run, shown as a table and written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_HEADINGS = (
    "step",
    "what",
    "DAG",
    "state",
    "files new",
    "known",
    "rows read",
    "in target",
    "appended",
    "watermark",
    "run",
    "epoch",
    "s",
)
_NUMBERS = (0, 4, 5, 6, 7, 8, 10, 11, 12)


@dataclass(frozen=True, slots=True)
class Line:
    """What one DAG run did. Counts are of what it read; `rows_in_target`, `watermark`, `epoch` are as after it.

    `run_number` is the run that it committed, None where it failed. `files_known` is None for a job that reads another,
    and `rows_appended`, all rows of the target that a job appends to, for a job without one.
    """

    step: int
    what: str
    dag_id: str
    job: str
    state: str
    files_read: int
    files_known: int | None
    rows_read: int
    rows_in_target: int
    rows_appended: int | None
    watermark: str | None
    run_number: int | None
    epoch: int
    attempt: int
    seconds: float
    log: str


@dataclass(slots=True)
class Report:
    """All lines so far, in order, and `notes` on what no DAG has run."""

    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the lines for people, and the notes below them."""
        return "\n\n".join([_aligned([_HEADINGS, *(_cells(line) for line in self.lines)]), *self.notes])

    def write(self, summary: Path) -> None:
        """Write the lines for programs: a list of objects, in order."""
        write_json(summary, [asdict(line) for line in self.lines])


def write_json(path: Path, document: Sequence[Any] | Mapping[str, Any]) -> None:
    """Write a JSON file that people can read as well."""
    path.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")


def _cells(line: Line) -> tuple[str, ...]:
    watermark = "-" if line.watermark is None else line.watermark.replace(".000000Z", "Z")
    optional = (line.files_known, line.rows_appended, line.run_number)
    known, appended, number = ("-" if value is None else f"{value}" for value in optional)
    return (
        f"{line.step}", line.what, line.dag_id, line.state, f"{line.files_read}", known, f"{line.rows_read:,}",
        f"{line.rows_in_target:,}", appended, watermark, number, f"{line.epoch}", f"{line.seconds:.1f}",
    )  # fmt: skip


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [_row(row, widths) for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _row(cells: Iterable[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if i in _NUMBERS else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(padded).rstrip()
