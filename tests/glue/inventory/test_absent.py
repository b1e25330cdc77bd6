"""Modules that Glue Studio imports and Glue alone has: the import says what to do, and hides no module of a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import airflow_bookmarks

ROOT = Path(airflow_bookmarks.__file__).parents[1]


def last_line(project: Path, code: str) -> str:
    """Run code where `awsglue` is found, beside the modules of a project; return the last line of what it prints."""
    environment = {"PYTHONPATH": f"{project}:{ROOT}:{ROOT}/airflow_bookmarks/glue/path"}
    code = f"from awsglue.utils import getResolvedOptions\n{code}"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]


def test_import_of_a_transform_of_studio_says_what_to_do(tmp_path: Path) -> None:
    said = last_line(tmp_path, "import gs_derived")
    assert said.startswith("ImportError: gs_derived: this transform of Glue Studio runs in Glue alone")
    assert "frame.toDF()" in said


def test_module_of_a_project_is_imported_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "gs_derived.py").write_text("NAME = 'own'", encoding="utf-8")
    assert last_line(tmp_path, "import gs_derived; print(gs_derived.NAME)") == "own"


def test_other_modules_that_are_missing_are_missing(tmp_path: Path) -> None:
    assert last_line(tmp_path, "import gsheets").startswith("ModuleNotFoundError")
