"""Compute the switch that a reset, rewind, set or undo makes, as a pure function of the stored state."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    CleanRefusedError,
    LookRefusedError,
    OptionError,
    SourceError,
    StateCorruptError,
)
from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.position import Edge
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.script import check_new_name
from airflow_bookmarks.core.timeline import newest_living
from airflow_bookmarks.lifecycle.protocol.cleanup import check_published, clean_list, left_in_targets, left_of
from airflow_bookmarks.lifecycle.protocol.publish import stored_output
from airflow_bookmarks.lifecycle.protocol.recover import made_by, unknown_sources
from airflow_bookmarks.lifecycle.state.positions import stored_position
from airflow_bookmarks.sinks.clean import CleanList
from airflow_bookmarks.sources.registry import kind_of, upstream_of
from airflow_bookmarks.store.transitions.collection import check_made_here
from airflow_bookmarks.store.transitions.timeline import TimelineSwitch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Position, UpstreamPosition
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import ContextState, Run, RunKey
    from airflow_bookmarks.core.timeline import Timeline
    from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


log = logging.getLogger(__name__)


def switch_to(history: HistorySnapshot, kept: Run | None, kind: str, event: AuditEvent) -> TimelineSwitch:
    """Return the switch that takes all contexts back to as they were after `kept` (None: before the first run)."""
    contexts = {} if kept is None else dict(kept.contexts)
    number, data_run = (0, 0) if kept is None else (kept.key.number, kept.data_run_number)
    return _switch(history, kind, event, contexts, number, data_run, history.head.epoch)


def switch_contexts(
    history: HistorySnapshot, kept: Run | None, names: Sequence[str], kind: str, event: AuditEvent
) -> TimelineSwitch:
    """Return the switch that takes some contexts back; it undoes no run."""
    head = history.head
    contexts = dict(head.contexts)
    for ctx in names:
        state = None if kept is None else kept.contexts.get(ctx)
        if state is None:
            contexts.pop(ctx, None)
        else:
            contexts[ctx] = state
    return _switch(history, kind, event, contexts, head.run_number, head.data_run_number, head.epoch)


def former_names(head: Head, kept: Run | None) -> dict[str, str]:
    """Return the names under which `kept` knew some contexts, where they differ and the source is the same."""
    gone = {} if kept is None else {ctx: s for ctx, s in kept.contexts.items() if ctx not in head.contexts}
    found: dict[str, str] = {}
    for ctx, state in head.contexts.items():
        if kept is None or ctx in kept.contexts:
            continue
        former = [old for old, was in gone.items() if (was.kind, was.fingerprint) == (state.kind, state.fingerprint)]
        if former:
            found[ctx] = former[0]
    return found


def switch_set(
    history: HistorySnapshot,
    ctx: str,
    state: ContextState,
    position: Position,
    event: AuditEvent,
    *,
    kind: str = "set",
) -> TimelineSwitch:
    """Return the switch that puts one context to a given position; it undoes no run."""
    head = history.head
    after = replace(state, set_in=head.epoch + 1, artifacts=position.artifacts, set_aside=position.set_aside)
    if not position.keeps_watermark:
        order = None if position.order is None else position.order.name
        after = replace(after, watermark=position.watermark, watermark_column=None, order=order)
    contexts = {**head.contexts, ctx: after}
    number, data_run = head.run_number, head.data_run_number
    switch = _switch(history, kind, event, contexts, number, data_run, head.epoch, {ctx: position.body})
    payload = history.store.blobs.refer(position.body)
    bodies = [*position.blobs.values(), *([] if payload.inline is not None else [position.body])]
    return replace(switch, positions={ctx: payload}, bodies=bodies)


def switch_renamed(history: HistorySnapshot, ctx: str, to_ctx: str, event: AuditEvent) -> TimelineSwitch:
    """Return the switch that moves the position of a context to another name; it undoes no run.

    Raises:
        NameInvalidError: it can't be a name. ChangeRefusedError: the job has a context of that name.
    """
    store, job, head = history.store, history.job, history.head
    state = head.contexts[ctx]
    if state.kind == STATE_KIND:
        raise OptionError(f"job {job!r}: {ctx!r} is its job.state, and keeps its name. Nothing was changed.")
    if to_ctx == ctx:
        raise OptionError(
            f"job {job!r}: context {ctx!r} has this name already. Nothing was changed. Give the name that its script "
            "reads it by now."
        )
    if check_new_name("context", to_ctx, ascii_only=store.ascii_names) in head.contexts:
        raise ChangeRefusedError(
            f"job {job!r}: context {to_ctx!r} has a position of its own, which would be lost. Nothing was changed. If "
            f"a run has read everything again under that name, rewind to the run before it; to give the position up: "
            f"'airflow-bookmarks reset {job} --ctx {to_ctx}'. Then rename."
        )
    named = state.planned_as(ctx)
    after = replace(state, set_in=head.epoch + 1, named=None if named == to_ctx else named)
    contexts = {other: kept for other, kept in head.contexts.items() if other != ctx} | {to_ctx: after}
    payload = stored_position(store, job, ctx, state)
    if payload is None:
        raise OptionError(f"job {job!r}: context {ctx!r} has no position. Nothing was changed.")
    body = store.blobs.get(payload)
    told: AuditEvent = {**event, "ctx": ctx, "name": to_ctx}
    number, data_run = head.run_number, head.data_run_number
    switch = _switch(history, "rename-context", told, contexts, number, data_run, head.epoch, {to_ctx: body})
    # The old name no longer reads anything, so it holds no edge back.
    edges = _edges_after(store, job, replace(head, contexts=contexts), contexts, {to_ctx: body})
    bodies = () if payload.inline is not None else (body,)
    return replace(switch, positions={to_ctx: payload}, bodies=bodies, edges=edges)


def switch_back(
    history: HistorySnapshot,
    line: Timeline,
    contexts: Mapping[str, ContextState],
    data_run: int,
    event: AuditEvent,
) -> TimelineSwitch:
    """Return the switch that undoes the change which began `line`: history goes on from the epoch before it.

    That epoch is not the parent of `line` if the change was itself an undo: an undo branches off an earlier line.
    """
    return _switch(history, "undo", event, contexts, line.start, data_run, line.epoch - 1)


def with_clean(history: HistorySnapshot, switch: TimelineSwitch, *, stays: Collection[str] = ()) -> TimelineSwitch:
    """Return the switch with the list of what the undone runs staged and published.

    The list includes open runs, and what earlier undone runs left in their targets because they were undone without a
    clean. A publish that is due and undone is dropped, also that of a replay. `stays` names outputs from which nothing
    is removed.

    Raises:
        OutOfBoundsError: a run that it undoes lists files that it can't have published.
        ChangeRefusedError: something of it can't be cleaned.
    """
    store, job, head, gone = history.store, history.job, history.head, history.collected
    if gone > switch.kept:
        raise CleanRefusedError(
            job,
            f"runs up to {gone} were collected, and what they published is not known any more, so a clean to run "
            f"{switch.kept} would leave their rows and read their input again",
            "Reset or rewind without clean, and empty the target by hand.",
        )
    undone = look_at_undone(history, switch).all_readable()
    if undone:
        check_made_here(job, undone[0].key.number, "a clean", history.copied)
    opened = history.open_runs()
    _check_may_give_up(job, opened)
    later = history.runs(undone[0].key.number - 1, head.run_number) if undone else ()
    before = undone_before(history).runs
    # A driver whose publish was dropped may still be moving files: list its staging, and whatever it may have moved.
    dropped = [run for run in before if run.state is RunState.COMMITTED]
    check_published(store, job, [*undone, *opened, *before], stays=stays)
    lists = [
        clean_list(
            store,
            job,
            [*undone, *opened],
            (run for run in later if run.state.is_committed),
            dropped=dropped,
            stays=stays,
        ),
        left_in_targets(store, job, (run for run in before if run.state is RunState.PUBLISHED), stays=stays),
    ]
    if head.cleaning is not None:
        lists.insert(0, CleanList.decode(store.blobs.get(head.cleaning)))
    is_dropped = switch.publishing in {run.key for run in (*undone, *before)}
    body = CleanList.joined(lists).encode()
    payload = store.blobs.refer(body, _CLEAN_INLINE)
    return replace(
        switch,
        cleaning=payload,
        bodies=[*switch.bodies, *([] if payload.inline is not None else [body])],
        abandoned=tuple(opened),
        publishing=None if is_dropped else switch.publishing,
    )


def _check_may_give_up(job: str, opened: Iterable[Run]) -> None:
    """Make sure that a clean, which gives up open runs, loses no input with them.

    Raises:
        CleanRefusedError: one reads a source of a kind that is not known here.
    """
    for run in opened:
        for ctx, kind in unknown_sources(run).items():
            raise CleanRefusedError(
                job,
                f"a clean gives up the open run {run.key}, whose context {ctx!r} reads a source of kind {kind!r}, "
                "which is not known here: what that run has taken from it could be lost",
                f"Run the job once with the version of this package that made it{made_by(run)}, which settles it.",
            )


_CLEAN_INLINE = 512  # the head has 4 KB for everything


def files_to_clean(switch: TimelineSwitch) -> int:
    """Return the number of files that a switch lists for removal."""
    listed = _listed(switch)
    return 0 if listed is None else len(listed.files)


def outputs_to_clean(switch: TimelineSwitch) -> int:
    """Return the number of outputs in other sinks than files from which a switch lists something for removal.

    What several runs have written to one output counts once.
    """
    listed = _listed(switch)
    return 0 if listed is None else len({(part.sink, part.output) for part in listed.parts})


def cleans_more(store: BookmarkStore, head: Head, switch: TimelineSwitch) -> bool:
    """Whether a switch lists something for removal that is not to be removed anyway."""
    listed = _listed(switch)
    if listed is None:
        return False
    due = CleanList() if head.cleaning is None else CleanList.decode(store.blobs.get(head.cleaning))
    are_listed = set(listed.files) <= set(due.files) and set(listed.folders) <= set(due.folders)
    return not (are_listed and all(part in due.parts for part in listed.parts))


def _listed(switch: TimelineSwitch) -> CleanList | None:
    if switch.cleaning is None:
        return None
    body = switch.cleaning.inline
    return CleanList.decode(switch.bodies[0] if body is None else body)


def files_left_over(history: HistorySnapshot, switch: TimelineSwitch) -> int | None:
    """Return the number of files of runs undone before `switch` that still lie in their targets; None: not known."""
    before = undone_before(history, switch)
    if before.damage:
        return None
    outputs = [(run, name) for run in before.runs for name in run.outputs]
    try:
        found = [left_of(stored_output(history.store, history.job, run, name)) for run, name in outputs]
        if any(left is None or left.parts for left in found):
            return None  # what is left in a sink is not known, or is no file
        return len(CleanList.joined(left for left in found if left is not None).files)
    except LookRefusedError:
        return None
    except (SourceError, OptionError, OSError, StateCorruptError) as error:
        log.warning("bookmark %s: what undone runs left in their targets can't be looked at: %s", history.job, error)
        return None


@dataclass(frozen=True, slots=True)
class Undone:
    """The committed runs that are history now and no longer are after a switch, oldest first.

    `damage` gives the reason for each run item in their range that can't be read. A switch without clean needs none of
    these items: positions follow from what is kept.
    """

    runs: tuple[Run, ...]
    damage: Mapping[RunKey, StateCorruptError]

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The keys of the run items that can't be read."""
        return tuple(str(key) for key in self.damage)

    @property
    def first(self) -> int | None:
        """The lowest run number among them, unreadable items included; None where there is none."""
        return min((key.number for key in (*self.damage, *(run.key for run in self.runs))), default=None)

    def all_readable(self) -> tuple[Run, ...]:
        """Return the runs.

        Raises:
            StateCorruptError: one of them can't be read.
        """
        for error in self.damage.values():
            raise error
        return self.runs


