"""Find the flights that departed late in files that no earlier run has read. A Spark script for a sharded job.

    spark-submit late_flights.py RAW LATE

RAW holds one CSV file per day, LATE gets Parquet. The loop makes one run for each virtual shard that the task works on;
in a task without shards it makes one run, of all that is new.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob

LATE_FROM = 15  # minutes
FLIGHTS = """
    year INT, month INT, day INT,
    dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT,
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""


def run(spark: SparkSession, raw: str, target: str) -> None:
    """Find what is late in the share of this task."""
    # [start late_flights]
    for job in BookmarkedJob(spark).shards():
        with job:
            flights = job.read("flights").schema(FLIGHTS).csv(raw, header=True, nullValue="NA")
            job.write(flights.where(F.col("dep_delay") >= LATE_FROM), "late").parquet(target)
    # [end late_flights]


def main() -> None:
    """Run with the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Find late flights in files that no earlier run has read.")
    parser.add_argument("raw", help="folder of the delivered CSV files")
    parser.add_argument("late", help="folder of the late flights")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("late_flights").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        run(spark, arguments.raw, arguments.late)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
