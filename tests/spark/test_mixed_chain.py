"""Chains over mixed kinds in Spark: `mixed_chain_promises.py` is run with a Spark that has Delta and Iceberg."""

from __future__ import annotations

import pytest

from tests.spark import mixed_chain_promises
from tests.spark.iceberg import skip_without_iceberg
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.xdist_group("spark-mixed-chain")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    skip_without_iceberg()
    return outcomes_of(mixed_chain_promises, tmp_path_factory.mktemp("chain"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(mixed_chain_promises))
def test_of_a_mixed_chain(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
