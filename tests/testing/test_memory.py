"""The store in memory: each has its own, and it is a store like any other."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import NameInvalidError
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing import memory_store
from airflow_bookmarks.testing.fixtures import bookmark_store

__all__ = ["bookmark_store"]  # as pytest_plugins would bring it


def commit_a_run(store: BookmarkStore) -> None:
    with BookmarkedJob(name="counter", store=store) as job:
        job.state("runs").set(job.state("runs").get(0) + 1)


def test_job_keeps_its_bookmark_in_the_store_of_the_fixture(bookmark_store: BookmarkStore) -> None:
    commit_a_run(bookmark_store)
    commit_a_run(bookmark_store)
    assert bookmark_store.head("counter").run_number == 2


@pytest.mark.parametrize("time", ["first", "second"])
def test_each_test_has_an_empty_store(bookmark_store: BookmarkStore, time: str) -> None:
    assert bookmark_store.jobs() == []
    commit_a_run(bookmark_store)


def test_two_stores_in_memory_know_nothing_of_each_other() -> None:
    with memory_store() as one, memory_store() as other:
        commit_a_run(one)
        assert other.jobs() == []


def test_namespace_of_a_store_in_memory_is_checked() -> None:
    with memory_store("people") as store:
        assert store.namespace == "people"
    with pytest.raises(NameInvalidError), memory_store("no/name"):
        pass
