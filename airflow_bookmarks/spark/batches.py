"""Batches: what the runs of one loop over a backlog share in one Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.sources.backlog import Backlog

if TYPE_CHECKING:
    from airflow_bookmarks.core.bound import Bound


class Batches:
    """The bound of a loop, and what is left to read of each context since the first batch has looked at it."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._backlogs: dict[str, Backlog] = {}

    def bound_for(self, own: Bound) -> Bound:
        """Return the bound of a context: its own, where it gives any, else that of the loop."""
        return own if own.is_given else self._bound

    def backlog(self, ctx: str) -> Backlog:
        """Return what the batches share of a context."""
        return self._backlogs.setdefault(ctx, Backlog())