def look_at_undone(history: HistorySnapshot, switch: TimelineSwitch) -> Undone:
    """Return the runs that a switch undoes."""
    before, after = history.living, history.after_switch(switch)
    low = min((bound for bound in after.bounds.values() if bound is not None), default=0)
    runs: list[Run] = []
    damage: dict[RunKey, StateCorruptError] = {}
    for key, run in history.runs_or_damage(low, history.head.run_number):
        if isinstance(run, StateCorruptError):
            damage[key] = run
        elif before.has(run) and after.is_undone(run):
            runs.append(run)
    return Undone(tuple(runs), damage)


def undone_before(history: HistorySnapshot, switch: TimelineSwitch | None = None) -> Undone:
    """Return the committed runs of a job that earlier switches undid, oldest first, but for those it brings back.

    Runs that came with an import are left out: what they published belongs to another job. `damage` has every item in
    their range that can't be read, whether its run was undone or not.
    """
    living = history.living
    after = living if switch is None else history.after_switch(switch)
    runs: list[Run] = []
    damage: dict[RunKey, StateCorruptError] = {}
    for low, high in _spans_undone(history.lines):
        for key, run in history.runs_or_damage(max(low, history.copied), high):
            if isinstance(run, StateCorruptError):
                damage[key] = run
            elif living.is_undone(run) and after.is_undone(run):
                runs.append(run)
    return Undone(tuple(runs), damage)


