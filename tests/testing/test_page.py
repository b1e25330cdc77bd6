"""The code of docs/getting-started/testing.md can be copied: its files, by their first lines, pass as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started" / "testing.md"


def files_of_the_page() -> dict[str, str]:
    """Return the code blocks of the page by the names of their first lines."""
    blocks = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return dict(blocks)


def test_all_code_of_the_page_is_in_files() -> None:
    assert len(files_of_the_page()) == PAGE.read_text().count("\n```python\n")


def test_table_of_crashes_has_each_point_in_its_order() -> None:
    section = PAGE.read_text().partition("## Crashes")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith('| `"')]
    assert re.findall(r'"(\w+)"', "".join(rows)) == list(Failpoint)


@pytest.mark.seldom
@pytest.mark.spark
@pytest.mark.slow
def test_files_of_the_page_pass_as_they_are(tmp_path: Path) -> None:
    for name, code in files_of_the_page().items():
        (tmp_path / name).write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp=tests"]

    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    tests = sum(len(re.findall(r"^def test_", code, flags=re.MULTILINE)) for code in files_of_the_page().values())
    passed = re.search(r"^(\d+) passed in", done.stdout, flags=re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= tests
