"""Changes of where a job stands, each one transaction that starts a new timeline. No Spark, no data touched.

`reset`         positions as before the first run
`rewind`        positions as after an earlier run of the living line
`set_position`  one context to a position without a run: now, a time, an upstream run
`rename_context` the position of one context goes by another name
`relocate`      what one context has read lies in another folder now
`set_state`     one value of `job.state`
`undo`          as before the last of these
`unlock`        free a lease that a person knows to be dead; no line

This is the only implementation: operators, command line, Python and page call it. What a change would do is told by
`preview` in the module of that name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    OptionError,
    ProtectedError,
)
from airflow_bookmarks.core.head import busy_error
from airflow_bookmarks.core.job_state import SET_STATE, STATE_KIND, state_text
from airflow_bookmarks.core.rules.audit import ChangeAudit, check_reason, check_who
from airflow_bookmarks.core.run import watermarks
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.lifecycle.history.overwritten import with_made_again
from airflow_bookmarks.lifecycle.history.relocation import switch_relocated
from airflow_bookmarks.lifecycle.history.rewind import kept_run
from airflow_bookmarks.lifecycle.history.snapshot import HistorySnapshot
from airflow_bookmarks.lifecycle.history.state_values import switch_state
from airflow_bookmarks.lifecycle.history.timeline_switch import (
    files_to_clean,
    former_names,
    last_kept,
    look_at_undone,
    outputs_to_clean,
    switch_back,
    switch_contexts,
    switch_renamed,
    switch_set,
    switch_to,
    with_clean,
)
from airflow_bookmarks.lifecycle.state.positions import ContextReader
from airflow_bookmarks.sources.registry import position_at
from airflow_bookmarks.store.transitions.approval import check_approved
from airflow_bookmarks.store.transitions.collection import collection_check
from airflow_bookmarks.store.transitions.importing import check_unclaimed
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.sources.relocation import Unverified
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.transitions.timeline import TimelineSwitch

log = logging.getLogger(__name__)

_RACES = 10

_TimelineChange = Callable[["Head"], "TimelineSwitch"]


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What a change did: the head before and after, the last run kept (0: none), and the numbers of undone runs.

    `to_clean` counts the files that the next run removes, and `sinks_to_clean` the outputs in other sinks. `unreadable`
    are the keys of undone run items that can't be read: a change without clean does not need them.
    """

    job: str
    kind: str
    kept: int
    before: Head
    after: Head
    undone: tuple[int, ...] = ()
    to_clean: int = 0
    unreadable: tuple[str, ...] = ()
    sinks_to_clean: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, for XCom, CLI and notes."""
        return {
            "job": self.job,
            "change": self.kind,
            "to_run": self.kept,
            "undone_run_count": len(self.undone),
            "unreadable_runs": list(self.unreadable),
            "files_to_clean": self.to_clean,
            "outputs_to_clean": self.sinks_to_clean,
            "epoch": {"before": self.before.epoch, "after": self.after.epoch},
            "version": {"before": self.before.version, "after": self.after.version},
            "watermarks": watermarks_moved(self.before, self.after),
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A requested change.

    Args:
        kind: "reset", "rewind", "set", "set-state", "relocate", "rename-context", "undo" or "delete"; "unprotect",
            "share" and "hand-over" in a request of `protection` only.
        to_run: of a rewind: the run number or run id that is kept.
        contexts: of a reset or rewind: only these (None: all). No run is undone then.
        ctx, value: of a set. Of a set-state `value` is the JSON text.
        state: of a set-state: the name of the value.
        to_ctx: of a rename-context of `ctx`: its new name.
        from_root, to_root: of a relocate of `ctx`: where its files lay, and where they lie now.
        unverified: of a relocate: what files count as that can't be compared, "read" or "new" (None: an error).
        clean: of a reset or rewind: also remove what the undone runs published.
        dag: of a share or hand-over: the DAG that may run the job, or that it belongs to.
        renamed: of a hand-over: that DAG is the present owner under a new name.
    """

    kind: str
    to_run: str | None = None
    contexts: tuple[str, ...] | None = None
    ctx: str | None = None
    value: str | None = None
    clean: bool = False
    state: str | None = None
    to_ctx: str | None = None
    from_root: str | None = None
    to_root: str | None = None
    unverified: Unverified | None = None
    dag: str | None = None
    renamed: bool = False

    def switch(self, history: HistorySnapshot, event: AuditEvent) -> TimelineSwitch:
        """Return what the change makes of the job as `history` has it.

        Raises:
            RunUnknownError, ChangeRefusedError, OptionError: it can't be done; nothing was changed.
        """
        job, head = history.job, history.head
        if self.kind == "undo":
            return _undo_turn(history, event)
        if self.kind == "set":
            return _set_turn(history, self.ctx or "", self.value or "", event)
        if self.kind == SET_STATE:
            return switch_state(history, self.state or "", self.value or "", event)
        if self.kind == "rename-context":
            _check_contexts(job, head, None, [self.ctx or ""])
            return switch_renamed(history, self.ctx or "", self.to_ctx or "", event)
        if self.kind == "relocate":
            ctx, roots = self.ctx or "", (self.from_root or "", self.to_root or "")
            _check_contexts(job, head, None, [ctx])
            return switch_relocated(history, ctx, roots, self.unverified, event)
        if self.kind not in ("reset", "rewind", "delete"):
            raise OptionError(f"{self.kind!r} is no change of a position. Nothing was changed.")
        if (self.kind == "rewind") != (self.to_run is not None):
            needs = "needs a run to go back to" if self.kind == "rewind" else "takes no run"
            raise OptionError(f"a {self.kind} {needs}. Nothing was changed.")
        kept = None if self.to_run is None else kept_run(history, self.to_run)
        if self.contexts is None:
            for ctx, former in former_names(head, kept).items():
                log.warning(
                    "bookmark %s: context %r was called %r then, and is again after this rewind: a script that reads "
                    "it as %r reads everything. Rename it before its next run: 'airflow-bookmarks rename-context %s'",
                    job,
                    ctx,
                    former,
                    ctx,
                    f"{job} {former} {ctx}",
                )
            switch = switch_to(history, kept, self.kind, event)
            switch = with_made_again(history, switch)
            return with_clean(history, switch) if self.clean else switch
        _check_contexts(job, head, kept, self.contexts)
        _check_names(job, head, kept, self.contexts)
        if self.clean:
            raise OptionError(
                f"job {job!r}: a {self.kind} of some contexts undoes no run, so there is nothing to clean. Nothing was "
                "changed. Leave out either clean or the contexts."
            )
        return switch_contexts(history, kept, self.contexts, self.kind, event)


