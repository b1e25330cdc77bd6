"""The wheel in an environment without Airflow and Spark: the store, the lifecycle and the command line work there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_JOB = """
import sys
from airflow_bookmarks import BookmarkedJob

with BookmarkedJob(name="rates", store=sys.argv[1]) as job:
    cursor = job.state("cursor")
    print(cursor.get(0))
    cursor.set(cursor.get(0) + 1)
print(sorted({"airflow", "pyspark"} & sys.modules.keys()))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with boto3 and numpy alone; return where the programs of that environment lie."""
    folder = tmp_path_factory.mktemp("alone")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, capture_output=True, check=True, cwd=_ROOT)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    subprocess.run([*pip, "boto3", "numpy", "-c", str(_ROOT / "constraints.txt")], check=True)
    return folder / "venv" / "bin"


def typed(programs: Path, folder: Path, program: str, *arguments: str) -> list[str]:
    command = [str(programs / program), *arguments]
    done = subprocess.run(command, cwd=folder, env={"HOME": str(folder)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.thorough  # installs packages
def test_job_and_command_line_work_with_boto3_and_numpy_alone(programs: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/bookmarks.db"
    typed(programs, tmp_path, "airflow-bookmarks", "--store", store, "init")

    said = [typed(programs, tmp_path, "python", "-c", _JOB, store) for _ in range(2)]
    history = typed(programs, tmp_path, "airflow-bookmarks", "--store", store, "history", "rates")

    assert said == [["0", "[]"], ["1", "[]"]]
    assert [line.split()[0] for line in history] == ["NUMBER", "1", "2"]
