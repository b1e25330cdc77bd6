"""The environment in which the runs of a job work: that of this machine, or the one that the job's store brings.

A script under test is given a store and nothing else, so what a test holds in its hand travels with that.
"""

from __future__ import annotations

from airflow_bookmarks.lifecycle.protocol.failpoint import fault_from_environment
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.store.bookmark_store import BookmarkStore


class EnvironmentStore(BookmarkStore):
    """Bookmarks like those of any `BookmarkStore`, whose runs work in `environment`."""

    environment: RunEnvironment = RunEnvironment()


def environment_of(store: BookmarkStore, attempt: int) -> RunEnvironment:
    """Return the environment of an attempt over `store`: the one that the store brings, or that of this machine."""
    if isinstance(store, EnvironmentStore):
        return store.environment
    return RunEnvironment(at=fault_from_environment(attempt))