def reset(
    store: BookmarkStore,
    job: str,
    *,
    clean: bool = False,
    contexts: Sequence[str] | None = None,
    **terms: Unpack[ChangeAudit],
) -> ChangeOutcome:
    """Reset a job to before its first run: the next enabled run reads everything. History and targets stay.

    Args:
        clean: also remove exactly what the undone runs published; the next run does it. It can't be undone.
        contexts: only these contexts, without undoing a run; default: all.
        terms: reason, who, force, expected_version, request_id: see `ChangeAudit`.

    Raises:
        OptionError: no reason. JobUnknownError. JobBusyError: a run holds the lease. ChangedMeanwhileError.
        ChangeRefusedError: it can't be cleaned. ProtectedError: it needs an approval.

    Example:
        reset(store, "flights.clean", reason="the delivery of May was wrong", who="ada", clean=True)
    """
    change = Change("reset", contexts=None if contexts is None else tuple(contexts), clean=clean)
    return apply(store, job, change, **terms)


def rewind(
    store: BookmarkStore,
    job: str,
    to_run: str | int,
    *,
    clean: bool = False,
    contexts: Sequence[str] | None = None,
    **terms: Unpack[ChangeAudit],
) -> ChangeOutcome:
    """Rewind a job to its state after an earlier run, given by run number or run id; see `reset` for the rest.

    Raises:
        RunUnknownError: no such run in the living line. ChangeRefusedError: what undone runs have overwritten would
            count as made. Besides those of `reset`.
    """
    change = Change("rewind", str(to_run), None if contexts is None else tuple(contexts), clean=clean)
    return apply(store, job, change, **terms)


