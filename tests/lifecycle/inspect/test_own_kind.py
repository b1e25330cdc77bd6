"""Looks at a context of a kind of a user's own: what is not known of it is never shown as a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.run import PlanEntry
from airflow_bookmarks.lifecycle.inspect.difference import diff
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, make_table, put


class UncountedPlan(KeyPlan):
    """Keys of which it is not known how many they are."""

    @property
    def amount(self) -> Amount:
        return Amount("keys", None)


class UncountedSource(KeySource):
    """The planner of such."""

    def plan(self, found: PlanInput) -> KeyPlan:
        return UncountedPlan(**vars(super().plan(found)))


class UncountedKind(KeyKind):
    """The kind of such."""

    def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> KeySource:
        return UncountedSource(super().source_of(store, job, entry).database)


def run(store: BookmarkStore, source: KeySource) -> None:
    driver = DriverStore(store, None, lambda entry: None)
    run = ActiveRun.begin(driver, "copy", RunIdentity(store.new_id(), 1), driver.environment)
    run.plan("people", source)
    run.commit()


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Make an empty table."""
    database = str(tmp_path / "crm.db")
    make_table(database)
    return database


def test_runs_of_what_is_no_files_differ_by_no_number_of_files(database: str) -> None:
    with memory_store() as store:
        with registered(KeyKind()):
            for key in (1, 2):
                put(database, key)
                run(store, KeySource(database))
            known = diff(store, "copy", "1", "2")
        unknown = diff(store, "copy", "1", "2")
    names = ("only_in_a", "only_in_b", "other_version", "in_both")
    nothing = dict.fromkeys(names) | {"watermark": {"a": "1", "b": "2"}}
    assert (known["contexts"]["people"], unknown["contexts"]["people"]) == (nothing, nothing)


def test_run_that_has_read_an_unknown_amount_is_not_said_to_have_read_nothing(database: str) -> None:
    with memory_store() as store, registered(UncountedKind()):
        put(database, 1)
        run(store, UncountedSource(database))
        assert pending(store, "copy").up_to_script is None
