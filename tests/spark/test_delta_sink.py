"""Promise TABLE-2 in Spark: those of `delta_sink_promises.py` are run with a Spark that has Delta Lake."""

from __future__ import annotations

import pytest

from tests.spark import delta_sink_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-delta-sink")]

CONFORMANCE = [name for name in dir(delta_sink_promises.TestDeltaConformance) if name.startswith("test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(delta_sink_promises, tmp_path_factory.mktemp("delta"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(delta_sink_promises))
def test_of_delta_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()


@pytest.mark.parametrize("promise", CONFORMANCE)
def test_of_every_sink_that_commits_by_itself(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
