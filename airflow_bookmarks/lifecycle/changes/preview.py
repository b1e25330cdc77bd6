"""Preview a change: what it would undo, read again and clean, without making it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.lifecycle.changes.change import Change, watermarks_moved
from airflow_bookmarks.lifecycle.history.read_again import TargetsTwice, input_of, names_in, targets_twice
from airflow_bookmarks.lifecycle.history.rewind import kept_run
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.history.state_values import state_moved_by
from airflow_bookmarks.lifecycle.history.timeline_switch import (
    files_left_over,
    files_to_clean,
    last_kept,
    look_at_undone,
    outputs_to_clean,
)
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput, goes_ahead, never_read_after
from airflow_bookmarks.lifecycle.inspect.runs import total
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files
from airflow_bookmarks.sources.seek import RETRY, is_retried, reads_again
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch


@dataclass(frozen=True, slots=True)
class ChangePreview:
    """What a change would do to a given version of the job.

    `files`, `bytes` and `rows` are what the undone runs read and would be read again (None: not known, as of a set to
    another position than "now").
    `consumers` maps each job that has consumed an undone run to the run up to which it has; `twice` names the targets
    whose rows would come twice, and `twice_unknown` those of them of which that is not known; `to_clean` counts the
    files that would be removed, and `sinks_to_clean` the outputs in other sinks, whose rows nobody counts. `holder` is
    who works on the job.
    `unreadable` are the keys of run items among the undone ones that can't be read; what they read is counted nowhere.
    `left_over` counts the files of runs undone before, without a clean, that still lie in their targets (None: not
    known). `never_read` is what a set skips for good (None: no other change skips anything).
    `state` has the values of `job.state` that would change, as short JSON texts. `moved` counts the files of a
    relocate.
    """

    job: str
    kind: str
    version: int
    kept: int
    undone: tuple[int, ...]
    files: int | None
    bytes: int | None
    rows: int | None
    watermarks: dict[str, dict[str, str | None]]
    consumers: dict[str, int] = field(default_factory=dict)
    twice: tuple[str, ...] = ()
    twice_unknown: tuple[str, ...] = ()
    to_clean: int = 0
    holder: str | None = None
    unreadable: tuple[str, ...] = ()
    state: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    left_over: int | None = 0
    never_read: NeverReadInput | None = None
    moved: Mapping[str, Any] | None = None
    sinks_to_clean: int = 0
    amounts: Mapping[str, int | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "job": self.job,
            "change": self.kind,
            "version": self.version,
            "to_run": self.kept,
            "undone_runs": list(self.undone),
            "undone_run_count": len(self.undone),
            "unreadable_runs": list(self.unreadable),
            "read_again": {
                "files": self.files,
                "bytes": self.bytes,
                "rows": self.rows,
                "amounts": dict(self.amounts),
            },
            "watermarks": self.watermarks,
            "state": {name: dict(moved) for name, moved in self.state.items()},
            "moved": None if self.moved is None else dict(self.moved),
            "consumers": self.consumers,
            "written_twice": list(self.twice),
            "written_twice_unknown": list(self.twice_unknown),
            "files_to_clean": self.to_clean,
            "outputs_to_clean": self.sinks_to_clean,
            "files_left_by_undone_runs": self.left_over,
            "never_read": None if self.never_read is None else self.never_read.as_dict(),
            "holder": self.holder,
        }


def preview(store: BookmarkStore, job: str, change: Change) -> ChangePreview:
    """Preview a change without making it. Pass its `version` on as `expected_version`.

    Raises:
        JobUnknownError, RunUnknownError, ChangeRefusedError, OptionError: it can't be done.
    """
    job = resolve_name(store, job)
    head = store.head(job)
    history = HistorySnapshot(store, job, head)
    switch = change.switch(history, {})
    undone = look_at_undone(history, switch)
    again = undone.runs or ([] if _skips_alone(head, change, switch) else _read_again(history, change))
    contexts = _contexts_read_again(change)
    named = None if contexts is None else partial(names_in, head=head, contexts=contexts)
    figures = _retried(store, job, change) or input_of(store, again, named)
    rows: list[Any] = [f.get("rows") for f in figures]
    low = undone.first
    is_cleaned = switch.cleaning is not None
    # Only the source could tell which of it was read before.
    is_unknown = change.kind == "set" and reads_again(change.value or "") and not _skips_alone(head, change, switch)
    twice = TargetsTwice() if is_cleaned else targets_twice(store, job, again)
    return ChangePreview(
        job=job,
        kind=change.kind,
        version=head.version,
        kept=last_kept(history, switch),
        undone=tuple(run.key.number for run in undone.runs),
        files=None if is_unknown else total(figures, "files"),
        bytes=None if is_unknown else total(figures, "bytes"),
        rows=None if is_unknown or not all(isinstance(r, int) for r in rows) else sum(rows),
        watermarks=watermarks_moved(head, replace(head, contexts=switch.contexts)),
        consumers={} if low is None else {e.consumer: e.run_number for e in store.edges(job) if e.run_number >= low},
        twice=twice.targets,
        twice_unknown=twice.unknown,
        to_clean=files_to_clean(switch),
        sinks_to_clean=outputs_to_clean(switch),
        holder=None if head.lease is None else head.lease.run_id,
        unreadable=undone.unreadable,
        state=state_moved_by(store, job, head, switch),
        left_over=files_left_over(history, switch),
        never_read=_never_read(store, job, head, change, switch),
        moved=moved if isinstance(moved := switch.event.get("moved"), dict) else None,
        amounts={} if is_unknown else in_other_units(figures),
    )


def _skips_alone(head: Head, change: Change, switch: TimelineSwitch) -> bool:
    """Whether a set goes ahead by the order of a user's own kind: then it takes nothing back."""
    ctx = change.ctx if change.kind == "set" else None
    state = None if ctx is None else head.contexts.get(ctx)
    return state is not None and goes_ahead(state.kind, state, switch.contexts.get(ctx or "")) is True


def _never_read(
    store: BookmarkStore, job: str, head: Head, change: Change, switch: TimelineSwitch
) -> NeverReadInput | None:
    if change.kind != "set" or change.ctx is None or (change.value or "").startswith(RETRY):
        return None
    return never_read_after(store, job, head, switch, change.ctx)


def _read_again(history: HistorySnapshot, change: Change) -> list[Run]:
    """Return the runs whose input becomes unread by a change of some contexts, although it undoes no run."""
    contexts = _contexts_read_again(change)
    if contexts is None:
        return []
    head = history.head
    kept = 0 if change.to_run is None else kept_run(history, change.to_run).key.number
    return [
        run
        for run in living_runs(history.runs(kept, head.run_number), history.living)
        if not names_in(run, head, contexts).isdisjoint(run.plans)
    ]


def _contexts_read_again(change: Change) -> tuple[str, ...] | None:
    """Return the contexts that a change takes back without undoing a run; None where the change is of another kind."""
    if change.kind == "set" and reads_again(change.value or ""):
        return (change.ctx or "",)
    return change.contexts


def _retried(store: BookmarkStore, job: str, change: Change) -> list[Mapping[str, Any]]:
    """Return the files that a change releases from quarantine, in the shape of what runs measured."""
    value = change.value or ""
    if change.kind != "set" or not value.startswith(RETRY):
        return []
    files = [file for file in quarantined_files(store, job) if file["ctx"] == change.ctx]
    wanted = [file for file in files if is_retried(file["path"], value)]
    return [{"files": 1, "bytes": file["bytes"], "rows": None} for file in wanted]
