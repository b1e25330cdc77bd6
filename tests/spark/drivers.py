"""Attempts of one execution, each of which may die at a point: what the tests of tables as outputs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import DriverTable, SimulatedCrash
from tests.spark.lake import Lake


@dataclass
class Drivers:
    """Attempts of one execution. One that dies is gone as a process is, with all that it would tidy.

    `write` writes the lines that an attempt has read to the table; `options` are arguments of its job.
    """

    lake: Lake
    write: Callable[[BookmarkedJob, DataFrame], None]
    options: Mapping[str, Any] = field(default_factory=dict)

    def attempt(self, number: int, at: Callable[[Failpoint], None] | None = None, run_id: str = "task") -> None:
        """Make an attempt that copies new lines to files and to the table."""
        driver = DriverTable(self.lake.store.table)

        def hook(point: Failpoint) -> None:
            if at is None:
                return
            try:
                at(point)
            except SimulatedCrash:
                driver.is_dead = True
                raise

        store = BookmarkStore(driver, self.lake.store.namespace)
        with runs_in(lambda _: RunEnvironment(at=hook)):
            job = BookmarkedJob(self.lake.spark, "copy", store=store, run_id=run_id, attempt=number, **self.options)
            with job:
                lines = self.lake.read(job)
                self.write(job, lines)
                job.write(lines, "files").text(self.lake.path("copy"))

    def files(self) -> list[str]:
        """Return the lines in the target of files."""
        root = Path(self.lake.path("copy"))
        return sorted(line for name in self.lake.visible() for line in (root / name).read_text().splitlines())


def dies_at(wanted: Failpoint, nth: int = 1) -> Callable[[Failpoint], None]:
    """Return what lets a driver die when it comes to a point for the nth time."""
    seen: list[Failpoint] = []

    def at(point: Failpoint) -> None:
        seen.append(point)
        if seen.count(wanted) == nth:
            raise SimulatedCrash(wanted)

    return at
