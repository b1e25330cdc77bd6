"""Positions: there, as their watermarks say, where runs and changes left them, and knowing each file that was read."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.file_ledger import Known
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.selection.listing import Listing, instant
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.history.relocation import MOVED_FROM
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.lifecycle.protocol.recover import STARTS_FROM, STARTS_OVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.ledger.file_ledger import Ledger
    from airflow_bookmarks.core.run import ContextState, Run
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

_RUN_KEY = re.compile(r"\d+\.\d+")


def examine_positions(survey: Survey) -> Iterator[Finding]:
    """Find positions that are gone, moved by themselves, or lack what was read."""
    head = survey.head
    if head is None:
        return
    for ctx, state in head.contexts.items():
        yield from _position(survey, ctx, state)
    yield from _against_history(survey, head)
    for run in survey.living():
        yield from _moved_without_reading(survey, run)


# ---- the position that the head names


def _position(survey: Survey, ctx: str, state: ContextState) -> Iterator[Finding]:
    where = f"HEAD, context {ctx!r}"
    payload = survey.position_of(ctx, state)
    if payload is None:
        holder = f"run {state.run}" if state.set_in is None else f"the line of epoch {state.set_in}"
        what = f"the position of {ctx!r} lies in {holder}, and it is not there"
        yield Finding("position-missing", survey.job, Severity.ERROR, what, where, RESTORE)
        return
    try:
        watermark = _watermark(survey, ctx, state)
        lacking = _lacking(survey, ctx, state)
    except StateCorruptError:
        return  # damaged bytes, which the look at all payloads has named
    if watermark is not None and watermark != state.watermark:
        what = f"the head says watermark {state.watermark!r} of {ctx!r}, and its position says {watermark!r}"
        yield Finding("watermark-differs", survey.job, Severity.ERROR, what, where, RESTORE)
    if lacking:
        what = (
            f"{len(lacking)} file(s) were read by committed runs, and the ledger of {ctx!r} does not know them, the "
            f"first: {lacking[0]!r}. They would be read again"
        )
        yield Finding("ledger-lacks-files", survey.job, Severity.ERROR, what, where, RESTORE)


def _watermark(survey: Survey, ctx: str, state: ContextState) -> str | None:
    """Return the watermark that the position itself says, None where its kind says none, or it is of a column."""
    if state.watermark_column is not None:
        return None
    if state.kind == "files":
        if _has_sequence(survey, ctx, state):
            return _watermark_of_sequence(survey, ctx, state)
        ledger = survey.ledger_of(ctx, state)
        newest = None if ledger is None else ledger.newest_ms
        return None if newest is None else to_text(instant(newest))
    payload = survey.position_of(ctx, state)
    body = None if payload is None or state.kind != "upstream" else survey.bytes_of(payload)
    return None if body is None else str(UpstreamPosition.decode(body).run_number)


def _has_sequence(survey: Survey, ctx: str, state: ContextState) -> bool:
    run = survey.runs.get(state.run)
    entry = None if run is None else run.plans.get(state.planned_as(ctx))
    return entry is not None and "sequence" in entry.facts.get("options", {})


def _watermark_of_sequence(survey: Survey, ctx: str, state: ContextState) -> str | None:
    """Return where the plan of a run that read all of it leads; None where that can't be said."""
    run = survey.runs.get(state.run)
    if run is None or state.set_in is not None or _skipped(run, ctx):
        return None
    plan = survey.plan_of(run, ctx)
    return None if plan is None else plan.sequence_watermark


def _lacking(survey: Survey, ctx: str, state: ContextState) -> list[str]:
    """Return the files that the runs behind a position have read, and that its ledger does not know."""
    ledger = survey.ledger_of(ctx, state) if state.kind == "files" else None
    if ledger is None:
        return []
    read: dict[str, FileInfo] = {}
    lacking: list[str] = []
    for run in _behind(survey, ctx, state):
        plan = survey.plan_of(run, ctx)
        if plan is None:
            continue
        newer = [file for file in plan.files if file.path not in read]
        read |= {file.path: file for file in newer}
        missing = _unknown(ledger, newer)
        # What changed under a run with on_missing="skip" was planned, and left to the next run.
        if len(missing) > _skipped(run, ctx):
            lacking += missing
    return lacking


