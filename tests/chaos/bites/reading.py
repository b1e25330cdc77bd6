"""Bites in what a run takes of what is new, and in what it leaves to the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import LATE
from airflow_bookmarks.core.timeline import SelectedRuns
from airflow_bookmarks.lifecycle.history import rewind
from airflow_bookmarks.lifecycle.run import enabled as active_run
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.side import window as side_window
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.selection import Selection
from airflow_bookmarks.sources.upstream import source as upstream
from tests.chaos.bites.bite import bite, put, take

# ---- bounds and batches


@bite("what is over the bound stays new, for the next run")
def bound_counts_the_rest_as_read() -> None:
    advance = FileSource.advance

    def too_far(self: Any, plan: Any) -> Any:
        over = getattr(plan, "over", None)
        return advance(self, plan if over is None or not len(over[1]) else replace(plan, files=over[0]))

    put(FileSource, "advance", too_far)


@bite("a bounded run takes the oldest of what is new")
def bound_takes_the_newest() -> None:
    part = FileSource._part

    def newest_first(self: Any, plan: Any, rest: Any) -> Any:
        rest.rows = rest.rows[::-1]
        return part(self, plan, rest)

    put(FileSource, "_part", newest_first)


@bite("a bound over an upstream takes whole runs, and leaves those after them", theme="chain")
def bound_cuts_runs_and_moves_past_them() -> None:
    def first_only(selected: SelectedRuns, output: str, bound: Bound) -> tuple[SelectedRuns, int]:
        first, rest = (selected.window[:1], selected.window[1:]) if bound.is_given else (selected.window, [])
        return replace(selected, window=[*first, *(replace(run, outputs={}) for run in rest)]), 0

    put(upstream, "within_bound", first_only)


@bite("a loop of batches ends when nothing is over its bound, and not before")
def loop_ends_with_input_over() -> None:
    put(active_run, "is_over_bound", lambda plans: False)


@bite("each batch goes on where the one before has ended")
def batch_leaves_a_file_behind() -> None:
    advance = FileSource.advance

    def one_too_far(self: Any, plan: Any) -> Any:
        rest = None if self._backlog is None else self._backlog._rest
        position = advance(self, plan)
        if rest is not None:
            rest.rows = rest.rows[1:]
        return position

    put(FileSource, "advance", one_too_far)


# ---- late files


@bite("the line of late files is taken from what was read, and what is newer is never late")
def line_from_what_is_listed() -> None:
    leave = Selection.leave

    def listed(self: Any, reason: str, is_left: Any, **how: Any) -> None:
        if reason == LATE and len(self.listing):
            is_left = self.listing.times_ms < self.listing.times_ms.max()
        leave(self, reason, is_left, **how)

    put(Selection, "leave", listed)


@bite("what a run leaves out as late is counted")
def late_not_counted() -> None:
    note = Selection._note

    def silent(self: Any, reason: str, rows: Any, is_stored: bool) -> None:
        if reason != LATE:
            note(self, reason, rows, is_stored)

    put(Selection, "_note", silent)


@bite("the ledger forgets only what is late by now")
def ledger_forgets_what_is_not_late() -> None:
    put(Ledger, "forget", lambda self, before_ms: Ledger.empty())


# ---- files that change while they are read


@bite("what changed while it was read is left to the next run, and is no part of the position")
def missing_counted_as_read() -> None:
    recheck = take(active_run, "recheck_plan")

    def kept(job: str, ctx: str, source: Any, plan: Any, on_missing: Any) -> Any:
        recheck(job, ctx, source, plan, on_missing)
        return plan

    put(active_run, "recheck_plan", kept)


@bite("the plan that is stored is the one that the commit goes by")
def plan_keeps_what_was_left() -> None:
    store_plan = ActiveRun._store_plan

    def once(self: Any, ctx: str, source: Any, found: Any, plan: Any) -> None:
        if ctx not in self._inputs:
            store_plan(self, ctx, source, found, plan)

    put(ActiveRun, "_store_plan", once)


# ---- pauses


@bite("a window of runs begins after FROM")
def window_includes_its_beginning() -> None:
    window_runs = take(rewind, "window_runs")

    def closed(store: Any, job: str, from_run: str, to_run: str) -> Any:
        return window_runs(store, job, str(max(int(from_run) - 1, 0)), to_run)

    put(side_window, "window_runs", closed)


@bite("a window holds living runs alone", theme="changes")
def window_of_undone_runs() -> None:
    def any_run(store: Any, job: str, from_run: str, to_run: str) -> Any:
        runs = store.runs(job, after=int(from_run), until=int(to_run))
        return [run for run in runs if run.state.is_committed]

    put(side_window, "window_runs", any_run)


@bite("a pause reads what is new to the bookmark, and not all there is")
def pause_from_the_beginning() -> None:
    init = DetachedRun.__init__

    def blank(
        self: Any,
        store: Any,
        job: str,
        identity: Any,
        choice: Any,
        environment: Any,
        head: Any,
        *rest: Any,
        **named: Any,
    ) -> None:
        init(
            self, store, job, identity, choice, environment, Head() if choice.from_run is None else head, *rest, **named
        )

    put(DetachedRun, "__init__", blank)
