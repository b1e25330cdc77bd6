"""Keep how late each carrier was on each day. A Spark script: it reads what another job has published and it has not.

    spark-submit flight_delays.py DELAYS JOURNAL [--upstream flights_clean.clean]
        [--on-rewind fail|rewind|rewind_keep|ignore]

DELAYS gets Parquet, partitioned by month and day: per carrier the flights, those that arrived, and their mean and
largest delay in minutes. The upstream publishes whole days, so the days that were read are replaced.

JOURNAL gets Parquet to which each run appends a row for each day that it has read. With `rewind` the rows of the runs
that are undone are removed before their days are read again, so no row is there twice.
"""

from __future__ import annotations

import argparse
from typing import Literal, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob

OnRewind = Literal["fail", "rewind", "rewind_keep", "ignore"]


def delays(flights: DataFrame) -> DataFrame:
    """Return the delays per day and carrier, all of one day together, so that each day becomes one file."""
    per_carrier = flights.groupBy("month", "day", "carrier").agg(
        F.count(F.lit(1)).alias("flights"),
        F.count("arr_delay").alias("arrived"),
        F.avg("arr_delay").alias("mean_arr_delay"),
        F.max("arr_delay").alias("max_arr_delay"),
    )
    return per_carrier.repartition("month", "day")


def journal(flights: DataFrame) -> DataFrame:
    """Return a row for each day that was read: how many flights it had then."""
    return flights.groupBy("month", "day").agg(F.count(F.lit(1)).alias("flights"))


def run(spark: SparkSession, target: str, kept_in: str, upstream: str, on_rewind: OnRewind) -> None:
    """Bring the delays in `target` up to what `upstream` has published, and append its days to `kept_in`."""
    with BookmarkedJob(spark) as job:
        flights = job.read("flights", count_rows=True).upstream(upstream, on_rewind=on_rewind)
        (
            job.write(delays(flights), "delays")
            .format("parquet")
            .mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("month", "day")
            .save(target)
        )
        job.write(journal(flights), "journal").mode("append").parquet(kept_in)


def main() -> None:
    """Run with what the command line says."""
    parser = argparse.ArgumentParser(description="Bring the delays up to the flights that were cleaned since.")
    parser.add_argument("delays", help="folder of the delays")
    parser.add_argument("journal", help="folder of the journal")
    parser.add_argument("--upstream", default="flights_clean.clean", help="job whose output is read")
    parser.add_argument("--on-rewind", choices=("fail", "rewind", "rewind_keep", "ignore"), default="fail")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("flight_delays").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        on_rewind = cast("OnRewind", arguments.on_rewind)
        run(spark, arguments.delays, arguments.journal, arguments.upstream, on_rewind)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
