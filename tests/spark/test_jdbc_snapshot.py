"""Promise JDBC-13 in Spark: those of `jdbc_snapshot_promises.py` are run with a Spark that has the drivers."""

from __future__ import annotations

import pytest

from tests.spark import jdbc_snapshot_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-jdbc-snapshot")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(jdbc_snapshot_promises, tmp_path_factory.mktemp("jdbc"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(jdbc_snapshot_promises))
def test_of_compared_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
