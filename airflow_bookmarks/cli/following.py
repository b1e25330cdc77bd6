"""Verbs that say how jobs follow their sources: what is to be read, how far behind they are, who reads whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.values import as_json, with_units
from airflow_bookmarks.cli.verb import JOB, Argument, Verb, VerbContext, print_rows, say
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    import argparse

    from airflow_bookmarks.lifecycle.inspect.pending import PendingInput

_PENDING_COLUMNS = ("ctx", "files", "bytes", "oldest", "newest", "runs", "rows", "read_again", "skipped", "source")
_SKIPPED_COLUMNS = ("ctx", "reason", "path", "bytes", "modified_at")
_LAG_COLUMNS = ("job", "source", "state", "consumed", "published", "runs", "files", "bytes", "seconds", "why")
_TEXT, _MERMAID = "text", "mermaid"
_SHOWN_RUNS = 5


def _pending(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.inspect.pending import pending

    found = pending(context.store, context.job(args))
    if args.output == "json":
        say(as_json(found.as_dict(with_skipped=args.skipped)))
        return
    if found.contexts:
        rows = [_short(row) for row in found.as_dict()["contexts"]]
        print_rows(rows, with_units(rows, _PENDING_COLUMNS), args)
    for line in _in_words(found):
        say(escaped(line))
    files = [file for context in found.contexts for file in context.skipped_files()]
    if args.skipped and files:
        print_rows(files, _SKIPPED_COLUMNS, args)


def _short(context: dict[str, Any]) -> dict[str, Any]:
    runs = context.get("runs", [])
    if len(runs) <= _SHOWN_RUNS:
        return context
    return {**context, "runs": f"{runs[0]} ... {runs[-1]} ({len(runs)})"}


def _in_words(found: PendingInput) -> list[str]:
    """Return what there is to say of a look besides its rows."""
    lines = [f"unknown: {found.unknown}"] if found.unknown is not None else []
    lines += [f"unknown: context {each.ctx!r}: {each.unknown}" for each in found.contexts if each.unknown is not None]
    if found.due is not None:
        lines.append(f"run {found.due.number} is committed and is still to be published")
    if found.is_cleaning:
        lines.append("output of undone runs is still to be removed")
    lines += [f"run {key} was left open by a driver that ended, or failed" for key in found.left_open]
    if found.holder is not None:
        lines.append(f"{found.holder!r} is at work; what it reads counts as pending until it commits")
    return lines or (["nothing new"] if found.is_empty else [])


def _lag(context: VerbContext, args: argparse.Namespace) -> int:
    from airflow_bookmarks.core.rules.lag import LagState
    from airflow_bookmarks.lifecycle.inspect.lag import lag, lags_of_all

    if args.job is None:
        context.store.check_layout()
        found = lags_of_all(context.store)
    else:
        found = lag(context.store, context.job(args))
    rows = [each.as_dict() for each in found]
    print_rows(rows, with_units(rows, _LAG_COLUMNS), args)
    return 1 if args.check and any(each.state is not LagState.OK for each in found) else 0


def _graph(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.inspect.graph import graph

    if args.format is not None and args.output == "json":
        raise OptionError("--format is for people, and --output json gives the graph as data. Give one of both.")
    context.store.check_layout()
    found = graph(context.store, None if args.job is None else context.job(args))
    if args.output == "json":
        say(as_json(found.as_dict()))
    else:
        say(found.as_mermaid() if args.format == _MERMAID else found.as_text())


_SKIPPED = Argument(("--skipped",), {"action": "store_true", "help": "also list the files that would be left out"})
_MAYBE_JOB_HELP = "name of the job; default: all jobs of the namespace, without listing their folders"
_MAYBE_JOB = Argument(("job",), {"nargs": "?", "metavar": "JOB", "default": None, "help": _MAYBE_JOB_HELP})
_CHECK = Argument(("--check",), {"action": "store_true", "help": "exit with 1 if any state is not OK, for scripts"})
_PART = Argument(
    ("job",),
    {
        "nargs": "?",
        "metavar": "JOB",
        "default": None,
        "help": "only what this job depends on and what depends on it; default: all jobs",
    },
)
_FORMAT = Argument(
    ("--format",), {"choices": (_TEXT, _MERMAID), "default": None, "help": f"a tree, or a diagram; default: {_TEXT}"}
)

VERBS = (
    Verb("pending", "Show what the next run would read", _pending, (JOB, _SKIPPED)),
    Verb("lag", "Show how far jobs are behind their inputs, and whether they keep up", _lag, (_MAYBE_JOB, _CHECK)),
    Verb("graph", "Show which jobs and sources each job reads", _graph, (_PART, _FORMAT)),
)
