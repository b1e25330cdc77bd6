"""Verbs that keep the state in order: doctor and gc."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.cli.verb import Argument, Verb, positive, print_facts, print_rows

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_FINDING_COLUMNS = ("severity", "job", "code", "what", "repair")
_REPAIRED_COLUMNS = ("job", "code", "is_done", "what")


def _doctor(store: BookmarkStore, given: argparse.Namespace) -> int:
    from airflow_bookmarks.lifecycle.doctor import examine, repair
    from airflow_bookmarks.lifecycle.rewind import present_user

    found = examine(store, jobs=given.jobs or None)
    if not given.repair:
        if found or given.output == "json":
            print_rows([finding.as_dict() for finding in found], _FINDING_COLUMNS, given)
        else:
            print("clean: nothing found")
        return 1 if found else 0
    done = repair(store, found, who=present_user())
    rows = [{"job": one.finding.job, "code": one.finding.code, **one.as_dict()} for one in done]
    print_rows(rows, _REPAIRED_COLUMNS, given)
    return 1 if examine(store, jobs=given.jobs or None) else 0


def _gc(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.retention import RETENTION, collect

    retention = RETENTION if given.retention_days is None else timedelta(days=given.retention_days)
    print_facts(collect(store, retention=retention, jobs=given.jobs or None, dry_run=given.dry_run).as_dict(), given)


_JOBS = Argument(("jobs",), {"nargs": "*", "metavar": "JOB", "help": "names of jobs; default: all"})

KEEPING = (
    Verb(
        "doctor",
        "Prove the state, and name what is damaged; exit code 1 where something is",
        _doctor,
        (_JOBS, Argument(("--repair",), {"action": "store_true", "help": "repair what is safe to repair"})),
    ),
    Verb(
        "gc",
        "Remove history that is older than the retention and that nobody refers to",
        _gc,
        (
            _JOBS,
            Argument(("--dry-run",), {"action": "store_true", "help": "say what would be removed, and remove nothing"}),
            Argument(
                ("--retention-days",),
                {"type": positive, "metavar": "N", "default": None, "help": "how long history is kept; default 90"},
            ),
        ),
    ),
)
