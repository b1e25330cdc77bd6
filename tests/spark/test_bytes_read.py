"""Promise PERF-9: what a run reads follows what is new, not what is there."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.spark.bytes_run import INCREMENT, READS, SIZES, bytes_of
from tests.spark.own_process import classic_environment
from tools.patience import STUCK_S

# A group of its own: another process may run this while the classic session is busy.
# Seldom: a Spark of its own, for the bytes that its event log tells.
pytestmark = [pytest.mark.seldom, pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark-bytes")]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Make the runs in a process of their own, whose Spark keeps an event log; return the bytes read by each."""
    folder = tmp_path_factory.mktemp("bytes")
    command = [sys.executable, "-m", "tests.spark.bytes_run", str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=STUCK_S,
        check=False,
        cwd=Path(__file__).parents[2],
        env=classic_environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return bytes_of(folder)


@pytest.mark.parametrize(("source", "way"), READS)
def test_increment_reads_the_same_bytes_of_ten_times_the_data(read: dict[str, int], source: str, way: str) -> None:
    small, large = (read[f"{source}/{way}/increment/{size}"] for size in SIZES)
    assert small == large > 0


@pytest.mark.parametrize(("source", "way"), READS)
def test_full_run_reads_ten_times_the_bytes_of_ten_times_the_data(read: dict[str, int], source: str, way: str) -> None:
    small, large = (read[f"{source}/{way}/full/{size}"] for size in SIZES)
    assert large == small * SIZES[1] // SIZES[0]
    # Where columns are found in JSON, a first run looks once more, for those without a value: three times for two.
    again = Fraction(3, 2) if source == "json" else 1
    assert again * read[f"{source}/{way}/increment/{SIZES[0]}"] == small * INCREMENT // SIZES[0]
