"""Reads and writes that failed: a script may catch their errors and commit, and rows would be read, and be nowhere."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError
from airflow_bookmarks.core.text.cause import cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.spark.job import BookmarkedJob


# Where a write goes, by all that names it: ("path", "s3://lake/orders"), ("table", "shop", "orders").
Places = frozenset[tuple[str, ...]]


def place_of_options(options: object, connection: str = "") -> Places:
    """Return where connection options lead, as far as they say: a folder, or a table of a database.

    Args:
        options: as a script gives them, which may be no mapping: then they say nothing.
        connection: the name of the connection, where the call has it besides.
    """
    if not isinstance(options, Mapping):
        return frozenset()
    given = {str(name).lower(): str(value) for name, value in options.items()}
    places = [("path", given["path"].rstrip("/"))] if "path" in given else []
    if "dbtable" in given:
        named = connection or given.get("url") or given.get("connectionname") or ""
        return frozenset([*places, ("rows", named, given["dbtable"])])
    return frozenset(places)


def place_of_table(database: object, name: object) -> Places:
    """Return the place that a table of a catalog is."""
    return frozenset([("table", str(database).lower(), str(name).lower())])


class CaughtFailures:
    """What has failed in a run with a bookmark.

    A source that can't be planned, such as a table that is missing, leaves no context, and the others may commit:
    scripts exist that catch errors table by table.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # scripts write tables in several threads
        self._unwritten: list[tuple[object, Places, str]] = []
        self._inside = threading.local()

    @contextmanager
    def writing(self, frame: object, places: Places) -> Iterator[None]:
        """Note that a frame is not written if the block fails, until a later block writes it to the same place.

        Args:
            frame: the frame as the script has it; None for a purge.
            places: where it goes, by each name that the call gives it. A call that names none is not made good.
        """
        if getattr(self._inside, "is_writing", False):  # within the block of the call that the script makes
            yield
            return
        self._inside.is_writing = True
        try:
            yield
        except BaseException as error:  # whatever ended it: the script may catch it
            with self._lock:
                self._unwritten.append((frame, places, cause_of(error).rstrip(".")))
            raise
        finally:
            self._inside.is_writing = False
        with self._lock:
            self._unwritten = [each for each in self._unwritten if each[0] is not frame or not each[1] & places]

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
        """Make sure that each frame was written where it should be in the end.

        Raises:
            MisuseError: one was not.
        """
        if not self._unwritten:
            return
        _, _, why = self._unwritten[0]
        more = f" (and {len(self._unwritten) - 1} more)" if len(self._unwritten) > 1 else ""
        raise MisuseError(
            f"job {job!r}: a write or purge has failed, and the script went on: {why}{more}. Nothing was committed or "
            "published: what was read would count as read, and its rows are in no output. The next run reads the same "
            "input again. Let the error end the script, or write that frame to the same place again."
        )