def _spans_undone(lines: Sequence[Timeline]) -> list[tuple[int, int]]:
    """Return the ranges (after, until] of run numbers that the turns to these lines left out, each once."""
    spans: list[tuple[int, int]] = []
    for low, high in sorted((line.kept, line.start) for line in lines if line.kept < line.start):
        if spans and low <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(high, spans[-1][1]))
        else:
            spans.append((low, high))
    return spans


def last_kept(history: HistorySnapshot, switch: TimelineSwitch) -> int:
    """Return the number of the last committed run that is history after the switch; 0 where there is none."""
    if switch.parent is None or switch.parent == history.head.epoch:
        return switch.kept
    after = history.after_switch(switch)  # an undo: `kept` limits what may be living
    # Newest first, and not beyond the first that is living: all runs of a long history are many.
    return newest_living(history.store.runs(history.job, until=switch.kept, reverse=True), after)


def _switch(
    history: HistorySnapshot,
    kind: str,
    event: AuditEvent,
    contexts: Mapping[str, ContextState],
    kept: int,
    data_run: int,
    parent: int,
    positions: Mapping[str, bytes] | None = None,
) -> TimelineSwitch:
    head = history.head
    return TimelineSwitch(
        kind=kind,
        kept=kept,
        contexts=contexts,
        data_run_number=data_run,
        publishing=_still_due(history, parent, kept),
        edges=_edges_after(history.store, history.job, head, contexts, positions or {}),
        parent=parent,
        event={
            **event,
            "to_run": kept,
            "version_before": head.version,
            "epoch_before": head.epoch,
            "run_number_before": head.run_number,
            "watermarks_before": {ctx: state.watermark for ctx, state in head.contexts.items()},
            "watermarks_after": {ctx: state.watermark for ctx, state in contexts.items()},
        },
    )


