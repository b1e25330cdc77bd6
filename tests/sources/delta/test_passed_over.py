"""What a set of a context over a Delta table passes over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import set_position
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.tables.versioned import VersionOptions
from airflow_bookmarks.testing.memory import memory_store
from tests.sources.delta.regions import CTX as ORDERS
from tests.sources.delta.regions import put, read_by_region
from tests.sources.delta.tables import FEED, Table
from tests.sources.skipping import CTX, Skipping


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Skipping]:
    with memory_store() as store:
        yield Skipping(tmp_path, store)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "orders", FEED)


def read(shop: Skipping, table: Table, **options: Any) -> None:
    recipe = DeltaRecipe(table.path, "shop.orders", VersionOptions(**options))
    shop.read(DeltaSource(recipe, "job 'copy'", arrow(), job="copy"))


def size_of(table: Table, *versions: int) -> int:
    """Return how many bytes versions have added."""
    return sum(int(table.add_of(version)["size"]) for version in versions)


def test_set_ahead_counts_versions_files_bytes_and_rows(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table)
    table.append(2)
    table.append(3, 4)

    both = NeverReadInput(2, size_of(table, 2, 3), rows=3, amounts={"versions": 2})
    assert shop.skips("now") == both
    assert shop.skips("3") == both
    assert shop.skips("2") == NeverReadInput(1, size_of(table, 2), rows=1, amounts={"versions": 1})
    assert shop.skips("1") == NeverReadInput()
    assert shop.skips("0") == NeverReadInput()


def test_jobs_that_will_not_see_it_are_named(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table)
    shop.run("down", upstream="copy")
    table.append(2)
    assert shop.skips("now").consumers == ("down",)


def test_compaction_is_nothing_that_is_skipped(shop: Skipping, table: Table) -> None:
    table.append(1)
    table.append(2)
    read(shop, table)
    table.now.optimize.compact()
    assert shop.skips("now") == NeverReadInput()


@pytest.mark.parametrize(("on_change", "files"), [("error", 1), ("reload", 1), ("ignore", 0)])
def test_what_a_change_of_rows_wrote_is_skipped_unless_runs_leave_it_out_anyway(
    shop: Skipping, table: Table, on_change: str, files: int
) -> None:
    table.append(1)
    read(shop, table, on_change=on_change)
    table.overwrite(7, 8)
    assert (shop.skips("now").files, shop.skips("now").unknown) == (files, None)


def test_of_a_change_feed_no_rows_are_told(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table, changes=True)
    table.append(2)
    told = shop.skips("now")
    assert (told.files, told.rows, told.amounts) == (1, None, {"versions": 1})


def test_files_that_a_first_read_has_not_come_to_are_skipped_too(shop: Skipping, table: Table) -> None:
    for number in (1, 2, 3):
        table.append(number)
    read(shop, table, bound=Bound(max_files=1))
    table.append(4)
    now = shop.skips("now")
    assert (now.files, now.rows, now.amounts) == (3, 3, {"versions": 1})  # two of the first read, and one of a version
    assert (shop.skips("3").files, shop.skips("3").rows) == (2, 2)
    assert shop.skips("0") == NeverReadInput()


def test_values_that_are_read_less_far_are_counted_from_there(shop: Skipping, tmp_path: Path) -> None:
    path = str(tmp_path / "by_region")
    put(path, (1, "eu"), (2, "us"))
    put(path, (3, "us"))
    read_by_region(shop.store, "copy", path, "us", identity=shop.identity())
    put(path, (4, "eu"))

    told = {value: shop.skips(value, ORDERS) for value in ("0", "1", "2")}

    assert {value: (each.files, each.rows) for value, each in told.items()} == {"0": (1, 1), "1": (2, 2), "2": (3, 3)}
    assert (told["1"].amounts, told["2"].amounts) == ({}, {"versions": 1})


def test_versions_that_the_log_has_lost_are_said_not_to_be_countable(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table)
    for number in (2, 3, 4):
        table.append(number)
    table.checkpoint()
    table.clean_before(4)
    told = shop.skips("now")
    assert (told.files, told.bytes, told.rows) == (None, None, None)
    assert str(told.unknown).startswith("can't be counted: version 2 of the Delta table ")


def test_table_that_is_another_one_is_said_not_to_be_countable(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table)
    table.append(2)
    log = table.log(1)
    log.write_bytes(log.read_bytes() + b"\n")
    assert "was replaced by another one since version 1" in str(shop.skips("now").unknown)


def test_preview_counts_what_the_next_run_does_not_read(shop: Skipping, table: Table) -> None:
    table.append(1)
    read(shop, table)
    table.append(2)
    table.append(3)
    assert shop.skips("2").rows == 1
    set_position(shop.store, "copy", CTX, "2", reason="a test", who="ada")
    assert shop.skips("now").rows == 1  # from there on
