"""Promises JDBC-1 to JDBC-12, and JDBC-15: those of `jdbc_promises.py` are run with a Spark that has the drivers."""

from __future__ import annotations

import pytest

from tests.spark import jdbc_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-jdbc-read")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(jdbc_promises, tmp_path_factory.mktemp("jdbc"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(jdbc_promises))
def test_of_tables(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
