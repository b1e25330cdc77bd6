"""Packages that are installed in a process: a folder of each, with its entry points, on the path of Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def install(site: Path, group: str, package: str, **kinds: str) -> None:
    """Install a package that names kinds by entry points of a group."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}\n" for name, value in kinds.items()]
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join(lines))


def printed(site: Path, code: str) -> list[str]:
    """Run code in a process where the packages of a folder are installed; return the lines that it prints."""
    path = os.pathsep.join([str(site), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
