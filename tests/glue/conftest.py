"""The Spark of the tests of the runtime, for the tests of the Glue layer: a session of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.glue.run import forget_runs
from tests.spark.conftest import more_conf, open_session, shared_spark, spark, store, switched_off_without

__all__ = ["more_conf", "open_session", "shared_spark", "spark", "store", "switched_off_without"]


@pytest.fixture(autouse=True)
def runs_of_this_test() -> Iterator[None]:
    """End the runs that a test leaves open, as the end of its process would."""
    yield
    forget_runs()
