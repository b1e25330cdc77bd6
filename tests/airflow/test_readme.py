"""The first job of README.md: its files and commands, typed as they are printed, give what is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.airflow.compat import needs_provider_commands
from tools.patience import STUCK_S

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FOLDER = "/tmp/shop"


def files_of_the_page() -> dict[str, str]:
    """Return the code blocks of the page whose first line is a path, by these."""
    return dict(re.findall(rf"^```python\n# {FOLDER}/(\S+)\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL))


def consoles_of_the_page() -> list[list[str]]:
    """Return the console blocks of the page that call Airflow, each as its lines."""
    blocks = re.findall(r"^```console\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in blocks if "airflow " in block]


@needs_provider_commands
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough  # installs packages; the matrix plays it with a wheel for each Python
def test_first_job_of_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    for name, code in files_of_the_page().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(code.replace(FOLDER, str(tmp_path)))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")},
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
    }

    def typed(command: str) -> list[str]:
        whole = ["bash", "-euo", "pipefail", "-c", command.replace(FOLDER, str(tmp_path))]
        done = subprocess.run(whole, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=STUCK_S)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout.splitlines()

    for block in consoles_of_the_page():
        printed: list[str] = []
        for line in block:
            if line.startswith("$ "):
                printed = typed(line.removeprefix("$ "))
        shown = [line.rstrip() for line in block if not line.startswith("$ ")]
        told = [line for line in printed if line.startswith(("NUMBER", "     "))]
        # The page leaves out the columns that hold times.
        assert [line[: len(shown[0])].rstrip() for line in told if shown] == shown
