"""A first load and an increment with each way to submit, for the Spark that CLUSTERS_PYTHON names: see `conftest.py`.

The worker's own pyspark is another one then: what fits the driver is what the operator ships.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.clusters.conftest import has_own_spark
from tests.clusters.scene import Scene

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.xdist_group("clusters"),
    pytest.mark.skipif(
        not has_own_spark and os.environ.get("CHAOS") != "full",
        reason="for a Spark of another version: CLUSTERS_PYTHON names it, as `make matrix` does",
    ),
]


@pytest.fixture(params=["on_local", "on_standalone", "on_yarn"])
def scene(request: pytest.FixtureRequest) -> Scene:
    """Set an empty scene on each master."""
    scene: Scene = request.getfixturevalue(request.param)
    return scene


def test_second_job_reads_only_what_came_after_the_first(scene: Scene, driver_python: Path) -> None:
    numbers = []
    for new in ("a", "b"):
        scene.land(new, new, new, f"more of {new}")
        summary = scene.run(f"manual__{new}")
        numbers.append((summary["run_number"], summary["contexts"]["raw"]["files"], summary["is_published"]))
        scene.check_whole()

    assert numbers == [("1", 1, True), ("2", 1, True)]
    report = scene.report()
    assert any(part.endswith(".zip") for part in Path(report["package"]).parts)
    if has_own_spark:
        assert report["spark"] == spark_of(driver_python)
        assert not report["has_airflow"]


def spark_of(python: Path) -> str:
    """Return the version of the pyspark of a Python."""
    code = "import importlib.metadata as m; print(m.version('pyspark'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
