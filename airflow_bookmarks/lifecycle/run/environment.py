"""The environment in which the runs of a job work: clock, threads and fault hook of this machine, or those of a test.

A test gives its own in one of two ways: with the store, to a script that is handed a store; by `runs_in`, to a script
that opens its store itself. Neither is ever read from the variables of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.store.bookmark_store import BookmarkStore

EnvironmentOfAttempt = Callable[[int], RunEnvironment]

_GIVEN: ContextVar[EnvironmentOfAttempt | None] = ContextVar("bookmarks_run_environment", default=None)


class EnvironmentStore(BookmarkStore):
    """Bookmarks like those of any `BookmarkStore`, whose runs work in `environment`."""

    environment: RunEnvironment = RunEnvironment()


@contextmanager
def runs_in(given: EnvironmentOfAttempt) -> Iterator[None]:
    """Let the jobs that are made within the block work in the environment that `given` returns for their attempt."""
    before = _GIVEN.set(given)
    try:
        yield
    finally:
        _GIVEN.reset(before)


def environment_of(store: BookmarkStore, attempt: int) -> RunEnvironment:
    """Return the environment of an attempt over `store`: that of the store or the block, else of this machine."""
    if isinstance(store, EnvironmentStore):
        return store.environment
    given = _GIVEN.get()
    return RunEnvironment() if given is None else given(attempt)
