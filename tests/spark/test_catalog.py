"""Promise SINK-9: those of `catalog_promises.py` are run with a Spark that has a Hive metastore."""

from __future__ import annotations

import pytest

from tests.spark import catalog_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-catalog")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(catalog_promises, tmp_path_factory.mktemp("catalog"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(catalog_promises))
def test_of_tables_of_a_catalog(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
