"""Land the orders of a shop that no earlier run has read, as Parquet. A Spark script.

    spark-submit land_orders.py ORDERS [--settle-for 60]

The orders come from the table `public.orders` of the connection `shop` (PostgreSQL). The shop sets `updated_at` with
each change, to the time of the database, and deletes an order by setting `is_deleted`. ORDERS gets a row for each
version of an order that was read; of one that was deleted it has its key alone.
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob


def run(spark: SparkSession, target: str, settle_for: timedelta) -> None:
    """Read what is new in the shop, wait so long at most for what is not committed yet, and append it to `target`."""
    # [start land_orders]
    with BookmarkedJob(spark) as job:
        reader = job.read("orders", deleted_when="is_deleted")
        orders = reader.jdbc("conn:shop", "public.orders", keys=["updated_at", "id"], settle_for=settle_for)
        deletes: Any = orders.deletes  # which Spark's types take for a column
        gone = deletes.select("id", "updated_at", F.lit(True).alias("is_deleted"))
        job.write(orders.unionByName(gone, allowMissingColumns=True), "orders").parquet(target)
    # [end land_orders]


def main() -> None:
    """Run with the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Land the orders that no earlier run has read.")
    parser.add_argument("orders", help="folder of the Parquet files")
    parser.add_argument("--settle-for", type=int, default=60, help="seconds to wait for open transactions, at most")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("land_orders").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        run(spark, arguments.orders, timedelta(seconds=arguments.settle_for))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
