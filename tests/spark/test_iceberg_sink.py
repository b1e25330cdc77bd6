"""Promise TABLE-2 in Spark: those of `iceberg_sink_promises.py` are run with a Spark that has Iceberg."""

from __future__ import annotations

import pytest

from tests.spark import iceberg_sink_promises
from tests.spark.iceberg import skip_without_iceberg
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-iceberg-sink")]

CONFORMANCE = [name for name in dir(iceberg_sink_promises.TestIcebergConformance) if name.startswith("test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    skip_without_iceberg()
    return outcomes_of(iceberg_sink_promises, tmp_path_factory.mktemp("iceberg"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(iceberg_sink_promises))
def test_of_iceberg_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()


@pytest.mark.parametrize("promise", CONFORMANCE)
def test_of_every_sink_that_stages(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
