"""Give flights that no earlier run has read the names of their carriers, batch by batch. A Spark script.

    spark-submit name_flights.py RAW NAMED --carriers CARRIERS.CSV [--files-per-batch 31]

RAW holds one CSV file per day, NAMED gets Parquet, partitioned by month. The names are read once for all batches.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob

FLIGHTS = """
    year INT, month INT, day INT,
    dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT, arr_delay INT,
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
    air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""


def run(spark: SparkSession, raw: str, target: str, carriers: str, files: int) -> None:
    """Drain what is new in `raw`, so many files at a time."""
    # [start name_flights]
    for batch in BookmarkedJob(spark).batches(max_files=files):
        with batch:
            flights = batch.read("flights").schema(FLIGHTS).csv(raw, header=True, nullValue="NA")
            names = batch.reference("carriers").csv(carriers, header=True)
            named = flights.join(names, "carrier", "left")
            batch.write(named, "named").partitionBy("month").parquet(target)
    # [end name_flights]


def main() -> None:
    """Run with what the command line says."""
    parser = argparse.ArgumentParser(description="Name the carriers of flights that no earlier run has read.")
    parser.add_argument("raw", help="folder of the delivered CSV files")
    parser.add_argument("named", help="folder of the named flights")
    parser.add_argument("--carriers", required=True, help="CSV file with the columns carrier and name")
    parser.add_argument("--files-per-batch", type=int, default=31)
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("name_flights").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        run(spark, arguments.raw, arguments.named, arguments.carriers, arguments.files_per_batch)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
