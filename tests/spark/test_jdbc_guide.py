"""The scripts of the guide to databases: `jdbc_guide_promises.py` is run with a Spark that has the driver."""

from __future__ import annotations

import pytest

from tests.spark import jdbc_guide_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.seldom,  # test_jdbc.py, test_jdbc_sink.py and test_jdbc_snapshot.py have what its scripts do
    pytest.mark.xdist_group("spark-jdbc-read"),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(jdbc_guide_promises, tmp_path_factory.mktemp("jdbc-guide"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(jdbc_guide_promises))
def test_of_the_guide(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