def set_position(
    store: BookmarkStore, job: str, ctx: str, value: str | int, **terms: Unpack[ChangeAudit]
) -> ChangeOutcome:
    """Set one context to a position that no run left; see `reset` for the rest.

    Args:
        value: for files "now" (all that is there counts as read), a time (what is older does), or "retry:<path>" or
            "retry:*" (that quarantined file, or all, are read again, and nothing else changes); for an upstream "now"
            (what is published counts as read) or a run number (0: from the beginning).

    Raises:
        OptionError: the value is none of these, or the context was never read. Besides those of `reset`.
    """
    return apply(store, job, Change("set", ctx=ctx, value=str(value)), **terms)


def set_state(store: BookmarkStore, job: str, state: str, value: Any, **terms: Unpack[ChangeAudit]) -> ChangeOutcome:
    """Set one value of `job.state`, as a script would; see `reset` for the rest. No run is undone.

    Args:
        state: the name of the value.
        value: a JSON value; None removes it.

    Raises:
        OptionError: it is no JSON value, or all values together have more than 16 KB. Besides those of `reset`.
    """
    return apply(store, job, Change(SET_STATE, state=state, value=state_text(state, value)), **terms)


def rename_context(
    store: BookmarkStore, job: str, ctx: str, to_ctx: str, **terms: Unpack[ChangeAudit]
) -> ChangeOutcome:
    """Rename a context: its position goes by the name that the script now uses; see `reset` for the rest.

    No run is undone. Runs keep the name under which they read, so they can't be replayed under the new one.

    Raises:
        OptionError: there is no such context. NameInvalidError. ChangeRefusedError: the new name has a position.
            Besides those of `reset`.
    """
    return apply(store, job, Change("rename-context", ctx=ctx, to_ctx=to_ctx), **terms)


def relocate(
    store: BookmarkStore,
    job: str,
    ctx: str,
    from_root: str,
    to_root: str,
    *,
    unverified: Unverified | None = None,
    **terms: Unpack[ChangeAudit],
) -> ChangeOutcome:
    """Record that the files which one context has read now lie in another folder; see `reset` for the rest.

    Those with the same path below it and the same etag (the same size, where one of the stores has no etags) count as
    read, the rest is new. No run is undone.

    Args:
        from_root, to_root: the folder or prefix as it was, and as it is; the context reads it, or folders below it.
        unverified: what files count as that can't be compared any more: "read" or "new". Default: they are an error.

    Raises:
        OptionError: the context reads no files there. SourceError: the new folder can't be listed. Besides those of
            `reset`.
    """
    change = Change("relocate", ctx=ctx, from_root=from_root, to_root=to_root, unverified=unverified)
    return apply(store, job, change, **terms)


def undo(store: BookmarkStore, job: str, **terms: Unpack[ChangeAudit]) -> ChangeOutcome:
    """Undo the last reset, rewind, set, set-state or undo: the job stands as before it; see `reset` for the rest.

    Runs made since are undone. A second undo takes the first one back.

    Raises:
        ChangeRefusedError: there is none, it was cleaned, it dropped a publish whose staged output is gone, or runs
            made since have overwritten what would count as made.
    """
    return apply(store, job, Change("undo"), **terms)


