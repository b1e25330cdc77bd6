"""What an Airflow worker does with a job that reads a Delta table: it looks, and makes an empty run, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.inspect.pending import pending
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
    driver = DriverStore(store, None, lambda entry: None)
    run = ActiveRun.begin(driver, JOB, RunIdentity("first", 1), driver.environment)
    run.plan(CTX, DeltaSource(DeltaRecipe(made.path, "shop.orders"), "here", arrow(), job=JOB, ctx=CTX))
    run.commit()
    return made


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
