"""The loop over batches: each reads a part of what was there when the first one looked."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.spark.contexts.options import Batches

if TYPE_CHECKING:
    from airflow_bookmarks.core.selection.bound import Bound
    from airflow_bookmarks.spark.loops.turn import Ending, Turn

log = logging.getLogger(__name__)


class BatchLoop:
    """Goes on until a run says that nothing is left; implements `Loop`.

    Args:
        bound: how much a batch reads of each context.
    """

    def __init__(self, bound: Bound) -> None:
        self._batches, self._count = Batches(bound), 1

    def first(self, turn: Turn) -> Turn:
        """Return the first turn; see `Loop.first`."""
        return replace(turn, batches=self._batches, previous=None)

    def after(self, job: str, turn: Turn, ending: Ending) -> Turn | None:
        """Return the turn behind a batch; see `Loop.after`."""
        if ending.is_aborted:
            raise MisuseError(
                f"job {job!r}: a batch was aborted, and the loop went on: the next one would read the same. The "
                "batches before it are committed, nothing after them. Let its error end the loop."
            )
        if ending.run is None or not ending.is_done:
            raise MisuseError(
                f"job {job!r}: a batch was not run to its end: the next one would read the same. The batches "
                "before it are committed, nothing after them. Write `with batch:` around what each of them does."
            )
        if not ending.run.goes_on:
            return None
        self._count += 1
        return replace(turn, previous=ending.run)

    def close(self, job: str) -> None:
        """Count the batches in the log; see `Loop.close`."""
        log.info("bookmark %s: drained in %s", job, "1 batch" if self._count == 1 else f"{self._count} batches")
