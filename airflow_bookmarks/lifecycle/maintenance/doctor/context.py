"""Check contexts: positions, what they have consumed of upstreams, what they will no longer read, unknown kinds.

It checks their gaps too. `partition_time` lets runs skip old partitions without listing them, so only a full
listing, as made here, finds files that came too late for it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.ledger.file_ledger import Known
from airflow_bookmarks.core.ledger.gap import gaps_in_words
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.core.selection.reason import BEFORE_START, MISSING
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.lifecycle.protocol.partial import in_words, landed_in
from airflow_bookmarks.lifecycle.protocol.recover import made_by, unknown_sinks, unknown_sources
from airflow_bookmarks.lifecycle.state.positions import last_plans_among
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.files.planner import recorded_files
from airflow_bookmarks.sources.registry import find_kind, has_ledger, kind_of, own_errors, upstream_of, why_unknown
from airflow_bookmarks.sources.source import PlanInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.ledger.file_ledger import Ledger
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.run import ContextState, PlanEntry, Run
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey

_RUN_KEY = re.compile(r"\d+\.\d+")


def examine_positions(survey: Survey) -> Iterator[Finding]:
    """Find positions that are gone, were altered outside a run, or lack what was read."""
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
        return  # damaged bytes, which the check of all payloads has named
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
    """Return the watermark that the position itself tells; None if its kind tells none, or it is that of a column."""
    if state.watermark_column is not None:
        return None
    if has_ledger(state.kind) and _has_sequence(survey, ctx, state):
        return _watermark_of_sequence(survey, ctx, state)
    payload, kind = survey.position_of(ctx, state), find_kind(state.kind)
    body = None if payload is None or kind is None else survey.bytes_of(payload)
    with own_errors(state.kind):
        return None if body is None or kind is None else kind.watermark(body, survey.store.blobs.get_named)


def _has_sequence(survey: Survey, ctx: str, state: ContextState) -> bool:
    run = survey.runs.get(state.run)
    entry = None if run is None else run.plans.get(state.planned_as(ctx))
    return entry is not None and entry.file_metadata.sequence is not None


def _watermark_of_sequence(survey: Survey, ctx: str, state: ContextState) -> str | None:
    """Return where the plan of a run that read all of it leads; None where that can't be determined."""
    run = survey.runs.get(state.run)
    if run is None or state.set_in is not None or _skipped(run, ctx):
        return None
    plan = survey.files_of(run, ctx)
    return None if plan is None else plan.sequence_watermark


def _lacking(survey: Survey, ctx: str, state: ContextState) -> list[str]:
    """Return the files that the runs behind a position have read and its ledger lacks."""
    ledger = survey.ledger_of(ctx, state)
    if ledger is None:
        return []
    read: dict[str, FileInfo] = {}
    lacking: list[str] = []
    for run in _behind(survey, ctx, state):
        plan = survey.files_of(run, ctx)
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
        plan = run.plans[ctx].metadata
        if plan.starts_over or plan.starts_from is None or not _RUN_KEY.fullmatch(plan.starts_from):
            return
        run = survey.runs.get(RunKey.parse(plan.starts_from))


def _unknown(ledger: Ledger, files: list[FileInfo]) -> list[str]:
    listing = Listing.of(files)
    return list(listing.take(np.flatnonzero(ledger.classify(listing) != Known.KNOWN)).paths)


def _skipped(run: Run, ctx: str) -> int:
    read = run.measured(ctx)
    return 0 if read is None else read.plan.skipped.get(MISSING, 0)


# ---- the head against runs and changes


def _against_history(survey: Survey, head: Head) -> Iterator[Finding]:
    """Compare the head with what the last run of this line, or else the change that began it, left."""
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
        measured = run.measured(ctx)
        read = entry.metadata if measured is None else measured.plan
        state = run.contexts.get(ctx)
        if state is None or state.run != run.key or state.set_in is not None or read.files != 0:
            continue
        window = read.upstream
        is_moved = window is None or (window.after != window.until and not window.runs)
        is_started = bool(entry.metadata.skipped.get(BEFORE_START))  # start= marks files as read, unread
        is_started = is_started or entry.metadata.is_relocated  # a relocation marks files as read, too
        is_started = is_started or bool(read.quarantined)  # so is what it could not parse, unread
        if find_kind(entry.kind) is not None and is_moved and not is_started:
            what = f"run {run.key} read nothing from {ctx!r}, and its position moved to {state.watermark!r}"
            where = f"RUN {run.key}, context {ctx!r}"
            yield Finding("position-moved-unread", survey.job, Severity.ERROR, what, where, RESTORE)


