"""What a set of a context over an Iceberg table passes over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg", reason="no pyiceberg, which is an extra")

from airflow_bookmarks.core.errors import LookRefusedError
from airflow_bookmarks.files.permission import looking_below
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.sources.iceberg.look import look
from airflow_bookmarks.sources.iceberg.position import IcebergRecipe
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.testing.memory import memory_store
from tests.sources.iceberg.tables import OwnTable
from tests.sources.iceberg.test_partitions import BY_REGION, COLUMNS, Orders
from tests.sources.skipping import CTX, Skipping


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Skipping]:
    with memory_store() as store:
        yield Skipping(tmp_path, store)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnTable:
    return OwnTable(tmp_path, monkeypatch)


def read(shop: Skipping, table: OwnTable, **options: Any) -> None:
    recipe = IcebergRecipe("lake.shop.orders", table.location, VersionOptions(**options))
    shop.read(IcebergSource(recipe, "job 'copy'", lambda: look(recipe), job="copy"))


def size_of(table: OwnTable, *places: int) -> int:
    """Return how many bytes snapshots have added; `places` are theirs in the order of their commits, from 0."""
    summaries = [table.table.metadata.snapshots[place].summary for place in places]
    return sum(int(each.additional_properties["added-files-size"]) for each in summaries if each is not None)


def test_set_ahead_counts_snapshots_files_bytes_and_rows(shop: Skipping, table: OwnTable) -> None:
    table.add(1)
    read(shop, table)
    table.add(2)
    table.add(3, 4)
    first, second, third = table.ids

    both = NeverReadInput(2, size_of(table, 1, 2), rows=3, amounts={"snapshots": 2})
    assert shop.skips("now") == both
    assert shop.skips(str(third)) == both
    assert shop.skips(str(second)) == NeverReadInput(1, size_of(table, 1), rows=1, amounts={"snapshots": 1})
    assert shop.skips(str(first)) == NeverReadInput()


def test_set_back_skips_nothing(shop: Skipping, table: OwnTable) -> None:
    table.add(1)
    table.add(2)
    read(shop, table)
    assert shop.skips(str(table.ids[0])) == NeverReadInput()


def test_jobs_that_will_not_see_it_are_named(shop: Skipping, table: OwnTable) -> None:
    table.add(1)
    read(shop, table)
    shop.run("down", upstream="copy")
    table.add(2)
    assert shop.skips("now").consumers == ("down",)


def test_table_of_which_nothing_was_read_is_counted_whole(shop: Skipping, table: OwnTable) -> None:
    read(shop, table)
    table.add(1)
    table.add(2)
    told = shop.skips("now")
    assert (told.files, told.bytes, told.rows) == (2, size_of(table, 0, 1), 2)


@pytest.mark.parametrize(("on_change", "rows"), [("error", 2), ("ignore", None)])
def test_what_a_change_of_rows_wrote_is_skipped_unless_runs_leave_it_out_anyway(
    shop: Skipping, table: OwnTable, on_change: str, rows: int | None
) -> None:
    table.add(1, 2, 3)
    read(shop, table, on_change=on_change)
    table.delete("id = 1")
    assert (shop.skips("now").rows, shop.skips("now").unknown) == (rows, None)


def test_values_that_are_read_less_far_are_counted_from_there(
    shop: Skipping, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Orders(OwnTable(tmp_path, monkeypatch))
    orders.own.catalog.create_table("shop.by_region", COLUMNS, partition_spec=BY_REGION)
    orders.put((1, "eu"), (2, "us"))
    orders.put((3, "us"))
    parts = PartLoop(CTX)
    while not parts.is_over:  # eu, and then us, which fails
        parts.begin()
        run = shop.begin()
        run.plan(CTX, orders.source(parts, "one"))
        run.abort("us is wrong") if parts.is_over else run.commit()
    orders.put((4, "eu"))
    ids = [str(each.snapshot_id) for each in orders.table.metadata.snapshots]

    told = [shop.skips(each) for each in ids]

    assert [(each.files, each.rows, each.bytes) for each in told] == [(1, 1, None), (2, 2, None), (3, 3, None)]
    assert [each.amounts for each in told] == [{}, {}, {"snapshots": 1}]


def test_snapshots_that_have_expired_are_said_not_to_be_countable(shop: Skipping, table: OwnTable) -> None:
    table.add(1)
    read(shop, table)
    for number in (2, 3, 4):
        table.add(number)
    table.expire(*table.ids[:2])
    told = shop.skips("now")
    assert told.files is None
    assert "can't be counted: snapshots of the Iceberg table 'lake.shop.orders' between " in str(told.unknown)


def test_process_that_may_not_look_does_not_ask_the_catalog_of_a_job(shop: Skipping, table: OwnTable) -> None:
    table.add(1)
    recipe = IcebergRecipe("lake.shop.orders", table.location)
    with looking_below(), pytest.raises(LookRefusedError, match="connects to no database or sink that a job names"):
        look(recipe)