def unlock(store: BookmarkStore, job: str, *, reason: str, who: str, held_by: str | None = None) -> dict[str, Any]:
    """Free the lease of a dead driver: the holder is fenced, and the next run settles what it left.

    Args:
        reason, who: for the audit event.
        held_by: the run id that is known to be dead; None: whoever holds the job.

    Raises:
        OptionError: no reason. ChangeRefusedError: nobody holds the job. ChangedMeanwhileError: another run does.
    """
    check_reason("unlock", reason)
    check_who(who)
    job = resolve_name(store, job)
    for _ in range(_RACES):
        head = store.head(job)
        check_unclaimed(job, head)
        if head.lease is None:
            raise ChangeRefusedError(f"job {job!r}: nobody holds it. Nothing was changed; the next run may begin.")
        lease = head.lease
        if held_by is not None and lease.run_id != held_by:
            raise ChangedMeanwhileError(
                f"job {job!r} is held by {lease.run_id!r} by now, and not by {held_by!r} any more. Nothing was changed."
            )
        event: AuditEvent = {"kind": "unlock", **signed(who), "why": reason, "held_by": lease.run_id}
        if store.break_lease(job, head, event) is not None:
            return {"job": job, "change": "unlock", "held_by": lease.run_id, "attempt": lease.attempt}
    raise _kept_changing(job, "an unlock")


def apply(
    store: BookmarkStore,
    job: str,
    change: Change,
    *,
    reason: str,
    who: str,
    force: bool = False,
    expected_version: int | None = None,
    request_id: str | None = None,
) -> ChangeOutcome:
    """Make a change of a job, given by any of its names; for the terms see `ChangeAudit`, for the errors `reset`."""
    check_reason(change.kind, reason)
    check_who(who)
    job = resolve_name(store, job)
    for _ in range(_RACES):
        history = HistorySnapshot.load(store, job)
        head, gone = history.head, history.collected
        check_unclaimed(job, head)
        check_free(store, job, head, force)
        _check_version(job, head, expected_version)
        if request_id is not None:
            check_approved(store, job, request_id)
        elif head.protected:
            raise ProtectedError(
                f"job {job!r} is protected: {change.kind!r} needs the approval of a second person. Nothing was "
                f"changed. Ask for it with --request on the command line."
            )
        if change.clean and head.lease is not None:
            # The holder of an expired lease could still plan or stage after the list of what to clean is made.
            change.switch(history, {})  # refuse before anyone is fenced
            event: AuditEvent = {"kind": "unlock", **signed(who), "why": f"{change.kind} with clean: {reason}"}
            event["held_by"] = head.lease.run_id
            fenced = store.break_lease(job, head, event, request_id=request_id)
            if fenced is None:
                continue
            head = fenced
            history = HistorySnapshot(store, job, head)  # the holder may have planned until it was fenced
        switch = change.switch(history, {**signed(who), "why": reason, "forced": force})
        kept = last_kept(history, switch)
        # Keep the collection from removing what the job goes back to.
        switch = replace(switch, check=collection_check(store, job, gone), event={**switch.event, "last_kept": kept})
        switch = replace(switch, request_id=request_id)
        undone = look_at_undone(history, switch)
        after = store.begin_timeline(job, head, switch)
        if after is not None:
            numbers = tuple(run.key.number for run in undone.runs)
            files, outputs, damaged = files_to_clean(switch), outputs_to_clean(switch), undone.unreadable
            return ChangeOutcome(job, change.kind, kept, head, after, numbers, files, damaged, outputs)
    raise _kept_changing(job, f"a {change.kind}")


