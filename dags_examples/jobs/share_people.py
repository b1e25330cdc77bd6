"""Merge what has changed in a Delta table into an Iceberg table. A Spark script.

    spark-submit share_people.py PEOPLE SHARED

PEOPLE is the folder of the Delta table, which keeps a change feed, SHARED the name of the Iceberg table. Of several
changes to one person since the last run the newest counts.
"""

from __future__ import annotations

import argparse
from typing import Any

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob


def run(spark: SparkSession, people: str, shared: str) -> None:
    """Read what has changed in `people` since the last run, and merge it into `shared`."""
    # [start share_people]
    with BookmarkedJob(spark) as job:
        feed = job.read("people").delta(people, changes=True)
        deletes: Any = feed.deletes  # which Spark's types take for a column
        rows = feed.where("_change_type IN ('insert', 'update_postimage')").drop("_change_type", "_commit_timestamp")
        job.write(rows, "shared").upsert("id", order_by="_commit_version", deletes=deletes).iceberg(shared)
    # [end share_people]


def main() -> None:
    """Run with the tables that the command line names."""
    parser = argparse.ArgumentParser(description="Merge what has changed in a Delta table into an Iceberg table.")
    parser.add_argument("people", help="folder of the Delta table")
    parser.add_argument("shared", help="name of the Iceberg table")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("share_people").getOrCreate()
    try:
        run(spark, arguments.people, arguments.shared)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
