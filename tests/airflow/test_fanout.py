"""Many who wait in a real Airflow, whose triggerer dies meanwhile. `make fanout` plays the same with 200."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.compat import needs_deferral
from tests.chaos.fanout.scene import play

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.chaos,
    pytest.mark.dynamodb_local,
    pytest.mark.slow,
    pytest.mark.thorough,  # minutes; the sensors and triggers have tests of their own
    pytest.mark.xdist_group("airflow-servers"),
    needs_deferral,
]


def test_20_consumers_of_one_upstream_get_through_once_though_the_triggerer_is_killed(tmp_path: Path) -> None:
    figures = play(tmp_path / "fanout", 20)

    assert figures.faults == []
    assert len(figures.latency_ms) + figures.early_released == 20
