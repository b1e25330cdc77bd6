"""Promises on Spark Connect: those of `connect_promises.py`, run against a server of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.spark import connect_promises
from tools.patience import STUCK_S

# A group of its own: another process may run this while the classic session is busy.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-connect")]

PROMISES = [name for name in vars(connect_promises) if name.startswith("test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run all promises in one process; return per name what it failed with, empty where it held."""
    folder = tmp_path_factory.mktemp("connect")
    report = folder / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--junit-xml={report}",
    ]
    command += [f"--basetemp={folder / 'tests'}", str(Path(connect_promises.__file__))]
    # With SPARK_TESTING the server takes a free port: else it takes 15002, which another one may have.
    environment = {**os.environ, "SPARK_TESTING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=STUCK_S, check=False, env=environment)
    assert report.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own report
        found[case.attrib["name"]] = "\n".join(f"{part.get('message')}\n{part.text}" for part in case)
    return found


@pytest.mark.parametrize("promise", PROMISES)
def test_on_connect(outcomes: dict[str, str], promise: str) -> None:
    assert outcomes[promise] == ""
