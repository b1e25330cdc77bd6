"""The switch from Glue, as the guide tells it: each row once in the real target, and a way back."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from airflow_bookmarks.glue.bookmarks.entry import read_entry
from airflow_bookmarks.glue.bookmarks.first_run import ContextPlace, take_over
from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.lifecycle.changes.change import rewind, set_state
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.glue.running import Script

LAST_RUN_OF_GLUE = datetime(2026, 11, 2, 1, tzinfo=UTC)
DAY = timedelta(days=1)
FIRST_ID = 1_000_000_000
TIMESTAMPS = {"HIGH_BAND": "900000", "CURR_RUN_START_TIME": LAST_RUN_OF_GLUE.isoformat(), "INCLUDE_LIST": ""}
STATE = {"jsonClass": "HadoopDataSourceJobBookmarkState", "timestamps": TIMESTAMPS}
ENTRY = {"JobName": "orders", "Version": 4, "Run": 3, "RunId": "jr_0a02", "JobBookmark": json.dumps({"orders": STATE})}


class Shop:
    """Orders with their items as JSON; what Glue makes of them, and what a job here does."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.script = Script(spark, root, "orders")
        self.raw = root / "raw"
        self.raw.mkdir()

    def path(self, target: str, table: str) -> str:
        return str(self.root / target / table)

    def deliver(self, name: str, *orders: int, age: timedelta) -> None:
        """Write a file of orders, so much older than the start of Glue's last run that is taken over."""
        path = self.raw / f"{name}.json"
        path.write_text("".join(f"{json.dumps({'order': n, 'items': [{'sku': n}] * (n % 3)})}\n" for n in orders))
        seconds = (LAST_RUN_OF_GLUE - age).timestamp()
        os.utime(path, (seconds, seconds))

    def append_as_glue(self, *orders: int) -> None:
        """Append what Glue's job would, in files named as Glue does; its ids are the numbers of the orders."""
        roots = self.spark.createDataFrame([(n if n % 3 else None, n) for n in orders], "items long, order int")
        rows = [(n, at, n) for n in orders for at in range(n % 3)]
        items = self.spark.createDataFrame(rows, "id long, index int, `items.val.sku` int")
        for table, rows_of_table in (("root", roots), ("root_items", items)):
            rows_of_table.coalesce(1).write.mode("append").parquet(self.path("lake", table))
            for path in (self.root / "lake" / table).glob("part-*"):
                path.rename(path.with_name(f"run-{path.name}"))

    def run(self, target: str) -> None:
        """Make one run of the script, into a target that an argument names."""

        def body(context: GlueContext) -> None:
            orders = context.create_dynamic_frame.from_options(
                "s3", {"paths": [str(self.raw)]}, "json", transformation_ctx="orders"
            )
            flat = orders.relationalize("root", str(self.root / "tmp"), transformation_ctx="flat")
            for table in ("root", "root_items"):
                context.write_dynamic_frame.from_options(
                    flat.select(table),
                    "s3",
                    {"path": self.path(target, table)},
                    "glueparquet",
                    transformation_ctx=table,
                )

        self.script.run(body)

    def run_that_reads_nothing(self) -> None:
        self.script.run(lambda context: None)

    def bring_over(self) -> None:
        """Append to the real target what only the folder beside has, children first."""
        read = self.spark.read.parquet
        missing = read(self.path("beside", "root")).join(read(self.path("lake", "root")), "order", "left_anti")
        ids = missing.select(missing["items"].alias("id"))
        items = read(self.path("beside", "root_items")).join(ids, "id", "left_semi")
        items.write.mode("append").parquet(self.path("lake", "root_items"))
        missing.select("items", "order").write.mode("append").parquet(self.path("lake", "root"))

    def remove_what_was_brought_over(self) -> None:
        for path in (self.root / "lake").rglob("part-*"):
            path.unlink()

    def orders(self) -> list[int]:
        return sorted(row["order"] for row in self.spark.read.parquet(self.path("lake", "root")).collect())

    def items_of(self, *orders: int) -> list[tuple[int, int]]:
        """Return the items to which the ids of these orders lead: of each the order, and the one that it tells."""
        read = self.spark.read.parquet
        roots = read(self.path("lake", "root")).select(col("items").alias("id"), "order")
        joined = roots.join(read(self.path("lake", "root_items")), "id").where(col("order").isin(*orders))
        return sorted((row["order"], row["items.val.sku"]) for row in joined.collect())


@pytest.fixture
def shop(spark: SparkSession, store: BookmarkStore, tmp_path: Path) -> Shop:
    """Open the shop as step 3 of the switch leaves it: orders 3 and 5 came late, 7 after Glue's last run."""
    spark.conf.set("spark.bookmarks.store", f"sqlite:///{tmp_path}/bookmarks.db?namespace=test")
    shop = Shop(spark, tmp_path)
    shop.deliver("before", 1, 2, age=DAY)
    shop.append_as_glue(1, 2)
    take_over(store, read_entry(ENTRY), {"orders": ContextPlace([str(shop.raw)])})
    set_state(store, "orders", "glue.relationalize.flat", {"items": FIRST_ID}, reason="ids", who="ada")

    shop.deliver("on_time", 4, age=-DAY)
    shop.append_as_glue(4)
    shop.deliver("late", 3, 5, age=2 * DAY)
    shop.deliver("after", 7, age=-2 * DAY)
    shop.run("beside")
    shop.bring_over()
    return shop


def test_switch_leaves_each_row_once_in_the_real_target(shop: Shop) -> None:
    shop.deliver("new", 8, age=-3 * DAY)

    shop.run("lake")

    assert shop.orders() == [1, 2, 3, 4, 5, 7, 8]


@pytest.mark.seldom
def test_ids_after_the_switch_lead_to_their_own_items(shop: Shop) -> None:
    shop.deliver("new", 8, age=-3 * DAY)

    shop.run("lake")

    assert shop.items_of(5, 7, 8) == [(5, 5), (5, 5), (7, 7), (8, 8), (8, 8)]


@pytest.mark.seldom
def test_way_back_removes_what_was_written_here_by_a_run_that_reads_nothing(shop: Shop, store: BookmarkStore) -> None:
    shop.deliver("new", 8, age=-3 * DAY)
    shop.run("lake")

    rewind(store, "orders", 2, clean=True, reason="back to Glue", who="ada")
    shop.run_that_reads_nothing()
    assert shop.orders() == [1, 2, 3, 4, 5, 7]

    shop.remove_what_was_brought_over()
    shop.append_as_glue(7, 8)
    shop.bring_over()
    assert shop.orders() == [1, 2, 3, 4, 5, 7, 8]
