"""Promises that need a Spark of their own: a module of tests, run in a process of its own, and what came of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

from tools.patience import STUCK_S


def names_of(promises: ModuleType) -> list[str]:
    """Return the names of the tests of a module."""
    return [name for name in vars(promises) if name.startswith("test_")]


def outcomes_of(promises: ModuleType, folder: Path, marks: str = "") -> dict[str, str]:
    """Run the tests of a module in one process; return per name what it failed with, empty where it held.

    `marks` says which of them, as pytest's `-m` does; default: all.
    """
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", marks, "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"--junit-xml={report}", f"--basetemp={folder / 'tests'}", str(Path(str(promises.__file__)))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STUCK_S, check=False)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        promise = case.attrib["name"].partition("[")[0]  # one that is kept in several ways is one promise
        failed = "\n".join(f"{case.attrib['name']}: {part.get('message')}\n{part.text}" for part in case)
        found[promise] = found.get(promise, "") + failed
    return found
