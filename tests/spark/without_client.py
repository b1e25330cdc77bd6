"""A driver whose Python has no client for databases: `test_jdbc_without_client.py` runs it and asks it for runs.

It takes one JSON object a line, and answers each with one: what a run read, or the error that ended it.
"""

from __future__ import annotations

import importlib.abc
import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from types import ModuleType
from typing import Any

ABSENT = ("psycopg", "psycopg2", "pymysql", "sqlalchemy")


class Absent(importlib.abc.MetaPathFinder):
    """Finds no client, as in an environment where none is installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def answer(spark: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Make one run: read a table, and write it to another one where that is asked for."""
    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.spark import BookmarkedJob

    how: dict[str, Any] = dict(asked.get("how", {}))
    how |= {name: timedelta(seconds=asked[name]) for name in ("settle", "settle_for") if name in asked}
    try:
        with BookmarkedJob(spark, asked["job"], store=asked["store"]) as job:
            frame = job.read("orders").jdbc(asked.get("url", "conn:shop"), asked["table"], **how)
            rows = sorted(row.id for row in frame.select("id").collect())
            if "target" in asked:
                job.write(frame, "copy").jdbc("conn:shop", asked["target"])
    except BookmarkError as error:
        return {"error": type(error).__name__, "text": str(error)}
    return {"rows": rows, "parts": frame.rdd.getNumPartitions()}


def main(jars: str) -> None:
    sys.meta_path.insert(0, Absent())
    from pyspark.sql import SparkSession

    conf: dict[str, Any] = {"spark.jars": jars, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    builder = SparkSession.builder.master("local[2]").config(map=conf)
    spark = builder.getOrCreate()
    print(json.dumps({"absent": [name for name in ABSENT if name not in sys.modules]}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
