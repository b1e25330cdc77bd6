"""Promises on files in S3: those of `s3a_promises.py`, run with a Spark of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.spark import s3a_promises
from tools.patience import STUCK_S

# A group of its own: another process may run this while the classic session is busy.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-s3a")]

PROMISES = [name for name in vars(s3a_promises) if name.startswith("test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all promises in one process; return per name what it failed with, empty where it held."""
    folder = tmp_path_factory.mktemp("s3a")
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"--junit-xml={report}", f"--basetemp={folder / 'tests'}", str(Path(s3a_promises.__file__))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STUCK_S, check=False)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        promise = case.attrib["name"].partition("[")[0]  # one that is kept in several ways is one promise
        failed = "\n".join(f"{case.attrib['name']}: {part.get('message')}\n{part.text}" for part in case)
        found[promise] = found.get(promise, "") + failed
    return found


@pytest.mark.parametrize("promise", PROMISES)
def test_on_s3a(outcomes: dict[str, str], promise: str) -> None:
    assert outcomes[promise] == ""
