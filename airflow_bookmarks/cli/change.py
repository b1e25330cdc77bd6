"""Verbs that change where a job stands, or who may: each shows what it would do, and asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.confirmation import confirm, confirm_name, say_aside
from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.cli.output.values import as_json
from airflow_bookmarks.cli.verb import (
    FORCE,
    HIDE_STATE,
    JOB,
    REASON,
    YES,
    Argument,
    Verb,
    VerbContext,
    hint,
    positive,
    print_fields,
    say,
)
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job_state import SET_STATE
from airflow_bookmarks.core.rules.audit import ChangeAudit, check_reason

if TYPE_CHECKING:
    import argparse

    from airflow_bookmarks.lifecycle.changes.change import Change

# ---- reset, rewind, set, undo, delete: each a Change


def _reset(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _change(context, args, context.job(args), Change("reset", contexts=_contexts(args), clean=args.clean))


def _rewind(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.sharded_change import takes_shards
    from airflow_bookmarks.lifecycle.history.point import resolve_point

    job = context.job(args)
    asked = Change("rewind", to_run=args.to, contexts=_contexts(args), clean=args.clean)
    if takes_shards(context.store, job, asked):
        _change(context, args, job, asked)
        return
    kept = resolve_point(context.store, job, context.store.head(job), args.to)
    if str(kept.key.number) != args.to:
        say_aside(f"{args.to!r} is run {kept.key.number}: {kept.run_id}, committed at {kept.committed_at}")
    _change(context, args, job, replace(asked, to_run=str(kept.key.number)))


def _set(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _change(context, args, context.job(args), Change("set", ctx=args.ctx, value=args.value))


def _set_state(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _change(context, args, context.job(args), Change(SET_STATE, state=args.state, value=args.value))


def _relocate(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    change = Change(
        "relocate", ctx=args.ctx, from_root=args.from_root, to_root=args.to_root, unverified=args.unverified
    )
    _change(context, args, context.job(args), change)


def _rename_context(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _change(context, args, context.job(args), Change("rename-context", ctx=args.ctx, to_ctx=args.to_ctx))


def _undo(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _change(context, args, context.job(args), Change("undo"))


def _delete(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.naming import check_typed

    change = Change("delete", clean=args.clean)
    if args.name is not None:
        check_typed(args.job, args.name)
    _change(context, args, context.job(args), change)


def _change(context: VerbContext, args: argparse.Namespace, job: str, change: Change) -> None:
    from airflow_bookmarks.lifecycle.changes.approval import check_unprotected
    from airflow_bookmarks.lifecycle.changes.sharded_change import check_not_requested, preview_job, takes_shards
    from airflow_bookmarks.lifecycle.history.shards import head_of_whole

    check_reason(f"a {change.kind}", args.reason)
    if args.request and args.force:
        raise OptionError("--force goes with the approval, not with the request. Nothing was asked for. Leave it out.")
    if takes_shards(context.store, job, change):
        check_not_requested(job, args.request)
    elif not args.request and not args.dry_run:
        check_unprotected(job, head_of_whole(context.store, job), change.kind)
    seen = context.shown(preview_job(context.store, job, change).as_dict(), args)
    lines = in_lines(context.store.namespace, seen, change)
    if args.dry_run:
        say(as_json(seen) if args.output == "json" else "\n".join(lines))
        return
    say_aside(*lines)
    if change.kind == "delete":
        confirm_name(args)
    elif not args.request:
        confirm(args)
    if args.request:
        _ask(context, args, job, change, seen["version"])
    else:
        print_fields(_apply(context, args, job, change, seen["version"]), args)


def _apply(context: VerbContext, args: argparse.Namespace, job: str, change: Change, version: int) -> dict[str, Any]:
    from airflow_bookmarks.lifecycle.changes.naming import make_deletion
    from airflow_bookmarks.lifecycle.changes.sharded_change import change_job

    who = context.find_identity().signature
    make = make_deletion if change.kind == "delete" else change_job
    terms = ChangeAudit(reason=args.reason, who=who, force=args.force, expected_version=version)
    return make(context.store, job, change, **terms).as_dict()


def _ask(context: VerbContext, args: argparse.Namespace, job: str, change: Change, version: int | None = None) -> None:
    """Store the change as a request, for somebody else to approve."""
    from airflow_bookmarks.lifecycle.changes.approval import request

    who = context.find_identity()
    asked = request(context.store, job, change, reason=args.reason, who=who, expected_version=version)
    say_aside(hint(f"another person approves it with: airflow-bookmarks approve {args.job} {asked.id}", args))
    print_fields(context.shown(asked.as_dict(), args), args)


def _contexts(args: argparse.Namespace) -> tuple[str, ...] | None:
    return None if args.ctx is None else tuple(args.ctx)


# ---- replay, unlock


def _replay(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.run.replay import replay_settings

    print_fields(replay_settings(context.store, context.job(args), args.run), args)


def _unlock(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import unlock

    done = unlock(context.store, context.job(args), reason=args.reason, who=context.find_identity().signature)
    print_fields(done, args)


def _settle(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.settle import find_partly_landed, settle

    job, who = context.job(args), context.find_identity().signature
    check_reason("settle", args.reason)
    found = find_partly_landed(context.store, job)
    if found is not None and found.number == args.run:
        say_aside(f"run {args.run} has landed in: {'; '.join(found.landed)}", f"and not in: {'; '.join(found.missing)}")
        say_aside(_SETTLED[args.settled_as])
        confirm(args)
    print_fields(settle(context.store, job, args.run, args.settled_as, reason=args.reason, who=who), args)


_SETTLED = {
    "committed": "The next run takes it over: the position moves over its input, and what is missing stays missing.",
    "given-up": "The next run reads its input again: what has landed comes twice, unless you take it back by hand.",
}


# ---- protection


def _protect(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.approval import protect

    print_fields(protect(context.store, args.job, reason=args.reason, who=context.find_identity()), args)


def _unprotect(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change

    _ask(context, args, context.job(args), Change("unprotect"))


def _approve(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.approval import APPROVED, OPEN, approve, find_request

    asked = find_request(context.store, args.job, args.request_id)
    if asked.state in (OPEN, APPROVED):
        say_aside(f"{asked.who.name} asks for this change of job {asked.job!r}: {asked.why}")
        if asked.change.kind in _ASKED_FOR:
            say_aside(_ASKED_FOR[asked.change.kind].format(dag=asked.change.dag))
        else:
            say_aside(*in_lines(context.store.namespace, context.shown(asked.preview, args), asked.change))
        confirm(args)
    done = approve(context.store, asked.job, asked.id, who=context.find_identity(), force=args.force)
    print_fields(done, args)


_ASKED_FOR = {
    "unprotect": "its protection is taken away",
    "share": "DAG {dag!r} may run it too",
    "hand-over": "it belongs to DAG {dag!r} from now on",
}


def _reject(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.approval import reject

    asked = reject(context.store, args.job, args.request_id, reason=args.reason, who=context.find_identity())
    print_fields(context.shown(asked.as_dict(), args), args)


# ---- names


def _rename(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.naming import check_rename, rename

    job = context.job(args)
    check_reason("rename", args.reason)
    check_rename(context.store, job, args.new_name)
    say_aside(f"job {job!r} gets the name {args.new_name!r}, and keeps those that it has; nothing else changes")
    confirm(args)
    who = context.find_identity().signature
    print_fields(rename(context.store, args.job, args.new_name, reason=args.reason, who=who), args)


def _adopt(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.naming import adopt

    who = context.find_identity().signature
    print_fields(adopt(context.store, args.job, args.from_job, reason=args.reason, who=who), args)


# ---- the verbs

_CTX_HELP = "only this context, a named source of the job (repeatable); no run is then undone"
_CTX = Argument(("--ctx",), {"action": "append", "metavar": "CTX", "default": None, "help": _CTX_HELP})
_CLEAN_HELP = "also remove what the undone runs published; the next run does it, and it can't be undone"
_CLEAN = Argument(("--clean",), {"action": "store_true", "help": _CLEAN_HELP})
_TO_HELP = (
    "the last run to keep: a run number, a run id, a time (the last run committed by then) or watermark:VALUE (the "
    "last run at or below it); for a sharded job, a run id or a time. The run that is found is shown first"
)
_TO = Argument(("--to",), {"required": True, "metavar": "RUN", "help": _TO_HELP})
_DRY_RUN = Argument(("--dry-run",), {"action": "store_true", "help": "only show what would happen"})
_ASK_HELP = "ask a second person to approve the change instead of making it, as a protected job needs"
_REQUEST = Argument(("--request",), {"action": "store_true", "help": _ASK_HELP})
_CHANGING = (REASON, FORCE, YES, _DRY_RUN, _REQUEST, HIDE_STATE)
_SET_CTX = Argument(("ctx",), {"metavar": "CTX", "help": "name of the context, as in job.read(CTX)"})
_VALUE_HELP = (
    "for files: now, a time (older files count as read), or retry:PATH or retry:* for quarantined files; for an "
    "upstream: now, or a run number (0: the beginning)"
)
_VALUE = Argument(("value",), {"metavar": "VALUE", "help": _VALUE_HELP})
_STATE = Argument(("state",), {"metavar": "NAME", "help": "name of the value, as in job.state(NAME)"})
_JSON_HELP = "the new value, as JSON: '\"2013-01-31\"', 7, '{\"page\": 3}'; null removes it"
_JSON = Argument(("value",), {"metavar": "JSON", "help": _JSON_HELP})
_TO_CTX = Argument(("to_ctx",), {"metavar": "NAME", "help": "its new name, not used by another context of the job"})
_FROM_ROOT = Argument(
    ("--from",), {"required": True, "dest": "from_root", "metavar": "ROOT", "help": "the old folder or prefix"}
)
_TO_ROOT = Argument(
    ("--to",), {"required": True, "dest": "to_root", "metavar": "ROOT", "help": "the new folder or prefix"}
)
_UNVERIFIED_HELP = "how to count files that can't be compared with those read; default: fail"
_UNVERIFIED = Argument(("--unverified",), {"choices": ("read", "new"), "default": None, "help": _UNVERIFIED_HELP})
_NUMBER = Argument(("--run",), {"required": True, "type": positive, "metavar": "N", "help": "run number"})
_AS_HELP = "committed: go on behind it; given-up: read its input again"
_AS = Argument(
    ("--as",), {"required": True, "dest": "settled_as", "choices": ("committed", "given-up"), "help": _AS_HELP}
)
_REQUEST_ID = Argument(("request_id",), {"metavar": "REQUEST", "help": "id of the request, as listed by requests"})
_NEW_NAME = Argument(("new_name",), {"metavar": "NAME", "help": "a name that no job has yet"})
_NEW_JOB = Argument(("job",), {"metavar": "JOB", "help": "the new name"})
_FROM = Argument(("--from",), {"required": True, "dest": "from_job", "metavar": "JOB", "help": "the old name"})
_NAME_HELP = "the name of the job again, to confirm without a terminal"
_NAME = Argument(("--name",), {"metavar": "JOB", "default": None, "help": _NAME_HELP})

VERBS = (
    Verb(
        "reset",
        "Take a job back to before its first run; the next run reads everything",
        _reset,
        (JOB, _CTX, _CLEAN, *_CHANGING),
    ),
    Verb("rewind", "Take a job back to its state after an earlier run", _rewind, (JOB, _TO, _CTX, _CLEAN, *_CHANGING)),
    Verb("set", "Set the position of one context of a job by hand", _set, (JOB, _SET_CTX, _VALUE, *_CHANGING)),
    Verb(SET_STATE, "Set one value of job.state", _set_state, (JOB, _STATE, _JSON, *_CHANGING)),
    Verb(
        "relocate",
        "Record that the files a context has read were moved to another folder",
        _relocate,
        (JOB, _SET_CTX, _FROM_ROOT, _TO_ROOT, _UNVERIFIED, *_CHANGING),
    ),
    Verb(
        "rename-context",
        "Move the position of a context to the name its script now uses",
        _rename_context,
        (JOB, _SET_CTX, _TO_CTX, *_CHANGING),
    ),
    Verb("undo", "Undo the last change of a job's position, or its deletion", _undo, (JOB, *_CHANGING)),
    Verb(
        "replay",
        "Explain how to replay a run (same input, output replaced), which needs Spark",
        _replay,
        (JOB, _NUMBER),
    ),
    Verb("unlock", "Release a job that is held by a driver known to be dead", _unlock, (JOB, REASON)),
    Verb(
        "settle",
        "Say what a run counts as that has landed in some of its tables only",
        _settle,
        (JOB, _NUMBER, _AS, REASON, YES),
    ),
    Verb("protect", "Require a second person's approval for changes of a job", _protect, (JOB, REASON)),
    Verb("unprotect", "Ask a second person to remove the protection", _unprotect, (JOB, REASON)),
    Verb(
        "approve",
        "Approve a change that another person requested, and make it",
        _approve,
        (JOB, _REQUEST_ID, FORCE, YES, HIDE_STATE),
    ),
    Verb("reject", "Reject a requested change", _reject, (JOB, _REQUEST_ID, REASON)),
    Verb("rename", "Give a job another name; the old one keeps working", _rename, (JOB, _NEW_NAME, REASON, YES)),
    Verb(
        "adopt",
        "Let a renamed DAG or task continue with the bookmark of its old name",
        _adopt,
        (_NEW_JOB, _FROM, REASON),
    ),
    Verb(
        "delete",
        "Delete the bookmark of a job; its name must be typed to confirm",
        _delete,
        (JOB, _NAME, _CLEAN, *_CHANGING),
    ),
)
