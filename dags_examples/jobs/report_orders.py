"""Keep a table for reports up to what another job has landed. A Spark script.

    spark-submit report_orders.py [--upstream orders_report.land]

The table is `reporting.orders` of the connection `dw`. It has each order once, as it was last landed: an order that the
shop has deleted has `is_deleted`, and no other value any more.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob


def run(spark: SparkSession, upstream: str) -> None:
    """Upsert what `upstream` has published and this job has not read."""
    # [start report_orders]
    with BookmarkedJob(spark) as job:
        orders = job.read("orders").upstream(upstream)
        job.write(orders, "report").upsert("id", order_by="updated_at").jdbc("conn:dw", "reporting.orders")
    # [end report_orders]


def main() -> None:
    """Run with the job that the command line names."""
    parser = argparse.ArgumentParser(description="Keep a table for reports up to the orders that were landed.")
    parser.add_argument("--upstream", default="orders_report.land", help="job whose output is read")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("report_orders").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        run(spark, arguments.upstream)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