def examine_edges(survey: Survey) -> Iterator[Finding]:
    """Find edges that no consumer can have left like that."""
    if survey.head is None or not survey.edges:
        return
    consumers = survey.store.heads_or_damage(list(survey.edges))
    for consumer, edge in survey.edges.items():
        where = f"DOWN#{consumer}"
        reached = max([edge.run_number, *edge.contexts.values()])
        if reached > survey.head.published:
            what = (
                f"consumer {consumer!r} has consumed up to run {reached}, and only {survey.head.published} is "
                "published: it would take later runs for read"
            )
            mend = f"Rewind {consumer!r} to a run that had consumed no more than {survey.head.published}."
            yield Finding("edge-ahead", survey.job, Severity.ERROR, what, where, mend)
        if edge.epoch > survey.head.epoch or edge.changes > survey.head.changes:
            what = (
                f"consumer {consumer!r} has seen epoch {edge.epoch} and change count {edge.changes}, and the job is at "
                f"{survey.head.epoch} and {survey.head.changes}: it would miss the next reset, rewind or replay"
            )
            mend = f"Rewind {consumer!r}, or restore the table from a backup."
            yield Finding("edge-ahead", survey.job, Severity.ERROR, what, where, mend)
        if consumer not in consumers:
            what = f"consumer {consumer!r} has an edge and no bookmark; what it has not read is kept for it forever"
            mend = f"Restore {consumer!r} from a backup, or delete it, which removes its edges."
            yield Finding("edge-without-consumer", survey.job, Severity.WARNING, what, where, mend)
        if edge.contexts and edge.run_number != min(edge.contexts.values()):
            what = (
                f"the edge of consumer {consumer!r} is at run {edge.run_number}, and the lowest of its contexts at "
                f"{min(edge.contexts.values())}"
            )
            yield Finding("edge-differs", survey.job, Severity.WARNING, what, where, _WRITTEN_ANEW)


_WRITTEN_ANEW = (
    "The consumer's next run that reads something new writes it again; until then history is not collected by it."
)


def examine_upstreams(survey: Survey) -> Iterator[Finding]:
    """Find contexts that read a job which does not know of them, or has another edge for them."""
    for ctx, state in {} if survey.head is None else survey.head.contexts.items():
        upstream = upstream_of(state)
        if upstream is None:
            continue
        try:
            if survey.store.snapshot(upstream).head is not None:
                yield from _upstream(survey, ctx, state, upstream, survey.store.edge(upstream, survey.job))
        except StateCorruptError:
            continue  # the examination of that job reports what is damaged there


def _upstream(survey: Survey, ctx: str, state: ContextState, upstream: str, edge: Edge | None) -> Iterator[Finding]:
    where, at = f"HEAD, context {ctx!r}", int(state.watermark or 0)
    noted = None if edge is None else edge.contexts.get(ctx)
    if noted == at:
        return
    if noted is None:
        what = (
            f"{ctx!r} has read job {upstream!r} up to run {at}, and that job has no edge of it: a collection there may "
            "take what was not read yet"
        )
        yield Finding("edge-missing", survey.job, Severity.WARNING, what, where, _WRITTEN_ANEW)
        return
    what = f"{ctx!r} has read job {upstream!r} up to run {at}, and its edge there says {noted}"
    severity = Severity.WARNING
    if noted > at:
        what += ": what lies between counts as read there, and a collection may take it"
        severity = Severity.ERROR
    yield Finding("edge-differs", survey.job, severity, what, where, _WRITTEN_ANEW)


def examine_gaps(survey: Survey) -> Iterator[Finding]:
    """Find contexts with gaps between the first and the last number or day seen."""
    if survey.head is None:
        return
    runs = {run.key: run for runs in survey.committed.values() for run in runs}
    for ctx, entry in last_plans_among(survey.head, runs).items():
        gaps = entry.file_metadata.gaps
        if gaps is not None and gaps.missing:
            what = f"in {ctx!r} {gaps_in_words(gaps.recorded)}: no file of theirs was ever listed"
            mend = (
                "Ask whoever delivers the files. One that comes after all is read by the next run, which closes its "
                "gap; where some are left out on purpose, read with gaps=False."
            )
            yield Finding("gap", survey.job, Severity.NOTICE, what, f"context {ctx!r}", mend)


def examine_partitions(survey: Survey) -> Iterator[Finding]:
    """Find files in partitions that are no longer listed, and that no run has read."""
    if survey.head is None:
        return
    for ctx, state in survey.head.contexts.items():
        entry = _last_plan(survey, ctx)
        if entry is None or not has_ledger(entry.kind):
            continue
        if entry.file_metadata.partition_time is not None:
            yield from _overlooked(survey, ctx, state, entry)


