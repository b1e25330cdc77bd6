"""The two ways to call the verbs of the command line, which are declared once.

What a verb needs is imported when it runs: this module is loaded by every `airflow` command.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from airflow_bookmarks.cli import backfill, change, following, maintenance, read, sharing
from airflow_bookmarks.cli.invocation import PROGRAM, Invocation
from airflow_bookmarks.cli.output.values import FORMATS
from airflow_bookmarks.cli.verb import Argument, Verb, VerbContext
from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from airflow.cli.cli_config import Arg, GroupCommand

STORE_VARIABLE = "AIRFLOW_BOOKMARKS_STORE"
VERBS: tuple[Verb, ...] = (
    maintenance.INIT,
    *read.VERBS,
    *following.VERBS,
    *change.VERBS,
    *backfill.VERBS,
    *sharing.VERBS,
    *maintenance.VERBS,
)

_DEFAULT_CONNECTION = "bookmarks_default"
_ABOUT = "Inspect and change the bookmarks of Spark jobs."
_EXIT_CODES = "Exit codes: 0 done, 1 refused or failed (the reason is on stderr) or damage found, 2 wrong usage."
_STORE_HELP = "store URI, for example dynamodb://bookmarks?region=eu-west-1 or sqlite:////var/lib/bookmarks.db"


def run(arguments: Sequence[str] | None = None) -> int:
    """Run `airflow-bookmarks`; see `airflow_bookmarks.cli.main`."""
    parser = _parser()
    try:
        args = parser.parse_args(arguments)
        uri = args.store or os.environ.get(STORE_VARIABLE)
        if not uri:
            parser.error(f"no store: give --store, or set {STORE_VARIABLE}, e.g. sqlite:////var/lib/bookmarks.db")
    except SystemExit as exit_:  # argparse has said why
        return exit_.code if isinstance(exit_.code, int) else 2
    invocation = Invocation(PROGRAM, ("--store", args.store) if args.store else ())
    return _run_verb(args.verb, args, lambda: _open(uri), invocation)


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


# ---- airflow-bookmarks


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
    parser.add_argument(
        "--store",
        default=store,
        metavar="URI",
        help=f"{_STORE_HELP}; default: the environment variable {STORE_VARIABLE}",
    )
    parser.add_argument("--output", default=output, choices=FORMATS, help="table for people, json for programs")


def _open(uri: str) -> VerbContext:
    from airflow_bookmarks.lifecycle.changes.present_identity import present_identity
    from airflow_bookmarks.store.bookmark_store import open_store

    store = open_store(uri)
    return VerbContext(store, lambda: present_identity(store))


# ---- airflow bookmarks


def _airflow_args(verb: Verb) -> tuple[Arg, ...]:
    from airflow.cli.cli_config import Arg

    connection = {"default": None, "help": f"Airflow connection; default: {_DEFAULT_CONNECTION}"}
    store = {"default": None, "metavar": "URI", "help": f"{_STORE_HELP}; instead of a connection"}
    output = {"default": FORMATS[0], "choices": FORMATS, "help": "table for people, json for programs"}
    common = (Argument(("--conn-id",), connection), Argument(("--store",), store), Argument(("--output",), output))
    return tuple(Arg(one.flags, **one.told) for one in (*verb.arguments, *common))  # type: ignore[no-untyped-call]


def _airflow_action(verb: Verb) -> Callable[[argparse.Namespace], None]:
    def action(args: argparse.Namespace) -> None:
        named = {"--store": args.store, "--conn-id": args.conn_id}
        options = tuple(word for flag, value in named.items() if value is not None for word in (flag, value))
        invocation = Invocation("airflow bookmarks", options)
        code = _run_verb(verb, args, lambda: _open_by_airflow(args.conn_id, args.store), invocation)
        if code:
            raise SystemExit(code)

    action.__name__ = f"bookmarks_{verb.name}"
    return action


def _open_by_airflow(conn_id: str | None, uri: str | None) -> VerbContext:
    if conn_id is not None and uri is not None:
        raise OptionError("--conn-id and --store both say where the store is. Nothing was read or changed. Give one.")
    if uri is not None:
        return _open(uri)
    # As Airflow's own commands on connections do: without it those in its database are not found.
    os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")
    from airflow_bookmarks.hooks.bookmark import BookmarkHook
    from airflow_bookmarks.lifecycle.changes.present_identity import present_identity

    hook = BookmarkHook(conn_id or _DEFAULT_CONNECTION)
    store = hook.get_conn()
    return VerbContext(store, lambda: present_identity(store, hook.credentials_environment()), hook.hides_state)


# ---- both


def _run_verb(verb: Verb, args: argparse.Namespace, opened: Callable[[], VerbContext], invocation: Invocation) -> int:
    args.invocation = invocation
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that it has not is no reason to fail after the change
            stream.reconfigure(errors="backslashreplace")
    try:
        return verb.run(opened(), args) or 0
    except BookmarkError as error:
        print(f"{invocation.program}: {escaped(invocation.hint(str(error)), keep=chr(10))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{invocation.program}: interrupted; what was asked for is done whole or not at all", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (`head`, a pager) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
