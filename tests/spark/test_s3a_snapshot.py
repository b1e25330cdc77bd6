"""Tables that are compared whole, copied to S3: `s3a_snapshot_promises.py` is run with a Spark of its own."""

from __future__ import annotations

import pytest

from tests.spark import s3a_snapshot_promises
from tests.spark.own_process import Outcome, names_of, outcomes_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-s3a")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, Outcome]:
    return outcomes_of(s3a_snapshot_promises, tmp_path_factory.mktemp("s3a-snapshot"), pytestconfig)


@pytest.mark.thorough  # test_jdbc_snapshot.py has the promises, test_s3a.py the file system
@pytest.mark.parametrize("promise", names_of(s3a_snapshot_promises))
def test_of_copies_in_s3(outcomes: dict[str, Outcome], promise: str) -> None:
    outcomes[promise].check()