def _still_due(history: HistorySnapshot, parent: int, kept: int) -> RunKey | None:
    """Drop the due first publish of an undone run; a due replay stays due, and is finished though undone."""
    due = history.head.publishing
    run = history.store.run(history.job, due) if due is not None else None
    if run is None or run.revision > 0:
        return due
    return run.key if history.after(parent, kept).has(run) else None


def _edges_after(
    store: BookmarkStore,
    job: str,
    head: Head,
    contexts: Mapping[str, ContextState],
    positions: Mapping[str, bytes],
) -> dict[str, Edge]:
    """Return the edges that the change moves, as they are after it: what the positions say, else nothing consumed.

    The others stay as they are: all of them may be more than a transaction holds.
    """
    edges: dict[str, Edge] = {}
    moved = _moved_upstreams(head.contexts, contexts, positions)
    for ctx, state in {**contexts, **head.contexts}.items():
        upstream = upstream_of(state)
        if upstream is None or upstream not in moved:
            continue
        body = positions.get(ctx)
        position = kind_of(state.kind).consumed(body) if body else _position_of(store, job, ctx, contexts.get(ctx))
        other = edges.get(upstream)
        marks = {**(other.contexts if other else {}), ctx: 0 if position is None else position.run_number}
        seen = position or _seen_position(store, job, ctx, state, is_needed=bool(contexts))
        epoch, changes = (1, 0) if seen is None else (seen.epoch, seen.changes)
        edges[upstream] = Edge(job, min(marks.values()), epoch, changes, marks)
    return edges


def _moved_upstreams(
    before: Mapping[str, ContextState], after: Mapping[str, ContextState], positions: Mapping[str, bytes]
) -> set[str]:
    """Return the upstreams of the contexts that do not stay where they are: a state names the run of its position."""
    moved = {ctx for ctx in {**before, **after} if ctx in positions or before.get(ctx) != after.get(ctx)}
    states = [state for ctx in moved for state in (before.get(ctx), after.get(ctx)) if state is not None]
    return {upstream for state in states if (upstream := upstream_of(state)) is not None}


def _seen_position(
    store: BookmarkStore, job: str, ctx: str, state: ContextState, *, is_needed: bool
) -> UpstreamPosition | None:
    """Return the position that tells in which epoch a context saw its upstream.

    Where nothing is kept, an unreadable position does no harm: an edge at run 0 is right in any epoch.
    """
    try:
        return _position_of(store, job, ctx, state)
    except StateCorruptError:
        if is_needed:
            raise
        return None


def _position_of(store: BookmarkStore, job: str, ctx: str, state: ContextState | None) -> UpstreamPosition | None:
    payload = stored_position(store, job, ctx, state)
    return None if payload is None or state is None else kind_of(state.kind).consumed(store.blobs.get(payload))


def resting_contexts(upstream: str, contexts: Mapping[str, ContextState]) -> dict[str, int]:
    """Return the run number up to which each context that reads `upstream` has read it."""
    return {ctx: int(state.watermark or 0) for ctx, state in contexts.items() if upstream_of(state) == upstream}
