"""Promise OBS-3: a repair changes the job as the finding had it, or nothing, and says which of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.lifecycle.maintenance.doctor import Repaired, repair
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Delete, Operation, Table, Update
from tests.lifecycle.shop import Shop
from tests.lifecycle.shop import unsound as examine


class LosesReplies:
    """A table that does what it is asked, whose reply is lost, and which is then asked once more."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        self._table.transact(operations)
        self._table.transact(operations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


class Races:
    """A table on which somebody else is faster: `other` is written just before the first transaction."""

    def __init__(self, table: Table, other: Operation) -> None:
        self._table, self._other = table, [other]

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        if self._other:
            self._table.transact([self._other.pop()])
        self._table.transact(operations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


def leave_lease(shop: Shop) -> None:
    then = "2013-01-01T00:00:00.000000Z"
    lease: Attributes = {"lease_run_id": "gone", "lease_attempt": 2, "lease_nonce": "n", "lease_since": then}
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={**lease, "lease_until": then})])


def lose_publish(shop: Shop) -> None:
    keys = shop.store.keys("copy")
    shop.store.table.transact([Update(keys.run(RunKey(1, 1)), set={"state": "COMMITTED"})])
    shop.store.table.transact([Update(keys.head, set={"published": 0})])


def lose_entry(shop: Shop) -> None:
    shop.store.table.transact([Delete(shop.store.keys("copy").index)])


def stage_elsewhere(shop: Shop) -> None:
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"staging": ["/elsewhere"]})])


DAMAGES = pytest.mark.parametrize("plant", [leave_lease, lose_publish, lose_entry, stage_elsewhere])


def _repaired_on(shop: Shop, table: Any) -> Repaired:
    other = replace(shop, store=BookmarkStore(table, "test"))
    (done,) = repair(other.store, [f for f in examine(shop.store, with_lost=True) if f.is_repairable], who="ada")
    return done


@DAMAGES
def test_repair_whose_reply_was_lost_is_told_as_done(shop: Shop, plant: Callable[[Shop], None]) -> None:
    shop.put("a.txt", "a")
    shop.run()
    plant(shop)

    done = _repaired_on(shop, LosesReplies(shop.store.table))

    assert (done.is_done, [event["kind"] for event in shop.store.events("copy")]) == (True, ["repair"])


@DAMAGES
def test_repair_of_a_job_that_moves_meanwhile_changes_nothing(shop: Shop, plant: Callable[[Shop], None]) -> None:
    shop.put("a.txt", "a")
    shop.run()
    plant(shop)
    keys = shop.store.keys("copy")
    faster = Update(keys.index if plant is lose_entry else keys.head, set={"fence": 9, "lease_nonce": "of another"})

    done = _repaired_on(shop, Races(shop.store.table, faster))

    assert (done.is_done, done.what) == (False, "The job moved meanwhile; nothing was changed. Look again.")
    assert shop.store.events("copy") == []
