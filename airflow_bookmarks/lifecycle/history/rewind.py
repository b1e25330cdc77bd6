"""Runs of history: find the run that a reference names, and rewind a consumer along with its upstream."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    CleanRefusedError,
    FencedError,
    OptionError,
    RewindAlongRefusedError,
    RunUnknownError,
)
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.lifecycle.history.overwritten import with_made_again
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.history.timeline_switch import (
    files_to_clean,
    former_names,
    look_at_undone,
    outputs_to_clean,
    switch_to,
    undone_before,
    with_clean,
)
from airflow_bookmarks.lifecycle.protocol.cleanup import overwritten_for_good
from airflow_bookmarks.sources.upstream.way_back import newest_at_or_below
from airflow_bookmarks.store.transitions.collection import (
    check_left,
    check_uncollected,
    collected_until,
    collection_check,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.sources.upstream.rewind import RewindWanted
    from airflow_bookmarks.store.bookmark_store import BookmarkStore, LeaseGrant
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch

log = logging.getLogger(__name__)

_DIGITS = 10  # as many digits as the key of a run item has


# ---- finding runs


def resolve_run(store: BookmarkStore, job: str, head: Head, reference: str) -> Run:
    """Return the committed run of the living line that a run number or run id names.

    A run id that committed nothing (it failed) means the newest committed run at or before it, as in Glue.

    Raises:
        RunUnknownError: there is none, or it was collected.
    """
    history = HistorySnapshot(store, job, head)
    number = _named_number(history, reference)
    run = _living_at(history, number)
    if run is None:
        return _living_below(history, number, reference)
    # After the look at the run: a collection announces what it takes before the first run goes.
    check_uncollected(store, job, number)
    return run


def kept_run(history: HistorySnapshot, reference: str) -> Run:
    """Return the run that a change goes back to, as `resolve_run` does, from what is read for the change anyway.

    The transaction of the change proves that nothing was collected since (`collection_check`).

    Raises:
        RunUnknownError: there is none, or it was collected.
    """
    number = _named_number(history, reference)
    check_left(history.store, history.job, number, history.collected)
    return _living_at(history, number) or _living_below(history, number, reference)


def _named_number(history: HistorySnapshot, reference: str) -> int:
    """Return the number that a reference names: of a run that was committed, living or not."""
    store, job, head = history.store, history.job, history.head
    number = _number(store, job, reference)
    if number == 0:
        raise RunUnknownError(
            f"job {job!r} has no run 0. Nothing was read or changed. Back to the beginning is a reset."
        )
    if number is None or number > head.run_number:
        raise RunUnknownError(
            f"job {job!r} has no committed run {reference!r}; its last is run {head.run_number}. Nothing was read or "
            f"changed. 'airflow-bookmarks history {job}' lists them."
        )
    return number


def _living_at(history: HistorySnapshot, number: int) -> Run | None:
    return next(living_runs(history.runs(number - 1, number), history.living), None)


def _living_below(history: HistorySnapshot, number: int, reference: str) -> Run:
    """Return the newest living run below `number`, which is no living run itself, where `reference` is a run id.

    What was collected meanwhile is missing here as well, so that is looked up anew.
    """
    store, job = history.store, history.job
    for run in living_runs(store.runs(job, until=number - 1, reverse=True), history.living):
        if is_number(reference):
            check_uncollected(store, job, number)
            raise RunUnknownError(
                f"run {number} of job {job!r} was undone by a reset or rewind; the newest living run before it is "
                f"{run.key.number}. Nothing was read or changed."
            )
        check_uncollected(store, job, run.key.number)
        return run
    check_uncollected(store, job, number)
    raise RunUnknownError(
        f"job {job!r} has no living run at or before {reference!r}: those there were, were undone by a reset or "
        f"rewind. Nothing was read or changed. 'airflow-bookmarks history {job}' lists them."
    )


def window_runs(store: BookmarkStore, job: str, from_run: str, to_run: str) -> list[Run]:
    """Return the living runs of the half-open window (from, to], oldest first; `0` means before the first run.

    Raises:
        RunUnknownError: an end names no run, or runs of the window were collected. OptionError: from is newer than to.
    """
    head = store.head(job)
    low = 0 if from_run == "0" else resolve_run(store, job, head, from_run).key.number
    high = resolve_run(store, job, head, to_run).key.number
    if low > high:
        raise OptionError(
            f"job {job!r}: 'from' ({from_run}, run {low}) is newer than 'to' ({to_run}, run {high}). Nothing was "
            "read or changed. The window is (after FROM, up to and including TO]."
        )
    runs = list(living_runs(store.runs(job, after=low, until=high), store.ancestry(job, head.epoch)))
    if low < high:
        # After the look at the runs: a collection announces what it takes before the first of them goes.
        check_uncollected(store, job, low)
    return runs


def is_number(reference: str) -> bool:
    """Whether a reference is a run number (up to ten digits), rather than a run id."""
    return reference.isascii() and reference.isdigit() and len(reference) <= _DIGITS


def _number(store: BookmarkStore, job: str, reference: str) -> int | None:
    if is_number(reference):
        return int(reference)
    execution = store.execution(job, reference)
    if execution is None:
        return None
    return execution.base_run if execution.last_run is None else execution.last_run


# ---- along with an upstream


def rewind_along(store: BookmarkStore, grant: LeaseGrant, wanted: RewindWanted) -> LeaseGrant:
    """Rewind the consumer held by `grant`, all contexts, to its newest run whose edge lies at or below the run that
    its upstream went back to.

    The lease goes on under the next fence. The same transaction lists what the undone runs published for cleaning,
    unless it is to stay (`wanted.keeps`); the next holder of the job removes it.

    Raises:
        RewindAlongRefusedError: it can't be cleaned; nothing was changed.
        ChangeRefusedError: a context had another name in that run.
        FencedError: the job is not ours any more. RunUnknownError: that run was collected.
    """
    job, upstream, target = grant.job, wanted.upstream, wanted.target
    kept = newest_at_or_below(store, job, grant.base, upstream, target)
    if kept is None and target == 0:
        gone = collected_until(store, job)  # the upstream was reset: going back to the beginning needs no run
    else:
        gone = check_uncollected(store, job, 0 if kept is None else kept.key.number)
    _check_names(job, grant.base, kept, wanted)
    event: AuditEvent = {"who": grant.identity.run_id, "why": f"upstream {upstream} went back to run {target}"}
    current = store.head(job)
    if current.fence != grant.fence:
        raise FencedError(f"job {job!r} was taken over while it was to be rewound along; nothing was changed.")
    history = HistorySnapshot(store, job, current)
    switch = _made_again_along(history, switch_to(history, kept, "rewind", event), wanted)
    if not wanted.keeps:
        switch = _with_clean_along(history, switch, wanted)
    switch = replace(switch, check=collection_check(store, job, gone))
    after = store.begin_timeline(job, current, switch, keep=grant)
    if after is None:
        raise FencedError(f"job {job!r} was taken over while it was to be rewound along; nothing was changed.")
    outputs = outputs_to_clean(switch)
    elsewhere = f" and {outputs} output(s) in other sinks" if outputs else ""
    said = "bookmark %s: upstream %s went back to run %d; going back along to run %d, %d file(s)%s to clean"
    log.warning(said, job, upstream, target, switch.kept, files_to_clean(switch), elsewhere)
    return replace(grant, fence=after.fence, base=replace(after, lease=None))


def _check_names(job: str, head: Head, kept: Run | None, wanted: RewindWanted) -> None:
    for ctx, former in former_names(head, kept).items():
        number = 0 if kept is None else kept.key.number
        raise ChangeRefusedError(
            f"REWOUND: upstream {wanted.upstream!r} went back to run {wanted.target}, and job {job!r} can't go back "
            f"along to its run {number}: its context {ctx!r} was called {former!r} then, so the script would read "
            "everything again. Nothing was read or changed. Do it by hand: 'airflow-bookmarks rewind "
            f"{job} --to {number} --clean', then 'airflow-bookmarks rename-context {job} {former} {ctx}'."
        )


def _made_again_along(history: HistorySnapshot, switch: TimelineSwitch, wanted: RewindWanted) -> TimelineSwitch:
    """Return the switch after which what undone runs have overwritten of runs that stay is made again.

    Raises:
        RewindAlongRefusedError: the position after it counts that input as read.
    """
    try:
        return with_made_again(history, switch)
    except ChangeRefusedError as error:
        raise RewindAlongRefusedError(history.job, wanted.upstream, wanted.target, str(error)) from error


def _with_clean_along(history: HistorySnapshot, switch: TimelineSwitch, wanted: RewindWanted) -> TimelineSwitch:
    """Return the switch with what to clean: the files of the undone runs, except those that replaced others for good.

    Raises:
        RewindAlongRefusedError: it can't be cleaned, its input is gone, or others have read it.
    """
    store, job = history.store, history.job
    undone = look_at_undone(history, switch).all_readable()
    if not undone:
        return switch
    put_away = input_put_away(undone)
    if put_away:
        raise RewindAlongRefusedError(job, wanted.upstream, wanted.target, put_away)
    try:
        stays = overwritten_for_good(store, job, [*undone_before(history).runs, *undone])
        switch = with_clean(history, switch, stays=stays)
    except ChangeRefusedError as error:
        why = error.why if isinstance(error, CleanRefusedError) else str(error)
        raise RewindAlongRefusedError(job, wanted.upstream, wanted.target, why) from error
    readers = _readers(store, job, undone)
    if readers:
        back = f"rewind {job} --to {switch.kept}" if switch.kept else f"reset {job}"
        raise RewindAlongRefusedError(job, wanted.upstream, wanted.target, readers, back)
    for output, count in stays.items():
        log.warning(
            "bookmark %s: output %r stays as it is: its undone runs have overwritten %d file(s) that no clean brings "
            "back. It holds what they wrote until a run overwrites that",
            job,
            output,
            count,
        )
    outputs = outputs_to_clean(switch)
    elsewhere: AuditEvent = {"outputs_to_clean": outputs} if outputs else {}
    return replace(switch, event={**switch.event, "files_to_clean": files_to_clean(switch), **elsewhere})


def input_put_away(undone: Iterable[Run]) -> str:
    """Name the undone run that may have deleted or archived input that no later run reads again; else empty."""
    for run in undone:
        for ctx, entry in run.plans.items():
            plan, read = entry.metadata, run.measured(ctx)
            is_kept = read is not None and not read.is_read_whole
            if plan.on_published is not None and plan.files != 0 and not is_kept:
                how = f"on_published={plan.on_published!r}"
                return (
                    f"run {run.key.number} has put away the files that it read in context {ctx!r} ({how}), so their "
                    "rows would be removed and could not be made again"
                )
    return ""


def _readers(store: BookmarkStore, job: str, undone: Sequence[Run]) -> str:
    """Name the consumers of the job that have read what undone runs published; empty where none has."""
    first = next((run.key.number for run in undone if any(output.publish for output in run.outputs.values())), None)
    readers = [] if first is None else [edge for edge in store.edges(job) if edge.run_number >= first]
    told = ", ".join(f"{edge.consumer!r} has read it up to run {edge.run_number}" for edge in readers)
    return f"it has consumers of its own, and {told}" if readers else ""
