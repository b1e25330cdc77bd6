"""What `set` says of input that no run will ever read, of tables: in versions, rows and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import Shop
from tests.sources.delta.tables import Table

JOB = "tables"


@pytest.fixture
def table(tmp_path: Path, uri: str) -> Table:
    """Make a table of which a job has read the first version."""
    store = open_store(uri)
    store.init()
    shop, table = Shop(tmp_path, store), Table(tmp_path / "orders")
    table.append(1)
    run = shop.begin(JOB)
    run.plan("orders", DeltaSource(DeltaRecipe(table.path, "shop.orders"), f"job {JOB!r}", arrow()))
    run.commit()
    return table


def told(uri: str, capsys: pytest.CaptureFixture[str], value: str) -> str:
    """Return what a set to a value would do, in words."""
    assert main(["--store", uri, "set", JOB, "orders", value, "--reason", "a test", "--dry-run"]) == 0
    return capsys.readouterr().out


def test_set_that_skips_a_version_of_a_table_says_how_much(
    table: Table, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table.append(2, 3)
    size = table.add_of(2)["size"]
    never = f"WARNING: NEVER READ: 1 file, {size:,} bytes, 2 rows, 1 version that context 'orders' has not read yet"
    assert never in told(uri, capsys, "now")
    assert "NEVER READ" not in told(uri, capsys, "1")


def test_set_whose_skip_can_not_be_counted_says_why(table: Table, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (2, 3, 4):
        table.append(number)
    table.checkpoint()
    table.clean_before(4)
    never = "WARNING: NEVER READ, and how much is NOT KNOWN (can't be counted: version 2 of the Delta table "
    assert never in told(uri, capsys, "now")
