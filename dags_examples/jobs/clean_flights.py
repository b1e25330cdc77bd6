"""Turn delivered flights into clean ones. A Spark script: it reads what no earlier run has read.

    spark-submit clean_flights.py RAW CLEAN

RAW holds one CSV file per day, CLEAN gets Parquet, partitioned by month and day. A file holds all flights of its day,
so it replaces that day: one that is delivered again, corrected, leaves no row of the former one.

`NA` stands for a value that there is none of (a cancelled flight never departed) and becomes null; the flight stays. A
bad row is left out: one that does not fit the columns, or does not say which flight of which day it is. Bad rows are
what lies between the rows read and the rows written, and both counts are kept with the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.spark import BookmarkedJob

BAD_ROW = "bad_row"
IDENTITY = ("year", "month", "day", "carrier", "flight", "origin", "dest", "time_hour")
FLIGHTS = f"""
    year INT, month INT, day INT,
    dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT,
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP,
    {BAD_ROW} STRING
"""


def clean(flights: DataFrame) -> DataFrame:
    """Return the good rows, all of one day together, so that each day becomes one file."""
    is_known = reduce(and_, [F.col(name).isNotNull() for name in IDENTITY])
    good = flights.where(F.col(BAD_ROW).isNull() & is_known).drop(BAD_ROW)
    return good.repartition("month", "day")


def run(spark: SparkSession, raw: str, target: str) -> Mapping[str, Any] | None:
    """Clean what is new in `raw` into `target`; return the summary of the run."""
    with BookmarkedJob(spark) as job:
        flights = (
            job.read("flights", count_rows=True)
            .format("csv")
            .schema(FLIGHTS)
            .option("header", True)
            .option("enforceSchema", False)  # columns in another order are an error, not values in the wrong place
            .option("mode", "PERMISSIVE")
            .option("columnNameOfCorruptRecord", BAD_ROW)
            .option("nullValue", "NA")
            .load(raw)
        )
        (
            job.write(clean(flights), "clean")
            .format("parquet")
            .mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("month", "day")
            .save(target)
        )
    return job.summary


def main() -> None:
    """Run with the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Clean the flights that no earlier run has read.")
    parser.add_argument("raw", help="folder of the delivered CSV files")
    parser.add_argument("clean", help="folder of the clean flights")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("clean_flights").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        summary = run(spark, arguments.raw, arguments.clean)
        if summary is not None:
            read, written = summary["contexts"]["flights"]["rows"], summary["outputs"]["clean"]["rows"]
            print(f"clean_flights: {read} rows read, {written} written, {(read or 0) - (written or 0)} bad")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
