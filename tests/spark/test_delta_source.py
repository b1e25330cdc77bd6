"""Promises TABLE-1 and TABLE-3 in Spark: those of `delta_source_promises.py` are run with a Spark that has Delta."""

from __future__ import annotations

import pytest

from tests.spark import delta_source_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-delta-source")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(delta_source_promises, tmp_path_factory.mktemp("delta"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(delta_source_promises))
def test_of_delta_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
