"""Verbs that change whose a job is: share it with another DAG, hand it over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_bookmarks.cli.confirmation import confirm
from airflow_bookmarks.cli.verb import JOB, REASON, YES, Argument, Verb, VerbContext, hint, print_fields

if TYPE_CHECKING:
    import argparse

    from airflow_bookmarks.lifecycle.changes.change import Change


def _share(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.sharing import share

    if args.request:
        _ask(context, args, Change("share", dag=args.dag))
        return
    job = _looked_for(context, args, Change("share", dag=args.dag))
    print(f"job {job!r} may be run by DAG {args.dag!r} too; its owner stays", file=sys.stderr)
    confirm(args)
    print_fields(
        share(context.store, args.job, args.dag, reason=args.reason, who=context.find_identity().signature), args
    )


def _unshare(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.sharing import unshare

    who = context.find_identity().signature
    print_fields(unshare(context.store, args.job, args.dag, reason=args.reason, who=who), args)


def _hand_over(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.sharing import hand_over

    if args.request:
        _ask(context, args, Change("hand-over", dag=args.dag, renamed=args.renamed))
        return
    job = _looked_for(context, args, Change("hand-over", dag=args.dag, renamed=args.renamed))
    asked = "of its owner's new name alone" if args.renamed else "of this DAG and of each that owned it before"
    about = (
        f"job {job!r} belongs to DAG {args.dag!r} from now on, and runs of a former owner are refused "
        f"unless it is shared with that DAG; the page asks for the rights {asked}"
    )
    print(about, file=sys.stderr)
    confirm(args)
    who = context.find_identity().signature
    print_fields(hand_over(context.store, args.job, args.dag, reason=args.reason, who=who, renamed=args.renamed), args)


def _looked_for(context: VerbContext, args: argparse.Namespace, change: Change) -> str:
    """Return the key of a job that can be changed so; before anything is said of it."""
    from airflow_bookmarks.lifecycle.changes.sharing import check_change

    job = context.job(args)
    check_change(context.store, job, change, reason=args.reason)
    return job


def _ask(context: VerbContext, args: argparse.Namespace, change: Change) -> None:
    """Store the change as a request, for somebody else to approve."""
    from airflow_bookmarks.lifecycle.changes.approval import request

    asked = request(context.store, context.job(args), change, reason=args.reason, who=context.find_identity())
    said = f"another person approves it with: airflow-bookmarks approve {args.job} {asked.id}"
    print(hint(said, args), file=sys.stderr)
    print_fields(asked.as_dict(), args)


_WITH = Argument(("--with",), {"required": True, "dest": "dag", "metavar": "DAG", "help": "id of the other DAG"})
_TO = Argument(("--to",), {"required": True, "dest": "dag", "metavar": "DAG", "help": "id of the new owner"})
_RENAMED_HELP = "DAG is the owner under a new name: rights on the old name are no longer checked"
_RENAMED = Argument(("--renamed",), {"action": "store_true", "help": _RENAMED_HELP})
_ASK_HELP = "ask a second person to approve the change instead of making it, as a protected job needs"
_REQUEST = Argument(("--request",), {"action": "store_true", "help": _ASK_HELP})

VERBS = (
    Verb("share", "Let another DAG run a job too", _share, (JOB, _WITH, REASON, YES, _REQUEST)),
    Verb("unshare", "Stop sharing a job with a DAG", _unshare, (JOB, _WITH, REASON)),
    Verb(
        "hand-over",
        "Give a job to another DAG, or to its owner under a new name",
        _hand_over,
        (JOB, _TO, _RENAMED, REASON, YES, _REQUEST),
    ),
)
