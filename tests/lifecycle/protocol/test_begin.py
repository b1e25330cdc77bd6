"""Begin: a job whose items contradict each other is left alone, and said to be damaged."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from airflow_bookmarks.store.table import Attributes, Delete, Update
from tests.lifecycle.shop import Shop


def test_job_whose_head_was_lost_is_not_begun_anew(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.store.table.transact([Delete(shop.store.keys("copy").head)])
    with pytest.raises(StateCorruptError, match="head of job 'copy' is gone"):
        shop.begin()
    assert shop.store.snapshot("copy").head is None


def test_job_that_never_committed_begins_though_its_head_is_gone(shop: Shop) -> None:
    shop.begin().abort("stopped before anything was read")
    shop.store.table.transact([Delete(shop.store.keys("copy").head)])
    shop.put("a.txt", "a")
    assert shop.run()[0] == ["a"]


@pytest.mark.parametrize(
    "odd",
    [
        {"alias_of": "other"},
        {"publishing": "01.1"},
    ],
    ids=["alias", "run key"],
)
def test_begin_ends_where_nothing_moves_and_nothing_can_be_taken(shop: Shop, odd: Attributes) -> None:
    shop.put("a.txt", "a")
    shop.run()
    keys = shop.store.keys("copy")
    shop.store.table.transact([Update(keys.head, set=odd)])
    before = shop.store.table.get([keys.head])
    with pytest.raises(StateCorruptError, match="Nothing was read or changed"):
        shop.begin()
    assert shop.store.table.get([keys.head]) == before


def test_list_shows_a_job_whose_head_was_lost_as_damaged(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.run("report", upstream="copy")
    shop.store.table.transact([Delete(shop.store.keys("copy").head)])

    damaged = {row["job"]: row["damaged"] for row in bookmarks(shop.store)}

    assert "head of job 'copy' is gone" in damaged["copy"]
    assert damaged["report"] is None