def _undo_turn(history: HistorySnapshot, event: AuditEvent) -> TimelineSwitch:
    store, job, head = history.store, history.job, history.head
    line_change = store.line_change(job, head.epoch)
    if line_change is None:
        raise ChangeRefusedError(
            f"job {job!r}: there is no reset, rewind, set, undo or delete to take back. Nothing was changed."
        )
    what = f"job {job!r}: the last {line_change.kind} (epoch {head.epoch})"
    if line_change.is_clean or head.cleaning is not None:
        which = "was" if line_change.is_clean else "came after one that was"
        raise ChangeRefusedError(
            f"{what} {which} made with clean: what the undone runs published is removed, so it can't be taken back. "
            "Nothing was changed. The next run reads that input again."
        )
    switch = switch_back(history, line_change.line, line_change.contexts, line_change.data_run_number, event)
    switch = with_made_again(history, switch)
    if line_change.dropped is None:
        return switch
    if head.fence != line_change.fence:
        raise ChangeRefusedError(
            f"{what} dropped the publish of run {line_change.dropped.number}, and a run that began since has "
            "removed what was staged, so it can't be taken back. Nothing was changed. The input of that run is read "
            "again anyway."
        )
    return replace(switch, publishing=line_change.dropped)


def _set_turn(history: HistorySnapshot, ctx: str, value: str, event: AuditEvent) -> TimelineSwitch:
    store, job, head = history.store, history.job, history.head
    _check_contexts(job, head, None, [ctx])
    state = head.contexts[ctx]
    if state.kind == STATE_KIND:
        raise OptionError(
            f"job {job!r}: {ctx!r} is its job.state, which has values by name. Nothing was changed. Set one by "
            f"'airflow-bookmarks set-state {job} NAME JSON'."
        )
    reader = ContextReader(store, job, head)
    position = position_at(state.kind, store, reader.found(ctx), reader.stored_plan(ctx), value)
    return switch_set(history, ctx, state, position, {**event, "ctx": ctx, "value": value})


# ---- what is refused


def check_free(store: BookmarkStore, job: str, head: Head, force: bool) -> None:
    """Make sure that no run holds the job, or that its run may be fenced.

    Raises:
        JobBusyError: a run holds it, and `force` is False.
    """
    if not force and head.holder(store.now()) is not None:
        raise busy_error(job, head)


def _check_version(job: str, head: Head, expected: int | None) -> None:
    if expected is not None and head.version != expected:
        raise ChangedMeanwhileError(
            f"job {job!r} is at version {head.version} and not {expected} any more. Nothing was changed. Look again "
            "and decide anew."
        )


def _check_contexts(job: str, head: Head, kept: Run | None, names: Sequence[str]) -> None:
    known = {*head.contexts, *(kept.contexts if kept is not None else ())}
    unknown = [name for name in names if not isinstance(name, str) or name not in known]
    if unknown or not names:
        raise OptionError(
            f"job {job!r} has no context {', '.join(map(repr, unknown)) or '(none given)'}; it has {sorted(known)}. "
            "Nothing was changed."
        )


def _check_names(job: str, head: Head, kept: Run | None, names: Sequence[str]) -> None:
    """Refuse a rewind of contexts to a run under which one of them had another name.

    Raises:
        ChangeRefusedError: it would go back to the beginning, and not to that run.
    """
    former = former_names(head, kept)
    for ctx in names:
        if kept is not None and ctx in former:
            raise ChangeRefusedError(
                f"job {job!r}: run {kept.key.number} has no context {ctx!r}, but {former[ctx]!r} over the same source, "
                f"which was renamed since: {ctx!r} would go back to the beginning. Nothing was changed. Rewind the job "
                f"as a whole, and rename {former[ctx]!r} again; or, if it is to read everything: 'airflow-bookmarks "
                f"reset {job} --ctx {ctx}'."
            )


def _kept_changing(job: str, what: str) -> ChangedMeanwhileError:
    return ChangedMeanwhileError(
        f"job {job!r} kept changing while {what} of it was to be made; nothing was changed. Try again."
    )


def watermarks_moved(before: Head, after: Head) -> dict[str, dict[str, str | None]]:
    """Return the watermark of each context before and after a change."""
    old, new = watermarks(before.contexts), watermarks(after.contexts)
    return {ctx: {"before": old.get(ctx), "after": new.get(ctx)} for ctx in sorted({*old, *new})}
