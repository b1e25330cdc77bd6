"""What came of the tests of a cell: read from pytest's report, kept as JSON."""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class Outcome:
    """The counts of a cell.

    Attributes:
        cell: The name of the cell.
        passed: Tests that passed.
        switched_off: Tests that were not run, by reason.
        failed: The ids of tests that failed.
        stopped: Why the tests were not run to their end, or empty.
        versions: What was installed, by package.
        seconds: How long it took.
        commit: What was tested.
        is_thorough: Whether tests marked thorough were among them.
        python: The version of Python, which a cell may have changed since.
        tests: The paths that pytest ran, which a cell may have changed since.
        date: The day, as 2026-01-31.
    """

    cell: str
    passed: int
    switched_off: dict[str, int]
    failed: list[str]
    stopped: str
    versions: dict[str, str]
    seconds: float
    commit: str = "unknown"
    is_thorough: bool = False
    python: str = ""
    tests: tuple[str, ...] = ()
    date: str = ""

    @property
    def is_good(self) -> bool:
        """Whether tests ran and none failed."""
        return self.passed > 0 and not self.failed and not self.stopped

    @property
    def summary(self) -> str:
        """Say the counts in one line."""
        if self.stopped:
            return f"STOPPED: {self.stopped}"
        off = sum(self.switched_off.values())
        return f"{self.passed:,} passed, {off:,} switched off, {len(self.failed):,} failed"


def read_report(cell: str, report: Path, exit_code: int, versions: dict[str, str], seconds: float) -> Outcome:
    """Return what the report of a run of pytest says.

    Args:
        cell: The name of the cell.
        report: The report, in the form of JUnit.
        exit_code: What pytest ended with: 0 for all passed, 1 for failures; anything else stopped it.
        versions: What was installed, by package.
        seconds: How long it took.
    """
    if not report.exists() or exit_code not in (0, 1):
        return Outcome(cell, 0, {}, [], f"pytest ended with {exit_code}", versions, seconds)
    passed, failed = 0, []
    switched_off: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        if (skipped := case.find("skipped")) is not None:
            switched_off[_reason(skipped)] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed += 1
    return Outcome(cell, passed, dict(switched_off), failed, "", versions, seconds)


def _reason(skipped: ElementTree.Element) -> str:
    """Return why a test was skipped; of a whole module pytest writes the place and the reason as a tuple."""
    message = skipped.get("message", "").strip()
    if message != "collection skipped":
        return message
    _, _, why = ast.literal_eval(skipped.text or "")
    return f"{why.removeprefix('Skipped: ')} (a whole module)"


def save(outcome: Outcome, folder: Path) -> None:
    """Keep an outcome beside those of the other cells."""
    (folder / f"{outcome.cell}.json").write_text(json.dumps(asdict(outcome), indent=2, sort_keys=True) + "\n")


def load(cell: str, folder: Path) -> Outcome | None:
    """Return the last outcome of a cell, or None where it was never run."""
    path = folder / f"{cell}.json"
    if not path.exists():
        return None
    values = json.loads(path.read_text())
    return Outcome(**{**values, "tests": tuple(values.get("tests", ()))})
