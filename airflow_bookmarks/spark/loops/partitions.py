"""The loop over the partitions of one context: a partition that fails stays where it was, and the others go on."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    FencedError,
    MisuseError,
    PartitionsFailedError,
    PublishError,
    StoreError,
)
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.sources.part_loop import PartLoop
from airflow_bookmarks.spark.loops.turn import Looks

if TYPE_CHECKING:
    from airflow_bookmarks.spark.loops.turn import Ending, Turn

log = logging.getLogger(__name__)

# Errors after which no other partition could be read either, or of a run that is committed.
_ENDS_THE_LOOP = (FencedError, ChangedMeanwhileError, PublishError, StoreError)


class PartitionLoop:
    """Goes on until no partition is left, and raises at the end if any has failed; implements `Loop`.

    Args:
        ctx: the context whose partitions they are.
    """

    def __init__(self, ctx: str) -> None:
        self._parts = PartLoop(ctx)

    def first(self, turn: Turn) -> Turn:
        """Return the first turn; see `Loop.first`."""
        self._parts.begin()
        return replace(turn, parts=self._parts, looks=turn.looks or Looks(), previous=None)

    def after(self, job: str, turn: Turn, ending: Ending) -> Turn | None:
        """Return the turn behind a partition; see `Loop.after`."""
        parts, run = self._parts, ending.run
        if parts.current in parts.failed:
            run = None  # it has ended, and another one has to begin
        else:
            if ending.is_aborted or run is None or not ending.is_done or not parts.is_read:
                raise MisuseError(
                    f"job {job!r}: a part of the loop was not run to its end, or did not read {parts.ctx!r}: the next "
                    "one would read the same. The parts before it are committed, nothing after them. Write `with "
                    f"part:` around what each of them does, and in it `part.read({parts.ctx!r})`."
                )
            if not parts.is_planned:  # a replay, or a window of runs: its plan is a stored one
                parts.is_over = True
        if parts.is_over:
            return None
        parts.begin()
        return replace(turn, previous=run if run is not None and run.goes_on else None)

    def close(self, job: str) -> None:
        """Raise if partitions have failed, each with its error; see `Loop.close`."""
        failed = {str(value): error for value, error in self._parts.failed.items()}
        if failed:
            raise PartitionsFailedError(job, failed) from ExceptionGroup("failed", list(failed.values()))
        log.info("bookmark %s: %d partitions are read", job, len(self._parts.taken))


def is_kept_for_later(job: str, parts: PartLoop | None, error: BaseException) -> bool:
    """Whether an error is that of one partition of a loop, which goes on with the others; then it is noted and logged.

    Args:
        job: the name of the job.
        parts: what the runs of the loop share; None outside of one.
        error: what ended the block of the run.
    """
    if parts is None or parts.current is None or not isinstance(error, Exception) or isinstance(error, _ENDS_THE_LOOP):
        return False
    parts.failed[parts.current] = error
    log.error("bookmark %s: %s failed and stays where it was: %s", job, parts.current, cause_of(error))
    return True
