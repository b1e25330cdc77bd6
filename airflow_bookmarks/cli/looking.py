"""Verbs that look: init and check besides list, show, history and files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_bookmarks.cli.verb import JOB, Argument, Verb, positive, print_facts, print_rows

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_LIST_COLUMNS = ("job", "run_number", "published", "epoch", "watermark", "last_commit_at")
_HISTORY_COLUMNS = (
    "number",
    "epoch",
    "state",
    "revision",
    "files",
    "rows",
    "rows_written",
    "watermark",
    "committed_at",
    "run_id",
    "attempt",
)
_FILES_COLUMNS = ("ctx", "path", "bytes", "modified_at")


def _init(store: BookmarkStore, given: argparse.Namespace) -> None:
    is_new = store.init()
    print_facts({"created": is_new, "namespace": store.namespace, **store.table.describe()}, given)


def _check(store: BookmarkStore, given: argparse.Namespace) -> None:
    store.check_layout()
    print_facts({"usable": True, "namespace": store.namespace, **store.table.describe()}, given)


def _list(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.bookmark import bookmarks

    store.check_layout()
    print_rows(bookmarks(store), _LIST_COLUMNS, given)


def _show(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.bookmark import bookmark

    print_facts(bookmark(store, given.job), given)


def _history(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.history import history

    print_rows(history(store, given.job, limit=given.limit, with_open=given.all), _HISTORY_COLUMNS, given)


def _files(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.history import files_of

    print_rows(files_of(store, given.job, given.run), _FILES_COLUMNS, given)


LOOKING = (
    Verb("init", "Create the table, or the SQLite file, where it is absent", _init),
    Verb("check", "Say whether the store answers and can be used", _check),
    Verb("list", "List the jobs of the namespace", _list),
    Verb("show", "Show where a job stands", _show, (JOB,)),
    Verb(
        "history",
        "List the runs of a job, oldest first",
        _history,
        (
            JOB,
            Argument(("--limit",), {"type": positive, "metavar": "N", "default": None, "help": "only the newest N"}),
            Argument(("--all",), {"action": "store_true", "help": "also runs that did not commit"}),
        ),
    ),
    Verb(
        "files",
        "List the files that a run has read",
        _files,
        (JOB, Argument(("--run",), {"required": True, "metavar": "RUN", "help": "run number or run id"})),
    ),
)
