"""Turn weather reports that no earlier run has read into Parquet, a partition per day. A Spark script.

    spark-submit convert_weather.py RAW WEATHER

RAW holds CSV files, each of an airport and an hour. One that is younger than five minutes is left to the next run:
somebody may still write it.
"""

from __future__ import annotations

import argparse
from datetime import timedelta

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob

WEATHER = """
    origin STRING, year INT, month INT, day INT, hour INT,
    temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE,
    precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP
"""


def run(spark: SparkSession, raw: str, target: str) -> None:
    """Convert what is new in `raw`, and append it to `target`."""
    # [start convert_weather]
    with BookmarkedJob(spark) as job:
        settled = job.read("reports").files(settle=timedelta(minutes=5))
        reports = settled.schema(WEATHER).csv(raw, header=True, nullValue="NA")
        job.write(reports, "weather").partitionBy("month", "day").parquet(target)
    # [end convert_weather]


def main() -> None:
    """Run with the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Convert weather reports that no earlier run has read.")
    parser.add_argument("raw", help="folder of the delivered CSV files")
    parser.add_argument("weather", help="folder of the Parquet files")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("convert_weather").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        run(spark, arguments.raw, arguments.weather)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
