"""A sharded job as one row: its watermark is the highest of its shards, by the order that they store."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.lifecycle.inspect.sharded_list import grouped
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from tests.lifecycle.shop import Shop


@pytest.mark.parametrize(
    ("orders", "highest", "told"),
    [
        (("path", "path"), "9", "path"),
        (("number", "number"), "10", "number"),
        (("path", None), "9", "path"),
        ((None, None), "10", None),
        (("number", "path"), "10", None),
        (("of a newer version", "of a newer version"), "10", "of a newer version"),
    ],
)
def test_watermark_of_a_sharded_job_is_the_highest_by_the_order_that_its_shards_store(
    shop: Shop, orders: tuple[str | None, str | None], highest: str, told: str | None
) -> None:
    for number in range(2):
        shop.put(f"{number}.txt", "a")
        shop.run(shard_name("flights", number))
    rows = bookmarks(shop.store)
    for row, mark, order in zip(rows, ("9", "10"), orders, strict=True):
        row["watermark"], row["order"] = {"raw": mark}, {"raw": order}

    (row,) = grouped(rows)

    assert (row["watermark"], row["order"]) == ({"raw": highest}, {"raw": told})
