"""Promises on tables of a database that scripts write: those of `database_promises.py`, with a Spark of their own."""

from __future__ import annotations

import pytest

from tests.glue.outputs import database_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

# A group of its own: another process may run this while the classic session is busy.
# Seldom: a Spark with drivers of its own; spark/test_jdbc_sink.py has the sink below.
pytestmark = [pytest.mark.seldom, pytest.mark.spark, pytest.mark.xdist_group("spark-jdbc")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(database_promises, tmp_path_factory.mktemp("jdbc"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(database_promises))
def test_on_databases(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
