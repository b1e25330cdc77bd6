"""Reads of databases by scripts: those of `database_promises.py` are run with a Spark that has the driver."""

from __future__ import annotations

import pytest

from tests.glue.inputs import database_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

# Seldom: a Spark with drivers of its own; spark/test_jdbc.py has the source below.
pytestmark = [pytest.mark.seldom, pytest.mark.spark, pytest.mark.xdist_group("glue-database-read")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(database_promises, tmp_path_factory.mktemp("jdbc"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(database_promises))
def test_of_tables_of_databases(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
