"""The Spark of the tests of the runtime, for the tests of the Glue layer: a session of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.glue.run import forget_runs
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.glue.running import Script
from tests.spark.conftest import more_conf, open_session, shared_spark, spark, store, switched_off_without

__all__ = ["more_conf", "open_session", "shared_spark", "spark", "store", "switched_off_without"]


@pytest.fixture(autouse=True)
def runs_of_this_test() -> Iterator[None]:
    """End the runs that a test leaves open, as the end of its process would."""
    yield
    forget_runs()


@pytest.fixture
def script(spark: SparkSession, store: BookmarkStore, tmp_path: Path) -> Script:
    """Return what runs scripts over a lake of its own."""
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?namespace=test")
    (tmp_path / "lake").mkdir()
    return Script(spark, tmp_path / "lake")
