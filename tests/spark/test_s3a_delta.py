"""Promise TABLE-1 in S3: those of `s3a_delta_promises.py` are run with a Spark that has s3a and Delta."""

from __future__ import annotations

import pytest

from tests.spark import s3a_delta_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-s3a-delta")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(s3a_delta_promises, tmp_path_factory.mktemp("delta"), pytestconfig)


@pytest.mark.thorough  # test_delta_source.py has the promises, test_s3a.py the file system
@pytest.mark.parametrize("promise", names_of(s3a_delta_promises))
def test_of_delta_tables_in_s3(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
