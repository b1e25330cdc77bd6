"""Reads and writes that failed: a script may catch their errors and commit, and rows would be read, and be nowhere."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.text.cause import cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.spark.job import BookmarkedJob


class CaughtFailures:
    """What has failed in a run with a bookmark.

    A source that can't be planned, such as a table that is missing, leaves no context, and the others may commit:
    scripts exist that catch errors table by table.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # scripts write tables in several threads
        self._unwritten: list[tuple[object, str]] = []

    @contextmanager
    def writing(self, frame: object) -> Iterator[None]:
        """Note that a frame is not written if the block fails, until a later block with the same frame does not."""
        try:
            yield
        except BaseException as error:  # whatever ended it: the script may catch it
            with self._lock:
                self._unwritten.append((frame, cause_of(error).rstrip(".")))
            raise
        with self._lock:
            self._unwritten = [(other, why) for other, why in self._unwritten if other is not frame]

    @contextmanager
    def reading(self, job: BookmarkedJob, name: str) -> Iterator[None]:
        """Note that a context could not be read if the block plans it and fails."""
        was_planned = job.active_run.plan_of(name) is not None
        try:
            yield
        except BaseException as error:  # whatever ended it: the script may catch it
            plan = None if was_planned else job.active_run.plan_of(name)
            if plan is not None and not plan.is_empty:
                job.active_run.set_failed(name, cause_of(error).rstrip("."))
            raise

    def check(self, job: str) -> None:
        """Make sure that each frame was written in the end.

        Raises:
            MisuseError: one was not.
        """
        if not self._unwritten:
            return
        _, why = self._unwritten[0]
        more = f" (and {len(self._unwritten) - 1} more)" if len(self._unwritten) > 1 else ""
        raise MisuseError(
            f"job {job!r}: a write or purge has failed, and the script went on: {why}{more}. Nothing was committed or "
            "published: what was read would count as read, and its rows are in no output. The next run reads the same "
            "input again. Let the error end the script, or write that frame in another way."
        )
