"""Promises TABLE-1 and TABLE-3 in Spark: those of `iceberg_source_promises.py`, with a Spark that has Iceberg."""

from __future__ import annotations

import pytest

from tests.spark import iceberg_source_promises
from tests.spark.iceberg import skip_without_iceberg
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-iceberg-source")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    skip_without_iceberg()
    return outcomes_of(iceberg_source_promises, tmp_path_factory.mktemp("iceberg"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(iceberg_source_promises))
def test_of_iceberg_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
