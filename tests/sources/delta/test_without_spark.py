"""What an Airflow worker does with a job that reads a Delta table: it looks, and makes an empty run, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import files_of, page_of
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.delta.checkpoint import arrow
from airflow_bookmarks.sources.delta.position import DeltaRecipe
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.sources.delta.tables import Table

JOB, CTX = "shop.copy", "orders"


@pytest.fixture
def store() -> Iterator[BookmarkStore]:
    with memory_store() as made:
        yield made


@pytest.fixture
def table(store: BookmarkStore, tmp_path: Path) -> Table:
    """Make a table that a run has read."""
    made = Table(tmp_path / "orders")
    made.append(1)
    made.append(2)
    read(store, made, "first")
    return made


def read(store: BookmarkStore, table: Table, run_id: str) -> None:
    """Make a run that reads what is new in the table."""
    driver = DriverStore(store, None, lambda entry: None)
    run = ActiveRun.begin(driver, JOB, RunIdentity(run_id, 1), driver.environment)
    run.plan(CTX, DeltaSource(DeltaRecipe(table.path, "shop.orders"), "here", arrow(), job=JOB, ctx=CTX))
    run.commit()


def empty_run(store: BookmarkStore) -> bool:
    """Whether the worker has made an empty run."""
    driver = DriverStore(store, None, lambda entry: None)
    return commit_empty(driver, JOB, RunIdentity("second", 1), driver.environment) is not None


def test_look_tells_what_is_new(store: BookmarkStore, table: Table) -> None:
    assert pending(store, JOB).is_empty
    table.append(3, 4)
    (context,) = pending(store, JOB).contexts
    assert (context.files, context.amount is not None and context.amount.rows) == (1, 2)
    assert not empty_run(store)


def test_empty_run_moves_over_maintenance(store: BookmarkStore, table: Table) -> None:
    table.now.optimize.compact()
    assert pending(store, JOB).is_empty
    assert empty_run(store)
    assert store.head(JOB).contexts[CTX].watermark == "3"
    *_, last = store.runs(JOB)
    assert last.is_empty


def test_changed_rows_are_left_to_the_driver_with_the_reason(store: BookmarkStore, table: Table) -> None:
    table.now.delete("id = 1")
    (context,) = pending(store, JOB).contexts
    assert context.unknown is not None
    assert "version 3 (DELETE)" in context.unknown
    assert not empty_run(store)


def test_look_after_a_reset_needs_no_spark_either(store: BookmarkStore, table: Table) -> None:
    table.checkpoint()
    table.append(3)
    table.clean_before(3)
    reset(store, JOB, reason="anew", who="test")
    (context,) = pending(store, JOB).contexts
    assert context.files == 3


def test_data_files_of_a_run_are_listed_where_its_plan_names_them(store: BookmarkStore, table: Table) -> None:
    before = set(Path(table.path).glob("*.parquet"))
    for number in (3, 4, 5):
        table.append(number)
    read(store, table, "second")
    new = {str(path): path.stat().st_size for path in set(Path(table.path).glob("*.parquet")) - before}
    rows = files_of(store, JOB, "2")
    assert {row["path"]: row["bytes"] for row in rows} == new
    page = page_of(store, JOB, "2", offset=1, limit=1)
    assert (page.rows, page.total, page.unlisted) == ([rows[1]], 3, {})


def test_run_that_read_a_table_as_of_a_version_has_no_list_of_files(store: BookmarkStore, table: Table) -> None:
    page = page_of(store, JOB, "1", offset=0, limit=10)
    assert (page.rows, page.total, page.unlisted) == ([], 0, {CTX: "delta"})
    with pytest.raises(OptionError, match=r"kind 'delta', of which no files can be listed: .*Nothing was changed"):
        files_of(store, JOB, "1")


def test_pause_run_names_its_kind_so_that_its_files_are_listed(store: BookmarkStore, table: Table) -> None:
    table.append(3)
    driver = DriverStore(store, None, lambda entry: None)
    run = DetachedRun.begin(driver, JOB, RunIdentity("aside", 1), Choice.of("pause"), driver.environment)
    run.plan(CTX, DeltaSource(DeltaRecipe(table.path, "shop.orders"), "here", arrow(), job=JOB, ctx=CTX))
    run.commit()
    (row,) = files_of(store, JOB, "aside")
    assert (Path(row["path"]).parent, row["state"]) == (Path(table.path), "pause")
