"""Promise GLUE-10: `from scripts.helpers.watermarks import Watermarks`, beside a project's own `scripts`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import airflow_bookmarks

ROOT = Path(airflow_bookmarks.__file__).parents[1]
IMPORTS = "from scripts.helpers.watermarks import Watermarks; print(Watermarks.__module__)"
OURS = "airflow_bookmarks.glue.watermarks.table"


def imported(project: Path, code: str = IMPORTS, *, path: str = "") -> str:
    """Run code in a project, and return what it prints."""
    install = "from airflow_bookmarks.glue.watermarks.finder import install; install(); install(); "
    environment = {"PYTHONPATH": f"{project}:{ROOT}{path}"}
    done = subprocess.run(
        [sys.executable, "-c", install + code], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.seldom
def test_import_works_without_any_package_of_that_name(tmp_path: Path) -> None:
    assert imported(tmp_path, path=f":{ROOT}/airflow_bookmarks/glue/path") == OURS


@pytest.mark.seldom
@pytest.mark.parametrize("has_helpers", [True, False])
def test_import_works_beside_a_package_of_the_project(tmp_path: Path, has_helpers: bool) -> None:
    put(tmp_path / "scripts/__init__.py")
    put(tmp_path / "scripts/own.py", "NAME = 'own'")
    if has_helpers:
        put(tmp_path / "scripts/helpers/__init__.py")
        put(tmp_path / "scripts/helpers/columns.py", "NAME = 'columns'")
    assert imported(tmp_path) == OURS
    assert imported(tmp_path, "import scripts.own; print(scripts.own.NAME)") == "own"
    if has_helpers:
        code = f"{IMPORTS}; from scripts.helpers.columns import NAME; print(NAME)"
        assert imported(tmp_path, code).splitlines() == [OURS, "columns"]


def test_module_of_the_project_is_never_hidden(tmp_path: Path) -> None:
    put(tmp_path / "scripts/helpers/watermarks.py", "class Watermarks: pass")
    assert imported(tmp_path) == "scripts.helpers.watermarks"
    assert imported(tmp_path, path=f":{ROOT}/airflow_bookmarks/glue/path") == "scripts.helpers.watermarks"


@pytest.mark.parametrize("name", ["scripts.helpers.other", "scripts.missing", "helpers.watermarks"])
def test_finder_answers_for_nothing_else(tmp_path: Path, name: str) -> None:
    put(tmp_path / "scripts/__init__.py")
    assert "ModuleNotFoundError" in imported(tmp_path, f"import {name}")
