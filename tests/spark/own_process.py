"""Promises that need a Spark of their own: a module of tests, run in a process of its own, and what came of each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from tools.patience import STUCK_S


@dataclass
class Outcome:
    """What came of a promise, which may be kept in several ways: those that held, and what stopped the others."""

    held: int = 0
    failed: list[str] = field(default_factory=list)
    switched_off: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail where a way failed, and skip where all of them are switched off."""
        assert self.failed == [], "\n".join(self.failed)
        if not self.held:
            pytest.skip(self.switched_off[0])


def classic_environment() -> dict[str, str]:
    """Return the environment for a process with a classic session of its own, also where this one is a client."""
    return {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_MODE_ENABLED"}


def names_of(promises: ModuleType) -> list[Any]:
    """Return the names of the tests of a module, marked as they are there: as thorough, and seldom if not often."""
    tests = {name: test for name, test in vars(promises).items() if name.startswith("test_")}
    return [pytest.param(name, marks=_marks_of(test)) for name, test in tests.items()]


def _marks_of(test: Any) -> list[pytest.MarkDecorator]:
    names = {mark.name for mark in getattr(test, "pytestmark", [])}
    thorough = [pytest.mark.thorough] if "thorough" in names else []
    return thorough if "often" in names else [*thorough, pytest.mark.seldom]


def outcomes_of(promises: ModuleType, folder: Path, config: pytest.Config, **environment: str) -> dict[str, Outcome]:
    """Run the tests of a module in one process, with more in its environment; return what came of each, by name.

    Those marked thorough or seldom are among them where these tests run those, too, as `config` tells.
    """
    report = folder / "report.xml"
    left_out = [each for each in ("not thorough", "not seldom") if each in config.option.markexpr]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=native",
        "-m",
        " and ".join(left_out),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    command += [f"--junit-xml={report}", f"--basetemp={folder / 'tests'}", str(Path(str(promises.__file__)))]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=STUCK_S, check=False, env={**os.environ, **environment}
    )
    # Tests may fail, one by one; anything else is no word about them.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, Outcome] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        outcome = found.setdefault(case.attrib["name"].partition("[")[0], Outcome())
        stopped = [part for part in case if part.tag in ("failure", "error")]
        if (skipped := case.find("skipped")) is not None:
            outcome.switched_off.append(skipped.get("message", ""))
        elif stopped:
            outcome.failed += [f"{case.attrib['name']}: {part.get('message')}\n{part.text}" for part in stopped]
        else:
            outcome.held += 1
    return found
