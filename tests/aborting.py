"""End a run as the runtime ends that of a script which fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from airflow_bookmarks.core.text.cause import cause_of


class Abortable(Protocol):
    """A run that can be given up."""

    def abort(self, error: str) -> object:
        """Give it up, and its job back."""
        ...


@contextmanager
def aborted_on_error(run: Abortable) -> Iterator[None]:
    """Give a run up where the block fails, by whatever error: an interrupt and a simulated death are no Exception."""
    try:
        yield
    except BaseException as error:
        run.abort(cause_of(error))
        raise