def _behind(survey: Survey, ctx: str, state: ContextState) -> Iterator[Run]:
    """Yield the runs that made a position, newest first, as far as they are there."""
    run = survey.runs.get(state.run) if state.set_in is None else None
    seen: set[RunKey] = set()
    while run is not None and ctx in run.plans and run.key not in seen:
        yield run
        seen.add(run.key)
        facts = run.plans[ctx].facts
        origin = facts.get(STARTS_FROM)
        if facts.get(STARTS_OVER) or not isinstance(origin, str) or not _RUN_KEY.fullmatch(origin):
            return
        run = survey.runs.get(RunKey.parse(origin))


def _unknown(ledger: Ledger, files: list[FileInfo]) -> list[str]:
    listing = Listing.of(files)
    return list(listing.take(np.flatnonzero(ledger.classify(listing) != Known.KNOWN)).paths)


def _skipped(run: Run, ctx: str) -> int:
    skipped = run.metrics.get("contexts", {}).get(ctx, {}).get("skipped", {}).get("missing", 0)
    return skipped if isinstance(skipped, int) else 0


# ---- the head against runs and changes


def _against_history(survey: Survey, head: Head) -> Iterator[Finding]:
    """Compare with what the last run of this line, or else the change that began it, left."""
    start = survey.lines[head.epoch].start if head.epoch in survey.lines else 0
    later = [run for run in survey.living() if run.key.number > start]
    if later:
        newest = later[-1]
        expected = {ctx: state.watermark for ctx, state in newest.contexts.items()}
        yield from _compare(survey, head, expected, f"run {newest.key}", newest.contexts)
        return
    for event in survey.events:
        after = event.get("watermarks_after")
        if event.get("epoch_after") == head.epoch and head.epoch > 1 and isinstance(after, dict):
            yield from _compare(survey, head, after, _change(event), {})


def _change(event: Mapping[str, Any]) -> str:
    return f"the {event.get('kind')} of {event.get('at')} by {event.get('who')}"


def _compare(
    survey: Survey, head: Head, expected: Mapping[str, Any], left_by: str, states: Mapping[str, ContextState]
) -> Iterator[Finding]:
    for ctx in sorted({*expected, *head.contexts}):
        state = head.contexts.get(ctx)
        present = None if state is None else state.watermark
        other = states.get(ctx)
        is_moved = other is not None and state is not None and replace(state, watermark=other.watermark) != other
        if present == expected.get(ctx) and (state is None) == (ctx not in expected) and not is_moved:
            continue
        holder = "" if state is None or other is None else f" {_difference(state, other)}"
        what = (
            f"{left_by} left the position of {ctx!r} at {expected.get(ctx)!r}, and the head has it at {present!r}"
            f"{holder}: no run and no change did that"
        )
        yield Finding("position-differs", survey.job, Severity.ERROR, what, f"HEAD, context {ctx!r}", RESTORE)


def _difference(now: ContextState, left: ContextState) -> str:
    if (now.run, now.set_in) != (left.run, left.set_in):
        return f"in run {now.run} instead of {left.run}"
    return f"as one of {now.fingerprint!r} ({now.kind}) instead of {left.fingerprint!r} ({left.kind})"


def _moved_without_reading(survey: Survey, run: Run) -> Iterator[Finding]:
    for ctx, entry in run.plans.items():
        facts = run.metrics.get("contexts", {}).get(ctx, entry.facts)
        state = run.contexts.get(ctx)
        if state is None or state.run != run.key or state.set_in is not None or facts.get("files") != 0:
            continue
        window = facts.get("upstream") or {}
        is_moved = window.get("after") != window.get("until") and not window.get("runs") if window else True
        is_started = bool(entry.facts.get("skipped", {}).get("before_start"))  # start= marks files as read, unread
        is_started = is_started or MOVED_FROM in entry.facts  # so is what lies in another folder now
        is_started = is_started or bool(facts.get("quarantined"))  # so is what it could not parse, unread
        if entry.kind in ("files", "upstream") and is_moved and not is_started:
            what = f"run {run.key} read nothing from {ctx!r}, and its position moved to {state.watermark!r}"
            where = f"RUN {run.key}, context {ctx!r}"
            yield Finding("position-moved-unread", survey.job, Severity.ERROR, what, where, RESTORE)
