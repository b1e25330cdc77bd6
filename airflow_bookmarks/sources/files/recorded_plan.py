"""A plan of files that was just made, with what a stored one no longer has: what it left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.bound import LOOKED_AT, WAITING_BYTES, WAITING_FROM, WAITING_OLDEST
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.selection.reason import (
    MISSING,
    OVER_BOUND,
    SETTLING,
)
from airflow_bookmarks.core.text.instant import to_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.sources.files.grouping import Grouping
    from airflow_bookmarks.sources.files.scan import ScanSpec


OPTIONS = "options"  # of a plan's stats: the options of the source that are not the default


@dataclass(frozen=True, slots=True, eq=False)
class RecordedPlan(FilePlan):
    """A plan with the options that it was made with, so that the source can be planned again without the script.

    `rows` are those of `listing` that were left out for reasons of which the stored plan has but the count. `over` is
    what is over the bound: these rows of these files. `known_rows` are those of `listing` that were read before.
    `told_before` names by reason files that the stored plan of the first batch names: this one has but their count.
    `newest_partition` is the start of the newest one that is listed, `read_before` up to which one was read before.
    `read_rows` are those that were read before, also in later batches, and `earlier` what batches before this one read.
    `grouping` is that of the files of the whole plan, those over the bound among them. `listed_at` is when the files
    were listed, for an earlier batch of the loop (None: for this one).
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    listing: Listing | None = None
    rows: Mapping[str, npt.NDArray[np.intp]] = field(default_factory=dict)
    over: tuple[Listing, npt.NDArray[np.intp]] | None = None
    known_rows: npt.NDArray[np.intp] | None = None
    read_rows: npt.NDArray[np.intp] | None = None
    earlier: tuple[Listing, npt.NDArray[np.intp]] | None = None
    grouping: Grouping | None = None
    told_before: Mapping[str, Listing] = field(default_factory=dict)
    scan_spec: ScanSpec | None = None
    newest_partition: datetime | None = None
    read_before: datetime | None = None
    listed_at: datetime | None = None

    def stats(self) -> dict[str, Any]:
        stats: dict[str, Any] = {NEWEST_PARTITION: self._read_until(), WAITING_FROM: self._waiting_from_ms()}
        stats[LOOKED_AT] = None if self.listed_at is None else to_text(self.listed_at)
        told = {name: value for name, value in stats.items() if value is not None}
        return {**FilePlan.stats(self), **told, **self._waiting(), OPTIONS: dict(self.options)}

    def _waiting(self) -> dict[str, int]:
        """Return how much of what is listed later runs read, and when its oldest file is of; empty where none waits."""
        waiting = [self._settling]
        waiting += [] if self.over is None else [self.over[0].take(self.over[1])]
        waiting = [files for files in waiting if len(files)]
        if not waiting:
            return {}
        oldest = min(int(files.times_ms.min()) for files in waiting)
        return {WAITING_BYTES: sum(files.total_bytes for files in waiting), WAITING_OLDEST: oldest}

    def _read_until(self) -> str | None:
        """Return the newest partition up to which all is read: one in which files wait for a later run is listed."""
        if self.newest_partition is None or self.scan_spec is None:
            return None
        waiting = [self._settling.in_folders(), self._missing.in_folders()]
        waiting += [] if self.over is None else [self.over[0].in_folders().take(self.over[1])]
        oldest = self.scan_spec.oldest_partition(folder for folders in waiting for folder in folders.in_use())
        until = self.newest_partition if oldest is None else min(self.newest_partition, oldest)
        return (until if self.read_before is None else max(until, self.read_before)).isoformat()

    def _waiting_from_ms(self) -> int | None:
        """Return the time of the oldest file that is left to the next run: by a bound, as settling, or as missing."""
        times = [self._missing.times_ms, self._settling.times_ms]
        if self.over is not None:
            files, rows = self.over
            if self.grouping is not None:  # what was read before waits for nothing
                rows = rows[self.grouping.is_cause[rows]]
            times.append(files.times_ms[rows])
        oldest = np.concatenate(times)
        return int(oldest.min()) if len(oldest) else None

    @property
    def _settling(self) -> Listing:
        return self.unread.get(SETTLING) or self.told_before.get(SETTLING) or Listing.of([])

    @property
    def _missing(self) -> Listing:
        return Listing.of([*self.unread.get(MISSING, ()), *self.told_before.get(MISSING, ())])


def left_out(plan: FilePlan) -> dict[str, Listing]:
    """Return the listed files that a plan leaves out, by reason, where their names are known.

    Hidden and nested ones are only counted. A stored plan names fewer than one that was just made.
    """
    named = dict(plan.unread)
    if isinstance(plan, RecordedPlan):
        named |= {reason: files for reason, files in plan.told_before.items() if reason != MISSING}
    if isinstance(plan, RecordedPlan) and plan.listing is not None:
        named |= {reason: plan.listing.take(rows) for reason, rows in plan.rows.items() if len(rows)}
    if isinstance(plan, RecordedPlan) and plan.over is not None and len(plan.over[1]):
        named[OVER_BOUND] = plan.over[0].take(plan.over[1])
    return named


def known_files(plan: FilePlan) -> Listing:
    """Return the listed files that were read before, according to the ledger; none for a stored plan."""
    if not isinstance(plan, RecordedPlan) or plan.listing is None or plan.known_rows is None:
        return Listing.of([])
    return plan.listing.take(plan.known_rows)


def reread_by(plan: FilePlan) -> str | None:
    """Return by which rule the source of a new plan reads files together; None: it reads each by itself."""
    return plan.options.get("reread") if isinstance(plan, RecordedPlan) else None


def read_before(plan: FilePlan) -> list[Listing]:
    """Return the files that earlier runs and batches have read, that are there, and that a new plan leaves out."""
    if not isinstance(plan, RecordedPlan):
        return []
    parts = [] if plan.listing is None or plan.read_rows is None else [plan.listing.take(plan.read_rows)]
    return [*parts, *([] if plan.earlier is None else [plan.earlier[0].take(plan.earlier[1])])]
