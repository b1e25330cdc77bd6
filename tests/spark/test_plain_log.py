"""What a test logs is plain text, also after a test in which a query failed: see `plain_log` in `tests/conftest.py`."""

from __future__ import annotations

import logging

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("time", ["first", "second"])
def test_log_is_plain_after_a_query_that_failed(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, time: str
) -> None:
    logging.getLogger("airflow_bookmarks").warning("it's %s", time)
    assert caplog.text.rstrip().endswith(f"it's {time}")
    assert '"msg"' not in caplog.text

    spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(ArithmeticException):
        spark.sql("SELECT 1 / 0").collect()
