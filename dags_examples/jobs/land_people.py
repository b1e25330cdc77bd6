"""Merge the people of new deliveries into a Delta table. A Spark script.

    spark-submit land_people.py DELIVERIES PEOPLE

DELIVERIES holds files with one JSON object in each line: `id`, `name`, `seen`, the number of the version, and `gone`.
PEOPLE, the folder of the table, gets the newest version of each person, and loses those who are gone. It keeps a change
feed, which other jobs read.
"""

from __future__ import annotations

import argparse
from typing import Any

from pyspark.sql import SparkSession

from airflow_bookmarks.spark import BookmarkedJob


def run(spark: SparkSession, deliveries: str, people: str) -> None:
    """Read what no earlier run has read, and merge it into `people`."""
    # [start land_people]
    with BookmarkedJob(spark) as job:
        reader = job.read("people", deleted_when="gone").schema("id INT, name STRING, seen INT, gone BOOLEAN")
        rows = reader.json(deliveries)
        deletes: Any = rows.deletes  # which Spark's types take for a column
        merged = job.write(rows.drop("gone"), "people").upsert("id", order_by="seen", deletes=deletes)
        merged.option("delta.enableChangeDataFeed", "true").delta(people)
    # [end land_people]


def main() -> None:
    """Run with the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Merge the people of new deliveries into a Delta table.")
    parser.add_argument("deliveries", help="folder of the JSON files")
    parser.add_argument("people", help="folder of the Delta table")
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("land_people").getOrCreate()
    try:
        run(spark, arguments.deliveries, arguments.people)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
