"""Promises on files in S3: those of `s3a_promises.py`, run with a Spark of their own."""

from __future__ import annotations

import pytest

from tests.spark import s3a_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

# A group of its own: another process may run this while the classic session is busy.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-s3a")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(s3a_promises, tmp_path_factory.mktemp("s3a"), pytestconfig)


@pytest.mark.parametrize("promise", names_of(s3a_promises))
def test_on_s3a(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
