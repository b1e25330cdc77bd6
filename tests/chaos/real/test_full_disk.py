"""A disk that is full: of the staging before the commit, of the target in the middle of a publish."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_bookmarks.core.run import RunState
from tests.chaos.real.order import CommitPath
from tests.chaos.real.process import DriverProcess
from tests.chaos.real.scene import Scene

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.parametrize("path", [CommitPath.APPEND, CommitPath.OVERWRITE]),
    pytest.mark.parametrize("backend", ["sqlite"]),
    pytest.mark.xdist_group("chaos-real"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk that is small enough to be filled"),
]

BALLAST = 40_000  # bytes; the disk has 64 KiB, and each file of the test takes 4 KiB of it or more


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount 64 KiB at `folder`."""
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine lets nobody mount: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def land_much(scene: Scene) -> None:
    """Let land files that fit on the disk without the ballast only."""
    for name in "abc":
        scene.land(name, *(f"{name}{row:03}" + "." * 100 for row in range(100)))


def test_disk_full_while_publishing_leaves_the_publish_due_and_the_next_begin_finishes_it(
    scene: Scene, path: CommitPath
) -> None:
    scene.path = path
    land_much(scene)
    target, staging = scene.root / "copy", scene.root / "staging"
    with small_disk(target):
        ballast = target / "_ballast"
        ballast.write_bytes(bytes(BALLAST))
        # On another mount than the target a move is a copy, which can find the disk full half-way.
        with DriverProcess(scene.order(staging=str(staging))) as driver:
            assert driver.wait() == 1
            assert "PublishError" in driver.said
            assert "No space left on device" in driver.said
        assert [run.state for run in scene.runs()] == [RunState.COMMITTED]
        assert (scene.head.publishing, scene.head.lease) == (scene.runs()[0].key, None)
        # What is visible is whole files, and the others are still staged.
        assert scene.lost % 100 == 0
        assert (scene.lost > 0, scene.doubled) == (True, 0)
        ballast.unlink()
        assert scene.drive(2, staging=str(staging)) == 0
        scene.check_whole()
        assert [path for path in staging.rglob("*") if path.is_file()] == []


def test_disk_full_while_publishing_leaves_no_half_copy(scene: Scene, path: CommitPath) -> None:
    scene.path = path
    land_much(scene)
    target = scene.root / "copy"
    with small_disk(target):
        (target / "_ballast").write_bytes(bytes(BALLAST))
        assert scene.drive(staging=str(scene.root / "staging")) == 1
        assert list(target.rglob(".*")) == []


def test_disk_full_while_staging_commits_nothing_and_the_next_run_reads_it_again(
    scene: Scene, path: CommitPath
) -> None:
    scene.path = path
    land_much(scene)
    staging = scene.root / "staging"
    with small_disk(staging):
        ballast = staging / "ballast"
        ballast.write_bytes(bytes(BALLAST))
        with DriverProcess(scene.order(staging=str(staging))) as driver:
            assert driver.wait() == 1
            assert "No space left on device" in driver.said
        assert [run.state for run in scene.runs()] == [RunState.FAILED]
        assert scene.target().total() == 0
        ballast.unlink()
        assert scene.drive(2, staging=str(staging)) == 0
        scene.check_whole()
