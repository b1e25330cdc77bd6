"""Batches: what the runs of one loop over a backlog share in one Spark session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.sources.files.backlog import Backlog

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.sources.files.options import FileOptions


class Batches:
    """The bound of a loop, and what is left to read of each context since the first batch has looked at it."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._backlogs: dict[str, Backlog] = {}

    def bounded(self, options: FileOptions) -> FileOptions:
        """Return the options of a context with its own bound, where it gives any, else with that of the loop."""
        return options if options.bound.is_given else replace(options, bound=self._bound)

    def backlog(self, ctx: str) -> Backlog:
        """Return what the batches share of a context."""
        return self._backlogs.setdefault(ctx, Backlog())
