"""Advice on jobs that read tables by key, on PostgreSQL: nullable keys, and keys that are updated (OBS-8)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.advice.advice import Advice, AdviceCode
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.maintenance.doctor import advise
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer

BY_TIME: dict[str, Any] = {"keys": ("at", "id"), "lookback": timedelta(days=1)}


@pytest.fixture
def shop(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    """Make a database with an empty table of orders, whose keys can't be NULL."""
    with new_database(postgresql_server) as login:
        made = Shop(login)
        made.run("CREATE TABLE orders (id int PRIMARY KEY, at timestamptz NOT NULL, paid timestamptz, amount int)")
        yield made


def add(shop: Shop, *ids: int, hour: int = 8) -> None:
    rows = ", ".join(f"({each}, '2013-01-31 {hour:02}:00:00', NULL, 1)" for each in ids)
    shop.run(f"INSERT INTO orders VALUES {rows}")


def run(store: BookmarkStore, shop: Shop, number: int, **how: Any) -> None:
    made = ActiveRun.begin(store, "copy", RunIdentity(f"manual/{number}", 1), RunEnvironment())
    made.plan("orders", shop.source(**how))
    made.commit()


def advice(store: BookmarkStore) -> list[Advice]:
    (found,) = advise(store, jobs=["copy"])
    assert found.runs
    assert found.damaged_runs == {}
    return list(found.advice)


def test_nullable_key_is_told_with_the_rows_left_out(store: BookmarkStore, shop: Shop) -> None:
    add(shop, 1, 2, 3)
    for number in (1, 2):
        shop.run(f"UPDATE orders SET paid = now() - interval '1 day' WHERE id = {number}")
        run(store, shop, number, keys=("paid",), on_null="skip")
    (found,) = advice(store)
    assert found.code is AdviceCode.NULLABLE_KEY
    assert "run 2 read by paid, of which the table lets paid be NULL" in found.evidence
    assert found.cost.startswith("run 2 left 1 row out; runs 1-2 left 2 at most")


def test_key_that_can_not_be_null_gets_no_advice(store: BookmarkStore, shop: Shop) -> None:
    for number in (1, 2, 3, 4):
        add(shop, number)
        run(store, shop, number)
    assert advice(store) == []


def test_query_does_not_tell_whether_its_key_may_be_null(store: BookmarkStore, shop: Shop) -> None:
    add(shop, 1)
    run(store, shop, 1, query="SELECT id FROM orders")
    assert advice(store) == []


@pytest.mark.parametrize("keys", [("at",), ("at", "id")])
def test_rows_updated_after_they_were_read_are_counted(store: BookmarkStore, shop: Shop, keys: tuple[str, ...]) -> None:
    add(shop, 1, 2)
    run(store, shop, 1, **{**BY_TIME, "keys": keys})
    for number in (2, 3, 4):
        shop.run(f"UPDATE orders SET at = '2013-01-31 {8 + number:02}:00:00' WHERE id <= 2")
        add(shop, 10 + number, hour=8 + number)
        run(store, shop, number, **{**BY_TIME, "keys": keys})
    (found,) = advice(store)
    assert found.code is AdviceCode.UPDATED_KEY
    assert found.evidence == "6 of 9 rows of runs 2-4 had been read before, and were updated since"
    assert found.cost.startswith("67% of the rows were read again")


def test_rows_that_are_only_added_get_no_advice(store: BookmarkStore, shop: Shop) -> None:
    for number in (1, 2, 3, 4, 5):
        add(shop, 2 * number, 2 * number + 1, hour=8 + number)
        run(store, shop, number, **BY_TIME)
    assert advice(store) == []
