"""The person at the terminal: what is said aside of the result, and the answers that a change needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    import argparse


def say_aside(*lines: str) -> None:
    """Speak to the person: on stderr, so that stdout holds the result alone."""
    for line in lines:
        print(escaped(line), file=sys.stderr)


def confirm_name(args: argparse.Namespace) -> None:
    """Make sure that the name of the job to be deleted was typed out; --yes is not enough for that."""
    from airflow_bookmarks.lifecycle.changes.naming import check_typed

    if args.name is None:
        check_typed(args.job, _answer("Type the name of the job to delete its bookmark: ", "Give --name."))


def confirm(args: argparse.Namespace) -> None:
    """Ask whether to go on.

    Raises:
        OptionError: not confirmed, or nobody there to ask.
    """
    if not args.yes and _answer("Go on? [y/N] ", "Give --yes.").lower() not in ("y", "yes"):
        raise OptionError("not confirmed. Nothing was changed.")


def _answer(question: str, instead: str) -> str:
    if not sys.stdin.isatty():
        raise OptionError(f"this needs a confirmation, and there is no terminal. Nothing was changed. {instead}")
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
