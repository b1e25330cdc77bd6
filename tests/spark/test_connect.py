"""Promises on Spark Connect: those of `connect_promises.py`, run against a server of their own.

All tests of this folder run there in the cells of Connect of `make matrix`.
"""

from __future__ import annotations

import pytest

from tests.spark import connect_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

# A group of its own: another process may run this while the classic session is busy.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-connect")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(
        connect_promises, tmp_path_factory.mktemp("connect"), pytestconfig, SPARK_TESTS_SESSION="connect"
    )


@pytest.mark.parametrize("promise", names_of(connect_promises))
def test_on_connect(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
