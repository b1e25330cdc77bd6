"""The player of orders: a process with one Spark session that plays both scripts of `orders_report` for each line.

    {} -> {}

The example DAG starts Spark for each of its tasks; here one session is enough, so that a round takes seconds. Whatever
else is said goes to the standard error.
"""

from __future__ import annotations

import os
import runpy
import sys
from datetime import timedelta

from demo.folders import dags

LAND, REPORT = "orders_report.land", "orders_report.report"


def main(store: str, driver: str, target: str) -> None:
    """Answer each line from stdin by one on stdout.

    Args:
        store: the URI of the state store.
        driver: the jar of the JDBC driver.
        target: the folder of the orders.
    """
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from pyspark.sql import SparkSession

    land, report = (
        runpy.run_path(str(dags() / "jobs" / f"{name}.py"))["run"] for name in ("land_orders", "report_orders")
    )
    builder = SparkSession.builder.appName("orders_report").master("local[2]").config("spark.jars", driver)
    spark = builder.config("spark.sql.session.timeZone", "UTC").config("spark.bookmarks.store", store).getOrCreate()
    try:
        print("{}", file=replies, flush=True)
        for _ in sys.stdin:
            spark.conf.set("spark.bookmarks.job", LAND)
            land(spark, target, timedelta(0))
            spark.conf.set("spark.bookmarks.job", REPORT)
            report(spark, LAND)
            print("{}", file=replies, flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
