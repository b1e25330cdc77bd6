"""What a verb of the command line is, and how its result is printed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output import as_json, as_list, as_table

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: its flags or name, and what argparse is told of it."""

    flags: tuple[str, ...]
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that the command line can do; `run` returns another exit code than 0 where it found damage."""

    name: str
    help: str
    run: Callable[[BookmarkStore, argparse.Namespace], int | None]
    arguments: tuple[Argument, ...] = ()


JOB = Argument(("job",), {"metavar": "JOB", "help": "name of the job"})


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], given: argparse.Namespace) -> None:
    """Print rows as a table of some columns, or whole as JSON."""
    print(as_json(rows) if given.output == "json" else as_table(rows, columns))


def print_facts(facts: Mapping[str, Any], given: argparse.Namespace) -> None:
    """Print one thing as a list of names and values, or as JSON."""
    print(as_json(facts) if given.output == "json" else as_list(facts))


def positive(text: str) -> int:
    """Take a number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1")
    return int(text)
