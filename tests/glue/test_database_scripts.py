"""Promises on scripts that read and write a database: `database_script_promises.py`, with a Spark of their own."""

from __future__ import annotations

import pytest

from tests.glue import database_script_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.xdist_group("glue-database-scripts")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(database_script_promises, tmp_path_factory.mktemp("jdbc"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(database_script_promises))
def test_on_a_database(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
