"""What docs/getting-started/installing.md says of pins: one version of pyspark and pyspark-client, or a refusal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.matrix.environment import command_of_readme

_ROOT = Path(__file__).parents[2]
# Airflow's file in its own form, but for the packages that matter here.
_AIRFLOW_FILE = "#\n# This constraints file was automatically generated\n#\n{}\n"


def resolved(folder: Path, requirements: str, constraints: str) -> dict[str, str] | str:
    """Return the versions of Spark that requirements come to, or the words with which they are refused."""
    (folder / "constraints.txt").write_text(_AIRFLOW_FILE.format(constraints))
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "-", "--no-deps", "-c", "constraints.txt"]
    done = subprocess.run(command, cwd=folder, input=requirements, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    found: list[tuple[str, str]] = re.findall(r"^(pyspark\S*)==(\S+)$", done.stdout, re.MULTILINE)
    return dict(found)


def extra() -> str:
    """Return what the extra `spark` asks for, a line each."""
    (pins,) = re.findall(r"^spark = \[(.*)\]$", (_ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    return "\n".join(re.findall(r'"(.*?)"', pins))


def test_command_of_the_page_is_that_of_readme() -> None:
    page = (_ROOT / "docs/getting-started/installing.md").read_text()

    assert f"$ {command_of_readme()}\n" in page
    assert "==".join(("pyspark", "4.1.3")) in extra()
    assert "(4.1.3)" in page


@pytest.mark.parametrize("version", ["4.0.1", "4.1.3"])
def test_constraints_that_pin_both_decide_on_one_version(tmp_path: Path, version: str) -> None:
    pins = f"pyspark=={version}\npyspark-client=={version}"

    assert resolved(tmp_path, "pyspark\npyspark-client", pins) == {"pyspark": version, "pyspark-client": version}


def test_extra_beside_constraints_that_pin_another_version_is_refused(tmp_path: Path) -> None:
    said = resolved(tmp_path, extra(), "pyspark==4.0.1\npyspark-client==4.0.1")

    assert isinstance(said, str)
    assert "requirements are unsatisfiable" in said


def test_extra_without_pins_is_one_version(tmp_path: Path) -> None:
    assert resolved(tmp_path, extra(), "") == {"pyspark": "4.1.3", "pyspark-client": "4.1.3"}


def test_older_python_of_a_driver_is_told_before_anything_else() -> None:
    script = "import sys; sys.version_info = (3, 10, 13); import airflow_bookmarks"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "ImportError: airflow_bookmarks needs Python 3.11 or later" in done.stderr
    assert "spark.pyspark.python" in done.stderr