def _overlooked(survey: Survey, ctx: str, state: ContextState, entry: PlanEntry) -> Iterator[Finding]:
    payload = survey.position_of(ctx, state)
    body = survey.bytes_of(entry.body)
    position = None if payload is None else survey.bytes_of(payload)
    metadata = entry.file_metadata
    if body is None or position is None or metadata.read is None:
        return  # the checks of payloads and positions have named these
    found = PlanInput(position, survey.store.blobs.get_named, metadata.partition_types, stats=entry.stats)
    source = recorded_files(kind_of(entry.kind).decode(body).roots, metadata.read, lambda: survey.now)
    files = source.overlooked(found)
    if not len(files):
        return
    what = (
        f"{len(files)} file(s) of {ctx!r} landed in partitions that are too old to be listed, and no run has read "
        f"them, the first: {files.paths[0]!r}"
    )
    mend = (
        "To read them, run the job once without partition_time, and with a late_after that reaches back to them; or "
        "move them into a newer partition."
    )
    yield Finding("file-in-old-partition", survey.job, Severity.WARNING, what, files.paths[0], mend)


def _last_plan(survey: Survey, ctx: str) -> PlanEntry | None:
    for run in reversed(survey.living()):
        if ctx in run.plans:
            return run.plans[ctx]
    return None


# ---- kinds


_MEND = "Nothing to do if that is intended. To check it, use a version or a package that knows the kind."
_MEND_WITHOUT_SPARK = (
    "Nothing to do: the Spark of the job's next run reaches it, and asks it what is there before it writes."
)


def examine_kinds(survey: Survey) -> Iterator[Finding]:
    """Name each context and output that can't be checked, and each open run that this version refuses."""
    head = survey.head
    kinds = {} if head is None else {ctx: state.kind for ctx, state in head.contexts.items()}
    for ctx, kind in sorted(kinds.items()):
        if kind != STATE_KIND and find_kind(kind) is None:
            what = f"context {ctx!r} is of kind {kind!r}, which is not known here: its position was not looked at"
            what += why_unknown(kind) and f".{why_unknown(kind)}"
            yield Finding("kind-unknown", survey.job, Severity.NOTICE, what, f"HEAD, context {ctx!r}", _MEND)
    sinks = {
        (name, output.sink, output.target)
        for runs in survey.committed.values()
        for run in runs
        for name, output in run.outputs.items()
        if not output.lies_in_files and SINKS.find_to_examine(output.sink) is None
    }
    yield from _open_runs(survey)
    for name, sink, target in sorted(sinks):
        what = f"output {name!r} is written to {target!r} by a sink of kind {sink!r}: what lies there was not looked at"
        mend = _MEND if SINKS.find(sink) is None else _MEND_WITHOUT_SPARK
        yield Finding("kind-unknown", survey.job, Severity.NOTICE, what, target, mend)


def _open_runs(survey: Survey) -> Iterator[Finding]:
    for run in survey.runs.values():
        for ctx, kind in unknown_sources(run).items() if run.state.is_open else ():
            what = (
                f"the open run {run.key} reads context {ctx!r} from a source of kind {kind!r}, which is not known "
                "here: no run of the job begins with this version of the package"
            )
            mend = f"Run the job once with the version that made it{made_by(run)}, which settles it."
            yield Finding("kind-unknown", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)
        if _is_left(survey, run):
            yield from _unknown_sinks(survey, run)
            yield from _undecided(survey, run)


def _undecided(survey: Survey, run: Run) -> Iterator[Finding]:
    """Find a run that is in some of its tables only, and that nobody has settled."""
    landed = landed_in(run)
    if set(landed.values()) != {True, False} or any(run.outputs[name].metadata.settled_as for name in landed):
        return
    there, missing = in_words(run, landed)
    what = f"the open run {run.key} is in {'; '.join(there)}, and not in {'; '.join(missing)}: no run of the job begins"
    number = run.key.number
    mend = (
        f"Decide: 'airflow-bookmarks settle {survey.job} --run {number} --as committed' (or given-up) --reason \"...\"."
    )
    yield Finding("run-undecided", survey.job, Severity.ERROR, what, f"RUN {run.key}", mend)


def _is_left(survey: Survey, run: Run) -> bool:
    """Whether the next run settles this one: it was left open, or its publish is due. Whoever runs knows its sinks."""
    is_due = survey.head is not None and run.key == survey.head.publishing
    return (run.state.is_open or is_due) and not survey.has_live_lease


def _unknown_sinks(survey: Survey, run: Run) -> Iterator[Finding]:
    for name, output in unknown_sinks(run).items():
        left = "the open run" if run.state.is_open else "the publish is due of run"
        what = (
            f"{left} {run.key}, which wrote output {name!r} to a sink of kind {output.sink!r} ({output.target}) that "
            f"is not known here: no run of the job begins where it is not known.{SINKS.why_unknown(output.sink)}"
        )
        mend = (
            "Run the job where the sink is known, which settles it: by its script if that brings the sink, else with "
            f"the package or the version that made the run{made_by(run)}."
        )
        yield Finding("kind-unknown", survey.job, Severity.WARNING, what, f"RUN {run.key}", mend)
