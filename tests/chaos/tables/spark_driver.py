"""The driver with Spark: one attempt of the job as its order says. `AIRFLOW_CONN_DW` leads to the warehouse.

spark-submit tests/chaos/tables/spark_driver.py <order>
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob
from tests.chaos.kill import killed_at
from tests.chaos.real.driver import say_to_file
from tests.chaos.real.order import CTX, JOB, OUTPUT
from tests.chaos.tables.order import APPENDED, UPSERTED, TablesOrder


def main(order: TablesOrder) -> None:
    """Make the run as the script of a user does."""
    say_to_file(order)
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with (
        killed_at(order.fault),
        BookmarkedJob(spark, JOB, store=order.store, run_id=order.run_id, attempt=order.attempt) as job,
    ):
        lines = job.read(CTX).text(f"{order.root}/raw")
        named = lines.withColumn("file", F.regexp_extract(F.input_file_name(), r"([^/]+)\.txt$", 1))
        job.write(named, OUTPUT).partitionBy("file").text(f"{order.root}/{JOB}")
        job.write(lines.withColumnRenamed("value", "line"), APPENDED).jdbc("conn:dw", APPENDED)
        parts = F.split("value", ",")
        rows = lines.select(*(parts[at].cast("int").alias(name) for at, name in enumerate(("id", "version", "gone"))))
        live, gone = rows.where("gone = 0").drop("gone"), rows.where("gone = 1")
        job.write(live, UPSERTED).upsert("id", order_by="version", deletes=gone).jdbc("conn:dw", UPSERTED)


if __name__ == "__main__":
    main(TablesOrder.from_text(sys.argv[1]))
