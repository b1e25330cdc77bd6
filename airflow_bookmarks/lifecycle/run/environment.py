"""The environment in which the runs of a job work: that of this machine, or one that comes with the store.

A script under test is given only a store, so the test's clock, threads and faults travel with it.
"""

from __future__ import annotations

from airflow_bookmarks.lifecycle.protocol.failpoint import fault_from_environment
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.store.bookmark_store import BookmarkStore


class EnvironmentStore(BookmarkStore):
    """Bookmarks like those of any `BookmarkStore`, whose runs work in `environment`."""

    environment: RunEnvironment = RunEnvironment()


def environment_of(store: BookmarkStore, attempt: int) -> RunEnvironment:
    """Return the environment of an attempt over `store`: the one that comes with the store, or that of this machine."""
    if isinstance(store, EnvironmentStore):
        return store.environment
    return RunEnvironment(at=fault_from_environment(attempt))
