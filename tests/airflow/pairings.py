"""The table of docs/guides/airflow_tasks.md: what becomes of a run when driver and worker end apart from each other.

python -m tests.airflow.pairings   writes the table from the results in build/pairings, which a whole run of
                                   tests/airflow/test_pairings.py leaves
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
PAGE = _PROJECT / "docs" / "guides" / "airflow_tasks.md"
RESULTS = _PROJECT / "build" / "pairings"
BEGIN = "<!-- pairings: made by python -m tests.airflow.pairings -->"
END = "<!-- end of the pairings -->"


class DriverFate(StrEnum):
    """What becomes of the driver."""

    DIED = "died"
    COMMITTED = "committed"
    RUNNING = "still running"


class TaskFate(StrEnum):
    """What becomes of the task."""

    RETRIED = "retried"
    CLEARED = "cleared"
    KILLED = "killed"
    TIMED_OUT = "timed out"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class Pairing:
    """What becomes of the driver and, independently of it, of the task."""

    driver: DriverFate
    task: TaskFate

    @property
    def name(self) -> str:
        """How tests and DAGs of it are called."""
        return f"driver {self.driver}, task {self.task}".replace(" ", "_").replace(",", "")


PAIRINGS = tuple(Pairing(driver, task) for driver in DriverFate for task in TaskFate)


class TableError(Exception):
    """Raised when results are missing, or two of one pairing say different things."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a pairing, in words. `engine` is "python" or "spark"."""

    pairing: Pairing
    engine: str
    text: str

    def save(self) -> None:
        """Write it to a file of its own, whole."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{self.engine}-{self.pairing.name}.json"
        beside = path.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps(asdict(self), indent=1))
        os.replace(beside, path)


def load_results() -> Iterator[Result]:
    """Yield the results of all pairings that ran."""
    for path in sorted(RESULTS.glob("*.json")):
        given = json.loads(path.read_text())
        at = given.pop("pairing")
        yield Result(Pairing(DriverFate(at["driver"]), TaskFate(at["task"])), **given)


def texts_of(results: Iterable[Result]) -> dict[Pairing, str]:
    """Return what each cell says.

    Raises:
        TableError: with Spark it came to another end than without.
    """
    texts: dict[Pairing, str] = {}
    for result in results:
        if texts.setdefault(result.pairing, result.text) != result.text:
            raise TableError(
                f"{result.pairing.name}: {texts[result.pairing]!r}, and {result.text!r} with another engine"
            )
    return texts


def table_of(texts: Mapping[Pairing, str]) -> str:
    """Return the table: a line for each fate of the task, a column for each of the driver.

    Raises:
        TableError: a pairing has no result.
    """
    missing = [pairing for pairing in PAIRINGS if pairing not in texts]
    if missing:
        raise TableError(f"{len(missing)} pairings have no result in {RESULTS}, the first: {missing[0].name}")
    lines = [
        _row("", *(f"the driver {_HEADS[driver]}" for driver in DriverFate)),
        _row("---", *("---" for _ in DriverFate)),
        *(_row(f"**{task}**", *(texts[Pairing(driver, task)] for driver in DriverFate)) for task in TaskFate),
    ]
    return "\n".join(lines)


_HEADS = {
    DriverFate.DIED: "died before its commit",
    DriverFate.COMMITTED: "committed, and died before it published",
    DriverFate.RUNNING: "is still running",
}


def table_in(page: str) -> str:
    """Return the table in a page.

    Raises:
        TableError: the page has no place for it.
    """
    table, end, _ = page.partition(f"{BEGIN}\n")[2].partition(f"\n{END}")
    if not end:
        raise TableError(f"the page has no lines {BEGIN!r} and {END!r}")
    return table


def read_table(page: str) -> dict[Pairing, str]:
    """Return what each cell of the table in a page says."""
    rows = [line.strip("|").split("|") for line in table_in(page).splitlines()[2:]]
    return {
        Pairing(driver, TaskFate(row[0].strip(" *"))): text.strip()
        for row in rows
        for driver, text in zip(DriverFate, row[1:], strict=True)
    }


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the table into the page."""
    try:
        page = PAGE.read_text()
        table = table_of(texts_of(load_results()))
        PAGE.write_text(page.replace(f"{BEGIN}\n{table_in(page)}\n{END}", f"{BEGIN}\n{table}\n{END}"))
    except TableError as error:
        sys.exit(f"{error}. {PAGE} is as before. Run: pytest tests/airflow/test_pairings.py")


if __name__ == "__main__":
    main()
