"""Verbs that change whose a job is: share it with another DAG, hand it over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_bookmarks.cli.change import confirm
from airflow_bookmarks.cli.verb import JOB, REASON, YES, Argument, Desk, Verb, hint, print_fields

if TYPE_CHECKING:
    import argparse

    from airflow_bookmarks.lifecycle.changes.change import Change


def _share(desk: Desk, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.sharing import share

    if given.request:
        _ask(desk, given, Change("share", dag=given.dag))
        return
    job = _looked_for(desk, given, Change("share", dag=given.dag))
    print(f"job {job!r} may be run by DAG {given.dag!r} too; its owner stays", file=sys.stderr)
    confirm(given)
    print_fields(
        share(desk.store, given.job, given.dag, reason=given.reason, who=desk.find_identity().signature), given
    )


def _unshare(desk: Desk, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.sharing import unshare

    who = desk.find_identity().signature
    print_fields(unshare(desk.store, given.job, given.dag, reason=given.reason, who=who), given)


def _hand_over(desk: Desk, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.change import Change
    from airflow_bookmarks.lifecycle.changes.sharing import hand_over

    if given.request:
        _ask(desk, given, Change("hand-over", dag=given.dag, renamed=given.renamed))
        return
    job = _looked_for(desk, given, Change("hand-over", dag=given.dag, renamed=given.renamed))
    asked = "of its owner's new name alone" if given.renamed else "of this DAG and of each that owned it before"
    about = (
        f"job {job!r} belongs to DAG {given.dag!r} from now on, and runs of a former owner are refused "
        f"unless it is shared with that DAG; the page asks for the rights {asked}"
    )
    print(about, file=sys.stderr)
    confirm(given)
    who = desk.find_identity().signature
    print_fields(
        hand_over(desk.store, given.job, given.dag, reason=given.reason, who=who, renamed=given.renamed), given
    )


def _looked_for(desk: Desk, given: argparse.Namespace, change: Change) -> str:
    """Return the key of a job that can be changed so; before anything is said of it."""
    from airflow_bookmarks.lifecycle.changes.sharing import check_change

    job = desk.job(given)
    check_change(desk.store, job, change, reason=given.reason)
    return job


def _ask(desk: Desk, given: argparse.Namespace, change: Change) -> None:
    """Store the change as a request, for somebody else to approve."""
    from airflow_bookmarks.lifecycle.changes.approval import request

    asked = request(desk.store, desk.job(given), change, reason=given.reason, who=desk.find_identity())
    said = f"another person approves it with: airflow-bookmarks approve {given.job} {asked.id}"
    print(hint(said, given), file=sys.stderr)
    print_fields(asked.as_dict(), given)


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
