"""Reset and rewind: a new line of history, as one transaction. It needs no Spark and touches no data.

`reset`         positions as before the first run
`rewind`        positions as after an earlier run of the living line
`rewind_along`  the same for a consumer, within its own run, because its upstream went back
"""

from __future__ import annotations

import getpass
import logging
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.edge import Edge
from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    FencedError,
    JobBusyError,
    OptionError,
    RunUnknownError,
)
from airflow_bookmarks.core.instant import utc_now
from airflow_bookmarks.core.position import UpstreamPosition
from airflow_bookmarks.store.bookmark_store import BookmarkStore, Holding, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState, Run

log = logging.getLogger(__name__)

_RACES = 10
_DIGITS = 10  # as many as the key of a run item has


@dataclass(frozen=True, slots=True)
class Changed:
    """What a reset or rewind did: the head before and after, the run that was kept (0: none), what was undone."""

    job: str
    kind: str
    kept: int
    before: Head
    after: Head

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for XCom, CLI and notes."""
        return {
            "job": self.job,
            "change": self.kind,
            "to_run": self.kept,
            "undone_runs": max(0, self.before.run_number - self.kept),
            "epoch": {"before": self.before.epoch, "after": self.after.epoch},
            "version": {"before": self.before.version, "after": self.after.version},
            "watermarks": {
                ctx: {"before": _mark(self.before, ctx), "after": _mark(self.after, ctx)}
                for ctx in sorted({*self.before.contexts, *self.after.contexts})
            },
        }


def reset(
    store: BookmarkStore, job: str, *, reason: str, who: str, force: bool = False, expected_version: int | None = None
) -> Changed:
    """Take a job back to before its first run: the next enabled run reads everything. History and targets stay.

    Args:
        reason: why, for the audit event; required.
        who: who asks for it.
        force: also under a lease: the run that holds it is fenced.
        expected_version: refuse if the head has another version by now.

    Raises:
        OptionError: no reason. JobUnknownError. JobBusyError: a run holds the lease. ChangedMeanwhileError.
    """
    return _change(store, job, "reset", None, reason, who, force, expected_version)


def rewind(
    store: BookmarkStore,
    job: str,
    to_run: str | int,
    *,
    reason: str,
    who: str,
    force: bool = False,
    expected_version: int | None = None,
) -> Changed:
    """Take a job back to its state after an earlier run, given by run number or run id; see `reset` for the rest.

    Raises:
        RunUnknownError: no such run in the living line. Besides those of `reset`.
    """
    return _change(store, job, "rewind", str(to_run), reason, who, force, expected_version)


def present_user() -> str:
    """Return the user of the operating system, by number where it has no name (usual in containers)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid:{os.getuid()}"


def _change(
    store: BookmarkStore,
    job: str,
    kind: str,
    to_run: str | None,
    reason: str,
    who: str,
    force: bool,
    expected_version: int | None,
) -> Changed:
    if not reason.strip():
        raise OptionError(f"a {kind} needs a reason; it is kept with who and when. Nothing was changed.")
    for _ in range(_RACES):
        head = store.head(job)
        _check_free(job, head, force)
        if expected_version is not None and head.version != expected_version:
            raise ChangedMeanwhileError(
                f"job {job!r} is at version {head.version} and not {expected_version} any more. Nothing was changed. "
                "Look again and decide anew."
            )
        kept = None if to_run is None else resolve_run(store, job, head, to_run)
        turn = _turn(store, job, head, kept, {"kind": kind, "who": who, "why": reason, "forced": force})
        after = store.begin_line(job, head, turn)
        if after is not None:
            return Changed(job, kind, turn.kept, head, after)
    raise ChangedMeanwhileError(f"job {job!r} kept changing while it was to be {kind}; nothing was changed. Try again.")


def _check_free(job: str, head: Head, force: bool) -> None:
    lease = head.lease
    if lease is not None and not force and utc_now() < lease.expires_at:
        raise JobBusyError(job, lease.run_id, lease.attempt, lease.since, lease.expires_at)


def _turn(store: BookmarkStore, job: str, head: Head, kept: Run | None, event: Mapping[str, Any]) -> Turn:
    contexts = {} if kept is None else kept.contexts
    number = 0 if kept is None else kept.key.number
    due = head.publishing
    # A due first publish of an undone run is dropped; a due replay stays due, and is finished though undone.
    keep_publishing = due is not None and (due.number <= number or _is_replay(store, job, head))
    return Turn(
        kept=number,
        contexts=contexts,
        data_run_number=0 if kept is None else kept.data_run_number,
        keep_publishing=keep_publishing,
        edges=_edges_after(store, job, head, contexts),
        event={
            **event,
            "to_run": number,
            "version_before": head.version,
            "epoch_before": head.epoch,
            "run_number_before": head.run_number,
            "watermarks_before": {ctx: state.watermark for ctx, state in head.contexts.items()},
            "watermarks_after": {ctx: state.watermark for ctx, state in contexts.items()},
        },
    )


def _is_replay(store: BookmarkStore, job: str, head: Head) -> bool:
    run = store.run(job, head.publishing) if head.publishing is not None else None
    return run is not None and run.revision > 0


def _edges_after(store: BookmarkStore, job: str, head: Head, contexts: Mapping[str, ContextState]) -> dict[str, Edge]:
    """Return the edge to each upstream as it is after the change: what the kept positions say, else nothing
    consumed.
    """
    edges: dict[str, Edge] = {}
    for ctx, state in head.contexts.items():
        if state.kind != "upstream":
            continue
        position = _upstream_position(store, job, ctx, contexts.get(ctx))
        upstream = upstream_of(state)
        other = edges.get(upstream)
        reached = 0 if position is None else position.run_number
        marks = {**(other.contexts if other else {}), ctx: reached}
        seen = position or _upstream_position(store, job, ctx, state)
        epoch, changes = (1, 0) if seen is None else (seen.epoch, seen.changes)
        edges[upstream] = Edge(job, min(marks.values()), epoch, changes, marks)
    return edges


