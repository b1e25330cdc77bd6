"""One classic Spark session for all tests of the runtime, and a lake for each of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.spark.lake import Lake


@pytest.fixture(scope="session")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark in this process. Tests that change the conf take `spark`, which is a session of their own."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # halves short tests
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def spark(classic: SparkSession) -> SparkSession:
    """Open a session whose conf is this test's own."""
    return classic.newSession()


@pytest.fixture
def store(tmp_path: Path) -> BookmarkStore:
    """Open a fresh store on SQLite."""
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test")
    store.init()
    return store


@pytest.fixture
def lake(tmp_path: Path, store: BookmarkStore, spark: SparkSession) -> Lake:
    """Open a lake whose raw folder is there and empty."""
    lake = Lake(tmp_path / "lake", store, spark)
    (lake.root / "raw").mkdir(parents=True)
    return lake
