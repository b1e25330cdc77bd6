"""List what the runs of a job have read part by part: of each part how far, by which run, and since when it fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.inspect.runs import sum_of
from airflow_bookmarks.sources.registry import find_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.run import PlanEntry, Run
    from airflow_bookmarks.core.timeline import Ancestry
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_NOT_READ = (RunState.FAILED, RunState.ABANDONED)


def by_partition(store: BookmarkStore, job: str, *, newest: int | None = None) -> list[dict[str, Any]]:
    """Return a row for each part that runs of a job have read by itself, those that fail first; none of another job.

    `files` and `rows` are what the runs of the living history have read of it (None: not known of one of them), and
    `amounts` has by its unit what is not counted in files;
    `position` is how far the last of them went, `last_run` its number, `committed_at` its time. `failed_since` is when
    the first run behind that planned the part and did not commit it, with the `error` of the newest one; None: none.

    Args:
        newest: look at so many of the newest runs; None: at all.

    Raises:
        JobUnknownError: no such bookmark.
    """
    living = store.ancestry(job, store.head(job).epoch)
    found: dict[tuple[str, str], _Partition] = {}
    runs = store.runs(job) if newest is None else [*store.runs(job, reverse=True, limit=newest)][::-1]
    for run in runs:
        for ctx, entry in run.plans.items():
            part = entry.metadata.part
            if part is not None:
                found.setdefault((ctx, part), _Partition(ctx, part)).note(run, entry, living)
    rows = [each.row() for _, each in sorted(found.items())]
    return sorted(rows, key=lambda row: (row["failed_since"] is None, row["failed_since"] or ""))


@dataclass(slots=True)
class _Partition:
    """What is known of one part, by the runs that were noted so far, oldest first."""

    ctx: str
    part: str
    runs: int = 0
    files: int | None = 0
    rows: int | None = 0
    read: list[Mapping[str, Any]] = field(default_factory=list)
    last: Run | None = None
    position: str | None = None
    failed_since: str | None = None
    error: str | None = None

    def note(self, run: Run, entry: PlanEntry, living: Ancestry) -> None:
        """Note a run that has planned it."""
        if run.state in _NOT_READ:
            self.failed_since, self.error = self.failed_since or run.planned_at, run.error or self.error
        elif run.state.is_committed:
            self.failed_since = self.error = None  # also by one that was undone since: the part can be read
            if not living.is_undone(run):
                self._note_read(run, entry)

    def _note_read(self, run: Run, entry: PlanEntry) -> None:
        measured, kind = run.measured(self.ctx), find_kind(entry.kind)
        counted = None if measured is None else measured.rows
        self.runs += 1
        self.files = sum_of((self.files, entry.metadata.files))
        self.rows = sum_of((self.rows, entry.metadata.planned_rows if counted is None else counted))
        self.read.append(entry.stats)
        self.last, self.position = run, None if kind is None else kind.reached(entry.stats)

    def row(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "ctx": self.ctx,
            "partition": self.part,
            "runs": self.runs,
            "files": self.files,
            "rows": self.rows,
            "amounts": in_other_units(self.read),
            "position": self.position,
            "last_run": None if self.last is None else self.last.key.number,
            "committed_at": None if self.last is None else self.last.committed_at,
            "failed_since": self.failed_since,
            "error": self.error,
        }
