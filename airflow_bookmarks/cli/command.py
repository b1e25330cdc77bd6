"""The verbs of the command line, declared once for both doors.

What a verb needs is imported when it runs: this module is loaded by every `airflow` command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output import FORMATS, as_json, as_list, as_table
from airflow_bookmarks.core.errors import BookmarkError, OptionError

if TYPE_CHECKING:
    from airflow.cli.cli_config import Arg, GroupCommand

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.change import Changed
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

PROGRAM = "airflow-bookmarks"
STORE_VARIABLE = "AIRFLOW_BOOKMARKS_STORE"
_DEFAULT_CONNECTION = "bookmarks_default"
_ABOUT = "Look at bookmarks of Spark jobs, and change them."
_EXIT_CODES = "Exit codes: 0 done, 1 refused or failed (the reason is on stderr), 2 wrong usage."
_STORE_HELP = "store URI, for example dynamodb://bookmarks?region=eu-west-1"

_LIST_COLUMNS = ("job", "run_number", "published", "epoch", "watermark", "last_commit_at")
_HISTORY_COLUMNS = (
    "number",
    "epoch",
    "state",
    "files",
    "rows",
    "rows_written",
    "watermark",
    "committed_at",
    "run_id",
    "attempt",
)


# ---- what there is


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: its flags or name, and what argparse is told of it."""

    flags: tuple[str, ...]
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that the command line can do."""

    name: str
    help: str
    run: Callable[[BookmarkStore, argparse.Namespace], None]
    arguments: tuple[Argument, ...] = ()


def run(arguments: Sequence[str] | None = None) -> int:
    """Run `airflow-bookmarks`; see `airflow_bookmarks.cli.main`."""
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
        uri = given.store or os.environ.get(STORE_VARIABLE)
        if not uri:
            parser.error(f"no store: give --store, or set {STORE_VARIABLE}, e.g. sqlite:////var/lib/bookmarks.db")
    except SystemExit as exit_:  # argparse has said why
        return exit_.code if isinstance(exit_.code, int) else 2
    try:
        return _run_verb(given.verb, given, lambda: _open(uri))
    except BrokenPipeError:  # the reader (`head`, a pager) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def airflow_group() -> GroupCommand:
    """Return the group `bookmarks` of the `airflow` command."""
    from airflow.cli.cli_config import ActionCommand, GroupCommand

    return GroupCommand(
        name="bookmarks",
        help=_ABOUT,
        epilog=_EXIT_CODES,
        subcommands=[
            ActionCommand(
                name=verb.name, help=verb.help, func=_airflow_action(verb), args=_airflow_args(verb), epilog=_EXIT_CODES
            )
            for verb in VERBS
        ],
    )


# ---- the two doors


def _parser() -> argparse.ArgumentParser:
    # Options that go before the verb go after it as well; there they have no default, which would undo the one before.
    parser = argparse.ArgumentParser(PROGRAM, description=_ABOUT, epilog=_EXIT_CODES, allow_abbrev=False)
    _add_common(parser, store=None, output=FORMATS[0])
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in VERBS:
        below = verbs.add_parser(
            verb.name, help=verb.help, description=verb.help, epilog=_EXIT_CODES, allow_abbrev=False
        )
        _add_common(below, store=argparse.SUPPRESS, output=argparse.SUPPRESS)
        for argument in verb.arguments:
            below.add_argument(*argument.flags, **argument.told)
        below.set_defaults(verb=verb)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, store: str | None, output: str) -> None:
    parser.add_argument("--store", default=store, metavar="URI", help=f"{_STORE_HELP}; default: {STORE_VARIABLE}")
    parser.add_argument("--output", default=output, choices=FORMATS, help="table for people, json for programs")


def _airflow_args(verb: Verb) -> tuple[Arg, ...]:
    from airflow.cli.cli_config import Arg

    connection = {"default": None, "help": f"Airflow connection; default: {_DEFAULT_CONNECTION}"}
    store = {"default": None, "metavar": "URI", "help": f"{_STORE_HELP}; instead of a connection"}
    output = {"default": FORMATS[0], "choices": FORMATS, "help": "table for people, json for programs"}
    common = (Argument(("--conn-id",), connection), Argument(("--store",), store), Argument(("--output",), output))
    return tuple(Arg(one.flags, **one.told) for one in (*verb.arguments, *common))  # type: ignore[no-untyped-call]


def _airflow_action(verb: Verb) -> Callable[[argparse.Namespace], None]:
    def action(given: argparse.Namespace) -> None:
        code = _run_verb(verb, given, lambda: _open_by_airflow(given.conn_id, given.store))
        if code:
            raise SystemExit(code)

    action.__name__ = f"bookmarks_{verb.name}"
    return action


def _open(uri: str) -> BookmarkStore:
    from airflow_bookmarks.store.bookmark_store import open_store

    return open_store(uri)


def _open_by_airflow(conn_id: str | None, uri: str | None) -> BookmarkStore:
    if conn_id is not None and uri is not None:
        raise OptionError("--conn-id and --store both say where the store is. Nothing was read or changed. Give one.")
    if uri is not None:
        return _open(uri)
    # As Airflow's own commands on connections do: without it those in its database are not found.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    from airflow_bookmarks.hooks.bookmark import BookmarkHook

    return BookmarkHook(conn_id or _DEFAULT_CONNECTION).get_conn()


def _run_verb(verb: Verb, given: argparse.Namespace, opened: Callable[[], BookmarkStore]) -> int:
    try:
        verb.run(opened(), given)
    except BookmarkError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    return 0


# ---- the verbs


def _init(store: BookmarkStore, given: argparse.Namespace) -> None:
    is_new = store.init()
    _print_facts({"created": is_new, "namespace": store.namespace, **store.table.describe()}, given)


def _check(store: BookmarkStore, given: argparse.Namespace) -> None:
    store.check_layout()
    _print_facts({"usable": True, "namespace": store.namespace, **store.table.describe()}, given)


def _list(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.bookmark import bookmarks

    store.check_layout()
    _print_rows(bookmarks(store), _LIST_COLUMNS, given)


def _show(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.bookmark import bookmark

    _print_facts(bookmark(store, given.job), given)


def _history(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.history import history

    _print_rows(history(store, given.job, limit=given.limit, with_open=given.all), _HISTORY_COLUMNS, given)


def _reset(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import reset
    from airflow_bookmarks.lifecycle.rewind import present_user
    head = store.head(given.job)
    _confirm(store, given.job, head, None, given)
    who = present_user()
    changed = reset(store, given.job, reason=given.reason, who=who, force=given.force, expected_version=head.version)
    _print_changed(changed, given)


def _rewind(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import rewind
    from airflow_bookmarks.lifecycle.rewind import present_user, resolve_run

    head = store.head(given.job)
    kept = resolve_run(store, given.job, head, given.to)
    _confirm(store, given.job, head, kept, given)
    changed = rewind(
        store,
        given.job,
        kept.key.number,
        reason=given.reason,
        who=present_user(),
        force=given.force,
        expected_version=head.version,
    )
    _print_changed(changed, given)


def _confirm(store: BookmarkStore, job: str, head: Head, kept: Run | None, given: argparse.Namespace) -> None:
    """Say what will be undone, and ask. On stderr, so that stdout holds the result alone.

    Raises:
        OptionError: not confirmed, or nobody there to ask.
    """
    print(_preview(store, job, head, kept), file=sys.stderr)
    if given.yes:
        return
    if not sys.stdin.isatty():
        raise OptionError("this needs a confirmation, and there is no terminal. Nothing was changed. Give --yes.")
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise OptionError("not confirmed. Nothing was changed.")


def _preview(store: BookmarkStore, job: str, head: Head, kept: Run | None) -> str:
    number = 0 if kept is None else kept.key.number
    contexts = {} if kept is None else kept.contexts
    living = store.ancestry(job, head.epoch)
    undone = [
        run
        for run in store.runs(job, after=number, until=head.run_number)
        if run.state.is_committed and living.is_living(run.key.number, run.epoch)
    ]
    lines = [
        f"job {job!r} in namespace {store.namespace!r} goes back to "
        + (f"run {number}" if number else "before its first run")
        + f": {len(undone)} runs are undone"
        + (f" ({', '.join(str(run.key.number) for run in undone)})" if undone else "")
        + ". Written data stays."
    ]
    for ctx in sorted({*head.contexts, *contexts}):
        before, after = head.contexts.get(ctx), contexts.get(ctx)
        lines.append(
            f"  {ctx}: watermark {None if before is None else before.watermark} -> "
            f"{None if after is None else after.watermark}"
        )
    if head.lease is not None:
        lines.append(f"  held by {head.lease.run_id!r} (attempt {head.lease.attempt}) since {head.lease.since}")
    return "\n".join(lines)


# ---- printing


def _print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], given: argparse.Namespace) -> None:
    print(as_json(rows) if given.output == "json" else as_table(rows, columns))


def _print_facts(facts: Mapping[str, Any], given: argparse.Namespace) -> None:
    print(as_json(facts) if given.output == "json" else as_list(facts))


def _print_changed(changed: Changed, given: argparse.Namespace) -> None:
    _print_facts(changed.as_dict(), given)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


_JOB = Argument(("job",), {"metavar": "JOB", "help": "name of the job"})
_CHANGING = (
    Argument(("--reason",), {"required": True, "metavar": "TEXT", "help": "why; kept with who and when"}),
    Argument(("--force",), {"action": "store_true", "help": "also while a run holds the job: it is fenced"}),
    Argument(("--yes",), {"action": "store_true", "help": "do not ask"}),
)

VERBS = (
    Verb("init", "Create the table, or the SQLite file, where it is absent", _init),
    Verb("check", "Say whether the store answers and can be used", _check),
    Verb("list", "List the jobs of the namespace", _list),
    Verb("show", "Show where a job stands", _show, (_JOB,)),
    Verb(
        "history",
        "List the runs of a job, oldest first",
        _history,
        (
            _JOB,
            Argument(("--limit",), {"type": _positive, "metavar": "N", "default": None, "help": "only the newest N"}),
            Argument(("--all",), {"action": "store_true", "help": "also runs that did not commit"}),
        ),
    ),
    Verb(
        "reset",
        "Take a job back to before its first run; the next run reads everything",
        _reset,
        (_JOB, *_CHANGING),
    ),
    Verb(
        "rewind",
        "Take a job back to its state after an earlier run",
        _rewind,
        (
            _JOB,
            Argument(("--to",), {"required": True, "metavar": "RUN", "help": "run number or run id that is kept"}),
            *_CHANGING,
        ),
    ),
)
