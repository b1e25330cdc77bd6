"""The test run itself: tests of one group run in one process, so that no two clusters or sessions start at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(8))
def test_in_a_group(number):
    (Path({folder!r}) / str(number)).write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_tests_of_a_group_run_in_one_process(tmp_path: Path) -> None:
    # pytest 9.2.0 dropped what pytest-xdist 3.8.0 notes the group by, and said nothing.
    ran = tmp_path / "ran"
    ran.mkdir()
    tests = tmp_path / "test_groups_of_its_own.py"
    tests.write_text(TESTS.format(folder=str(ran)))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others take most of a minute to import on a busy machine
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
        str(tests),
    ]
    subprocess.run(command, check=True, cwd=tmp_path, env=environment, capture_output=True)

    workers = [path.read_text() for path in ran.iterdir()]
    assert len(workers) == 8
    assert len(set(workers)) == 1
