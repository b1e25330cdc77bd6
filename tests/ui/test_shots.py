"""Pictures of the docs are taken only of a page that is built from its present sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ui.shots import PROJECT, why_stale

PAGE = Path("airflow_bookmarks", "plugin", "www")
# Stands in for npm, which would install and build for half a minute: what is tested is when that is needed.
NPM = """#!/bin/sh
mkdir -p dist node_modules && echo "the page" > dist/main.js
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the script that builds the page, and little else."""
    for path, text in {
        "docs/openapi.json": "{}",
        f"{PAGE}/package-lock.json": "{}",
        f"{PAGE}/src/main.tsx": "1",
        ".venv/bin/npm": NPM,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".venv/bin/npm").chmod(0o755)
    (tmp_path / "tools").mkdir()
    shutil.copy(PROJECT / "tools" / "page.sh", tmp_path / "tools")
    return tmp_path


def build(project: Path) -> None:
    environment = {**os.environ, "VENV": ".venv"}
    subprocess.run([project / "tools" / "page.sh"], check=True, env=environment, capture_output=True)


def test_page_that_was_never_built_is_refused(project: Path) -> None:
    assert "main.js is missing or older than its sources. Run 'make page'." in (why_stale(project) or "")


@pytest.mark.seldom
def test_page_that_is_built_is_fit_until_a_source_changes(project: Path) -> None:
    build(project)
    assert why_stale(project) is None

    (project / PAGE / "src" / "main.tsx").write_text("2")

    assert "Run 'make page'" in (why_stale(project) or "")
