"""Plan what is new in another bookmarked job: its published runs that this consumer has not read.

Progress here is runs, which have no clock, no ties and no late data.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceSwitchedError
from airflow_bookmarks.core.files.file_plan import UpstreamPlan
from airflow_bookmarks.core.plan import UpstreamWindow
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.core.run import RunState, SourceRef
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.sources.files.commit import recheck_files
from airflow_bookmarks.sources.iceberg.look import PyIcebergTable
from airflow_bookmarks.sources.source import Recheck
from airflow_bookmarks.sources.upstream.job import UpstreamJob
from airflow_bookmarks.sources.upstream.layout import Likeness
from airflow_bookmarks.sources.upstream.listing import files_of
from airflow_bookmarks.sources.upstream.position import position_after
from airflow_bookmarks.sources.upstream.rewind import check_rewound, living_until
from airflow_bookmarks.sources.upstream.selection import output_of, select_runs, within_bound
from airflow_bookmarks.sources.upstream.stored_plan import entry_of_stored, format_of
from airflow_bookmarks.sources.upstream.table_outputs import TableOutputs
from airflow_bookmarks.sources.upstream.written import newest_entry, written_by, written_in

if TYPE_CHECKING:
    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Position
    from airflow_bookmarks.core.rules.schema import Fold
    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.core.timeline import SelectedRuns
    from airflow_bookmarks.sources.iceberg.written import OpenTable
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.sources.upstream.layout import Alike, GivenLayout
    from airflow_bookmarks.sources.upstream.rewind import OnRewind
    from airflow_bookmarks.sources.upstream.written import WrittenRun
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


class UpstreamSource:
    """The published, not yet consumed output of another job.

    Args:
        store: the store of both jobs.
        consumer: the job that reads.
        upstream: the job that is read.
        output: which of its outputs; needed where a run has several.
        on_rewind: what to do when runs that were consumed are undone or replayed: "fail"; "rewind" along, which removes
            what the consumer's runs that are undone published; "rewind_keep" along, which leaves it; or "ignore".
        until: read up to and including this run and no further, though more is published.
        bound: how much of it one run reads: whole published runs, at least up to the first that has anything.
        alike: what the runs of one window have in common: nothing ("any"), the layout, which is format, options and
            partition columns ("layout"), or the columns as well, so that the next run meets as a change that one went
            or has another type ("columns"). One frame has one of each: who makes one asks for it, and the window ends
            before the first run that was written otherwise. The rest is counted as left over by a bound.
        fold: what makes two spellings of a column's name one.
        open_iceberg: opens the Iceberg table of an output: by pyiceberg, where there is no Spark.
    """

    kind = "upstream"
    format: str | None = None  # each run of the upstream records its own

    def __init__(
        self,
        store: BookmarkStore,
        consumer: str,
        upstream: str,
        *,
        output: str | None = None,
        on_rewind: OnRewind = "fail",
        until: int | None = None,
        bound: Bound = UNBOUND,
        alike: Alike = "any",
        fold: Fold = str.lower,
        open_iceberg: OpenTable = PyIcebergTable.of_output,
    ) -> None:
        if upstream == consumer:
            raise OptionError(f"job {consumer!r} can't be its own upstream. Nothing was read or changed.")
        self._job = UpstreamJob(store, consumer, upstream)
        self._wanted_output, self._on_rewind = output, on_rewind
        self._until, self._bound, self._likeness = until, bound, Likeness(alike, fold)
        self._open_iceberg = open_iceberg
        self._planned: tuple[UpstreamWindow, OutputEntry | None] | None = None
        self._before: UpstreamPosition | None = None
        self.last_published: int | None = None  # the last run there is to read, found by `plan`

    def ref(self) -> SourceRef:
        """Return the job; the position itself names the output."""
        return SourceRef(self.kind, self._job.name)

    def plan(self, found: PlanInput) -> UpstreamPlan:
        """Select the published runs above the position; see `Source.plan`."""
        head, selected, before = self._look(found)
        output = output_of(self._job, selected.window, before, self._wanted_output)
        self._check_output(before, output)
        self.last_published = selected.last_number(before.run_number)
        selected, left = within_bound(selected, output, self._bound)
        selected, written, beyond = self._cut(selected, output)
        left += beyond
        files, roots, replaced_by_sides = files_of(self._job, written)
        replaced = sum(each.replaced for each in written) + replaced_by_sides
        until = selected.last_number(before.run_number)
        runs = tuple((run.key.number, run.revision) for run in selected.window)
        window = UpstreamWindow(
            self._job.name, output, before.run_number, until, head.epoch, head.changes, runs, replaced
        )
        skipped = {reason: count for reason, count in (("replaced", replaced), (OVER_BOUND, left)) if count}
        self._before = before
        self._planned = (window, newest_entry(written)) if written else None
        return UpstreamPlan(files, roots, len(files) + replaced + left, 0, skipped, window=window)

    def _look(self, found: PlanInput) -> tuple[Head, SelectedRuns, UpstreamPosition]:
        """Return the upstream's head with the runs that are to be read, as they were at one moment.

        A replay between the two reads would be read and yet be news to the next run: then both are read again.
        """
        head = self._job.head()
        while True:
            before = self._position(found, head)
            check_rewound(self._job, before, head, self._on_rewind)
            self._until = living_until(self._job, self._until, before, head, self._on_rewind)
            selected = select_runs(self._job, before.run_number, head, self._until)
            again = self._job.head()
            if (again.epoch, again.changes) == (head.epoch, head.changes):
                return head, selected, before
            head = again

    def _position(self, found: PlanInput, head: Head) -> UpstreamPosition:
        return (
            UpstreamPosition(self._job.name, self._wanted_output or "", 0, head.epoch, head.changes)
            if found.position is None
            else UpstreamPosition.decode(found.position)
        )

    def _check_output(self, before: UpstreamPosition, output: str) -> None:
        if before.run_number > 0 and before.output not in ("", output):
            raise SourceSwitchedError(self._job.consumer, "", f"{self.ref()}:{before.output}", f"{self.ref()}:{output}")

    def _cut(self, selected: SelectedRuns, output: str) -> tuple[SelectedRuns, list[WrittenRun], int]:
        """Keep the runs before the first one with another layout; return also how many files are left over."""
        written = written_by(self._job, self._tables(), selected, output)
        broken = self._likeness.break_in(self._job, written)
        if broken is None:
            return selected, written, 0
        number, why = broken
        log.warning(
            "bookmark %s: %s. One run reads what is alike: this one ends before run %d, and the next goes on with that",
            self._job.consumer,
            why,
            number,
        )
        window = [run for run in selected.window if run.key.number < number]
        left = sum(len(each.paths) for each in written if each.number >= number)
        return replace(selected, window=window), [each for each in written if each.number < number], left

    def entry_of(self, plan: FilePlan, given: GivenLayout | None = None) -> OutputEntry | None:
        """Return how the newest run that a plan reads wrote that output: format, partitions, schema.

        For an empty plan: how the newest run with data did. None where the upstream never wrote the output. `given` is
        what the script says of it.

        Raises:
            SourceError: the runs that a stored plan reads, or several of them together, were not written alike; or some
                were collected, and how they were written can't be told any more, nor is it `given`.
        """
        window = plan.edge
        if window is None:
            return None
        if self._planned is not None and self._planned[0] is window:
            return self._planned[1]
        return entry_of_stored(self._job, self._tables(), plan, window, self._likeness, given)

    def folder_of(self, entry: OutputEntry) -> str:
        """Return where an output of the upstream lies: its target, or the folder of the table that this names."""
        return self._tables().folder(entry)

    def written_to_table(self, plan: FilePlan) -> tuple[TableOutputs, list[tuple[int, OutputEntry]]]:
        """Return the runs whose files a plan over a table reads, and what tells the files of each.

        Raises:
            SourceError: what these runs wrote can't be told any more.
        """
        window, tables = plan.edge, self._tables()
        written = [] if window is None else written_in(self._job, tables, plan, window)
        if not written:
            raise MisuseError(f"{self._job.what}: the plan has no file that a run of it wrote to a table")
        return tables, [(each.number, each.entry) for each in written]

    def _tables(self) -> TableOutputs:
        """Return the tables to look at anew."""
        return TableOutputs(self._job.what, self._open_iceberg)

    def format_of(self, entry: OutputEntry) -> str:
        """Return the format in which an output of the upstream was written.

        Raises:
            SourceError: none is stored with it.
        """
        return format_of(self._job, entry)

    def advance(self, plan: FilePlan) -> Position | None:
        """Return the position after the window; also an empty window notes a new epoch. See `Source.advance`."""
        if self._before is None:
            raise MisuseError("advance() before plan(): an upstream source knows its window only after planning")
        return position_after(self._before, plan)

    def recheck(self, plan: FilePlan) -> Recheck:
        """Look at the files, and whether the planned runs are still what they were; see `Source.recheck`."""
        moved = self._moved(plan)
        if plan.is_empty or moved is not None:
            return Recheck(moved=moved)
        return recheck_files(open_one_filesystem(plan.roots), plan)

    def _moved(self, plan: FilePlan) -> str | None:
        window = plan.edge
        if window is None or not window.runs:
            return None
        planned, found = dict(window.runs), set()
        for run in self._job.store.runs(self._job.name, after=window.after, until=window.until):
            number, is_published = run.key.number, run.state is RunState.PUBLISHED
            found.add(number)
            if run.state.is_committed and number in planned and (run.revision != planned[number] or not is_published):
                return f"run {number} of upstream {self._job.name!r} was replayed"
        # One that was collected since can't be compared: its files are looked at. One that was never made is not missed
        # by then, after an import of an older state.
        if planned.keys() - found and (last := self._job.head().run_number) < window.until:
            return f"an older state of upstream {self._job.name!r}, at run {last}, was brought back"
        return None