def _upstream_position(store: BookmarkStore, job: str, ctx: str, state: ContextState | None) -> UpstreamPosition | None:
    run = None if state is None else store.run(job, state.run)
    payload = None if run is None else run.positions.get(ctx)
    return None if payload is None else UpstreamPosition.decode(store.blobs.get(payload))


def upstream_of(state: ContextState) -> str:
    """Return the upstream job that a context of kind "upstream" reads: the second part of its fingerprint."""
    return state.fingerprint.split(":")[1]


def resting_contexts(upstream: str, contexts: Mapping[str, ContextState]) -> dict[str, int]:
    """Return for each context that reads `upstream` the run number up to which it has read."""
    return {
        ctx: int(state.watermark or 0)
        for ctx, state in contexts.items()
        if state.kind == "upstream" and upstream_of(state) == upstream
    }


# ---- finding runs


def resolve_run(store: BookmarkStore, job: str, head: Head, reference: str) -> Run:
    """Return the committed run of the living line that a run number or run id names.

    A run id that committed nothing (it failed) means the newest committed run at or before it, as in Glue.

    Raises:
        RunUnknownError: there is none.
    """
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
    living = store.ancestry(job, head.epoch)
    for run in store.runs(job, until=number, reverse=True):
        if run.state.is_committed and living.is_living(run.key.number, run.epoch):
            if is_number(reference) and run.key.number != number:
                raise RunUnknownError(
                    f"run {number} of job {job!r} was undone by a reset or rewind; the newest living run before it is "
                    f"{run.key.number}. Nothing was read or changed."
                )
            return run
    raise RunUnknownError(
        f"job {job!r} has no living run at or before {reference!r}: those there were, were undone by a reset or "
        f"rewind. Nothing was read or changed. 'airflow-bookmarks history {job}' lists them."
    )


def window_runs(store: BookmarkStore, job: str, from_run: str, to_run: str) -> list[Run]:
    """Return the living runs of the half-open window (from, to], oldest first; `0` stands for before the first run.

    Raises:
        RunUnknownError: an end names no run. OptionError: from is newer than to.
    """
    head = store.head(job)
    low = 0 if from_run == "0" else resolve_run(store, job, head, from_run).key.number
    high = resolve_run(store, job, head, to_run).key.number
    if low > high:
        raise OptionError(
            f"job {job!r}: 'from' ({from_run}, run {low}) is newer than 'to' ({to_run}, run {high}). Nothing was "
            "read or changed. The window is (after FROM, up to and including TO]."
        )
    living = store.ancestry(job, head.epoch)
    runs = store.runs(job, after=low, until=high)
    return [r for r in runs if r.state.is_committed and living.is_living(r.key.number, r.epoch)]


def is_number(reference: str) -> bool:
    """Whether a reference to a run is a run number (up to ten digits), and not a run id."""
    return reference.isascii() and reference.isdigit() and len(reference) <= _DIGITS


def _number(store: BookmarkStore, job: str, reference: str) -> int | None:
    if is_number(reference):
        return int(reference)
    execution = store.execution(job, reference)
    if execution is None:
        return None
    return execution.base_run if execution.last_run is None else execution.last_run


# ---- along with an upstream


def rewind_along(store: BookmarkStore, holding: Holding, upstream: str, target: int) -> Holding:
    """Take the consumer that `holding` works on back, all contexts, to its newest run whose edge lies at or below
    `target`.

    The lease goes on under the next fence.

    Raises:
        FencedError: the job is not ours any more.
    """
    kept = _newest_at_or_below(store, holding.job, holding.base, upstream, target)
    event = {"kind": "rewind", "who": holding.caller.run_id, "why": f"upstream {upstream} went back to run {target}"}
    current = store.head(holding.job)
    if current.fence != holding.fence:
        raise FencedError(f"job {holding.job!r} was taken over while it was to be rewound along; nothing was changed.")
    after = store.begin_line(holding.job, current, _turn(store, holding.job, current, kept, event), keep=holding)
    if after is None:
        raise FencedError(f"job {holding.job!r} was taken over while it was to be rewound along; nothing was changed.")
    log.warning(
        "bookmark %s: upstream %s went back to run %d; going back along to run %d",
        holding.job,
        upstream,
        target,
        0 if kept is None else kept.key.number,
    )
    return replace(holding, fence=after.fence, base=replace(after, lease=None))


def _newest_at_or_below(store: BookmarkStore, job: str, head: Head, upstream: str, target: int) -> Run | None:
    candidate: Run | None = None
    for run in _living_runs_backwards(store, job, head):
        edge = run.edges.get(upstream)
        candidate = candidate or run
        if edge is None:
            continue  # it did not read this upstream: its state of it is that of an earlier run
        if edge["run_number"] <= target:
            return candidate
        candidate = None
    return candidate  # the oldest runs did not read this upstream at all


def _living_runs_backwards(store: BookmarkStore, job: str, head: Head) -> Iterator[Run]:
    living = store.ancestry(job, head.epoch)
    for run in store.runs(job, until=head.run_number, reverse=True):
        if run.state.is_committed and living.is_living(run.key.number, run.epoch):
            yield run


def _mark(head: Head, ctx: str) -> str | None:
    state = head.contexts.get(ctx)
    return None if state is None else state.watermark
