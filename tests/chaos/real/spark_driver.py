"""The driver with Spark: one attempt of the copy job as its order says.

spark-submit tests/chaos/real/spark_driver.py <order>
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.spark import BookmarkedJob
from tests.aborting import aborted_on_error
from tests.chaos.kill import killed_at
from tests.chaos.real.driver import begin, plan, say_to_file, write_rows
from tests.chaos.real.order import CTX, JOB, OUTPUT, STARTED, CommitPath, Order


def main(order: Order) -> None:
    """Make the run as the script of a user does."""
    say_to_file(order)
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if order.path is CommitPath.BY_ITSELF:
        drive_by_itself(order, spark)
    else:
        drive_staged(order, spark)


def drive_staged(order: Order, spark: SparkSession) -> None:
    """Copy the lines of new files, each file to a partition of its name."""
    order.pass_gate(STARTED)
    with (
        killed_at(order.fault),
        BookmarkedJob(spark, JOB, store=order.store, run_id=order.run_id, attempt=order.attempt) as job,
    ):
        lines = job.read(CTX).text(f"{order.root}/raw")
        named = lines.withColumn("file", F.regexp_extract(F.input_file_name(), r"([^/]+)\.txt$", 1))
        writer = job.write(named, OUTPUT).partitionBy("file")
        if order.path is CommitPath.OVERWRITE:
            writer = writer.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.text(f"{order.root}/{JOB}")
        order.pass_gate(Failpoint.STAGED)


def drive_by_itself(order: Order, spark: SparkSession) -> None:
    """Write what Spark reads into the sink that commits by itself; the runtime has no door for such a sink."""
    run = begin(order)
    with aborted_on_error(run):
        paths = plan(order, run).files.paths
        rows = spark.read.text([f"file://{path}" for path in paths]).collect() if paths else []
        write_rows(order, run, [row[0] for row in rows])
        run.commit()


if __name__ == "__main__":
    main(Order.from_text(sys.argv[1]))
