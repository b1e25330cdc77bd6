"""Verbs: what the command line can do, and what each of them is given."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.invocation import Invocation
from airflow_bookmarks.cli.output.values import as_json, as_list, as_table
from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from airflow_bookmarks.core.text.identity import Identity
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: its flags or name, and what argparse is told of it."""

    flags: tuple[str, ...]
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VerbContext:
    """Where a verb works: the store, and who sits there (found out when a verb asks for it).

    `hides_state`: the connection says that values of `job.state` are not shown.
    """

    store: BookmarkStore
    find_identity: Callable[[], Identity]
    hides_state: bool = False

    def job(self, args: argparse.Namespace) -> str:
        """Return the key of the job that is given by any of its names."""
        from airflow_bookmarks.lifecycle.changes.naming import key_of

        return key_of(self.store, args.job)

    def shown(self, told: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
        """Return what is told of a job, without the values of `job.state` where these are hidden."""
        return hidden(told) if self.hides_state or vars(args).get("hide_state") else dict(told)


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that the command line can do. `run` returns an exit code, None for 0."""

    name: str
    help: str
    run: Callable[[VerbContext, argparse.Namespace], int | None]
    arguments: tuple[Argument, ...] = ()


JOB = Argument(("job",), {"metavar": "JOB", "help": "name of the job"})
REASON = Argument(
    ("--reason",), {"required": True, "metavar": "TEXT", "help": "the reason, recorded with your name and the time"}
)
FORCE = Argument(
    ("--force",),
    {"action": "store_true", "help": "change the job even while a run holds it: that run can't commit any more"},
)
HIDE_STATE = Argument(("--hide-state",), {"action": "store_true", "help": "do not show the values of job.state"})
YES = Argument(("--yes",), {"action": "store_true", "help": "do not ask for confirmation"})


def positive(text: str) -> int:
    """Return a number from 1, for argparse."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], args: argparse.Namespace) -> None:
    """Print rows: all they hold as JSON, or some columns as a table."""
    say(as_json(rows) if args.output == "json" else hint(as_table(rows, columns), args))


def print_fields(details: Mapping[str, Any], args: argparse.Namespace) -> None:
    """Print one thing."""
    say(as_json(details) if args.output == "json" else hint(as_list(details), args))


def hint(text: str, args: argparse.Namespace) -> str:
    """Return a text with the commands that it names as they have to be typed in the program that was called."""
    invocation: Invocation = vars(args).get("invocation", Invocation())  # a caller of the verb alone has none
    return invocation.hint(text)


def say(text: str) -> None:
    """Print a result; what a terminal may obey in it is escaped.

    Raises:
        BookmarkError: stdout takes no more. A reader that went away is no error: `BrokenPipeError` goes on.
    """
    try:
        print(escaped(text, keep="\n"), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter fails over it at its end
        raise BookmarkError(f"the result can't be written to stdout ({error}). What was asked for is done.") from error
