"""The driver of a Delta or Iceberg table: one attempt of the copy job as its order says, and then a look at the table.

spark-submit tests/chaos/tables/table_driver.py <order> <delta or iceberg>
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob
from tests.chaos.kill import killed_at
from tests.chaos.real.driver import say_to_file
from tests.chaos.real.order import CTX, JOB, OUTPUT, Order

SEEN = "seen.json"  # beside the raw folder: what a reader of the table sees after an attempt


def main(order: Order, kind: str) -> None:
    """Make the run as the script of a user does."""
    say_to_file(order)
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    table = f"{order.root}/orders" if kind == "delta" else "lake.shop.orders"
    with (
        killed_at(order.fault),
        BookmarkedJob(spark, JOB, store=order.store, run_id=order.run_id, attempt=order.attempt) as job,
    ):
        writer = job.write(job.read(CTX).text(f"{order.root}/raw"), OUTPUT)
        (writer.delta if kind == "delta" else writer.iceberg)(table)
    lines = sorted(row["value"] for row in spark.read.format(kind).load(table).collect())
    (Path(order.root) / SEEN).write_text(json.dumps(lines))


if __name__ == "__main__":
    main(Order.from_text(sys.argv[1]), sys.argv[2])
